// Calls over the callback API: gRPC's threads report the end, and each call owns what it needs.
#include "server/transport/grpcpp/self_caller.h"

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <atomic>

namespace floe::server {

struct SelfCaller::Call {
  explicit Call(int fd) : stub(grpc::CreateInsecureChannelFromFd("inside", fd)) {}

  grpc::GenericStub stub;
  grpc::ClientContext context;
  grpc::ByteBuffer request, reply;
  std::atomic<bool> done{false};
};

bool SelfCaller::Answered() {
  MutexLock lock(mutex_);
  if (call_ != nullptr && !call_->done) return false;
  call_.reset();
  if (stopped_) return true;
  const absl::StatusOr<int> fd = connect_();
  if (!fd.ok()) return true;
  call_ = std::make_shared<Call>(*fd);
  const grpc::Slice nothing;
  call_->request = grpc::ByteBuffer(&nothing, 1);
  call_->stub.UnaryCall(&call_->context, method_, {}, &call_->request, &call_->reply,
                        [call = call_](const grpc::Status&) { call->done = true; });
  return true;
}

void SelfCaller::Stop() {
  MutexLock lock(mutex_);
  stopped_ = true;
  if (call_ != nullptr) call_->context.TryCancel();
  call_.reset();  // gRPC has the other reference, until the call has ended
}

}  // namespace floe::server
