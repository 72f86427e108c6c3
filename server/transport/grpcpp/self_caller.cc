// Calls over the callback API. gRPC's threads report the end and own nothing: a thread that gave up
// the last channel of the process would join itself.
#include "server/transport/grpcpp/self_caller.h"

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <utility>

namespace floe::server {

struct SelfCaller::Call {
  explicit Call(int fd) : stub(grpc::CreateInsecureChannelFromFd("inside", fd)) {}
  // Waits for the end.
  ~Call() {
    MutexLock lock(mutex);
    while (!done) ended.Wait(mutex);
  }
  void Start(const std::string& method) {
    const grpc::Slice nothing;
    request = grpc::ByteBuffer(&nothing, 1);
    stub.UnaryCall(&context, method, {}, &request, &reply, [this](const grpc::Status&) {
      MutexLock lock(mutex);
      done = true;
      ended.NotifyAll();
    });
  }
  bool Done() {
    MutexLock lock(mutex);
    return done;
  }

  grpc::GenericStub stub;
  grpc::ClientContext context;
  grpc::ByteBuffer request, reply;
  Mutex mutex;
  CondVar ended;
  bool done ABSL_GUARDED_BY(mutex) = false;
};

SelfCaller::SelfCaller(std::string method, std::function<absl::StatusOr<int>()> connect)
    : method_(std::move(method)), connect_(std::move(connect)) {}

SelfCaller::~SelfCaller() { Stop(); }

bool SelfCaller::Answered() {
  MutexLock lock(mutex_);
  if (stopped_) return true;
  if (call_ != nullptr && !call_->Done()) return false;
  call_.reset();
  const absl::StatusOr<int> fd = connect_();
  if (!fd.ok()) return true;
  call_ = std::make_unique<Call>(*fd);
  call_->Start(method_);
  return true;
}

void SelfCaller::Stop() {
  MutexLock lock(mutex_);
  stopped_ = true;
  if (call_ != nullptr) call_->context.TryCancel();
}

}  // namespace floe::server
