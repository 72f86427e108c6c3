// The floor of serving: a gRPC server that does nothing but answer.
//
// The first request of a method goes on to another server, and its answer is kept. Further ones of
// the same size are answered with it, without being looked at: the same number of bytes in and out,
// for what gRPC alone costs. Meant for the client of one model. The methods are those that
// `floectl bench` calls.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <future>
#include <list>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/synchronization/mutex.h"
#include "base/mutex.h"

namespace floe {
namespace {

constexpr const char* kMethods[] = {"/tensorflow.serving.PredictionService/Predict",
                                    "/tensorflow.serving.PredictionService/GetModelMetadata"};

// Answers one method. Threading: any thread.
class KeptAnswer {
 public:
  KeptAnswer(std::string method, std::shared_ptr<grpc::Channel> channel)
      : method_(std::move(method)), stub_(std::move(channel)) {}

  grpc::Status Answer(const grpc::ByteBuffer& request, grpc::ByteBuffer* reply) {
    const size_t size = request.Length();
    const Kept* kept = last_.load(std::memory_order_acquire);
    if (kept == nullptr || kept->request_size != size) {
      grpc::Status status = Ask(request, &kept);
      if (!status.ok()) return status;
    }
    *reply = kept->reply;  // refers to the same bytes
    return grpc::Status::OK;
  }

 private:
  struct Kept {
    size_t request_size = 0;
    grpc::ByteBuffer reply;
  };

  grpc::Status Ask(const grpc::ByteBuffer& request, const Kept** kept) {
    MutexLock lock(mutex_);
    for (const Kept& one : all_) {
      if (one.request_size != request.Length()) continue;
      *kept = &one;
      last_.store(&one, std::memory_order_release);
      return grpc::Status::OK;
    }
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    grpc::ByteBuffer reply;
    std::promise<grpc::Status> done;
    stub_.UnaryCall(&context, method_, grpc::StubOptions(), &request, &reply,
                    [&done](grpc::Status status) { done.set_value(std::move(status)); });
    grpc::Status status = done.get_future().get();
    if (!status.ok()) return status;
    all_.push_back({request.Length(), reply});
    *kept = &all_.back();
    last_.store(*kept, std::memory_order_release);
    return status;
  }

  const std::string method_;
  grpc::GenericStub stub_;
  std::atomic<const Kept*> last_{nullptr};
  Mutex mutex_;
  std::list<Kept> all_ ABSL_GUARDED_BY(mutex_);  // never moved, freed at the end
};

// The API that floed is built on, without what floed does in it.
class EchoService final : public grpc::Service {
 public:
  explicit EchoService(const std::shared_ptr<grpc::Channel>& channel) {
    int index = 0;
    for (const char* const method : kMethods) {
      KeptAnswer* const answer = &answers_.emplace_back(method, channel);
      AddMethod(new grpc::internal::RpcServiceMethod(method, grpc::internal::RpcMethod::NORMAL_RPC,
                                                     nullptr));
      MarkMethodRawCallback(
          index++, new grpc::internal::CallbackUnaryHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
                       [answer](grpc::CallbackServerContext* context,
                                const grpc::ByteBuffer* request, grpc::ByteBuffer* reply) {
                         grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
                         reactor->Finish(answer->Answer(*request, reply));
                         return reactor;
                       }));
    }
  }

 private:
  std::list<KeptAnswer> answers_;
};

int Main(int argc, char** argv) {
  // As floed does: Debian's Abseil searches for lock cycles at every lock.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  std::string listen = "127.0.0.1:8600", like;
  CLI::App app("Answers what another gRPC server answered once: what gRPC alone costs.");
  app.add_option("--listen", listen, "HOST:PORT or unix:PATH")->capture_default_str();
  app.add_option("--like", like, "The server whose answers it gives")->required();
  CLI11_PARSE(app, argc, argv);

  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  EchoService service(
      grpc::CreateCustomChannel(like, grpc::InsecureChannelCredentials(), arguments));
  grpc::ServerBuilder builder;
  builder.AddListeningPort(listen, grpc::InsecureServerCredentials());
  builder.SetMaxReceiveMessageSize(-1);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    std::fprintf(stderr, "echo_server cannot listen at %s\n", listen.c_str());
    return 1;
  }
  int signal = 0;
  sigwait(&signals, &signal);
  server->Shutdown(std::chrono::system_clock::now());
  return 0;
}

}  // namespace
}  // namespace floe

int main(int argc, char** argv) { return floe::Main(argc, argv); }
