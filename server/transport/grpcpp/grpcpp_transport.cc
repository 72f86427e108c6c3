#include "server/transport/grpcpp/grpcpp_transport.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <charconv>
#include <chrono>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "server/transport/grpcpp/calls.h"

namespace floe::server {
namespace {

// Every path arrives here.
class Dispatcher final : public grpc::CallbackGenericService {
 public:
  Dispatcher(const MethodTable& methods, int64_t max_bytes)
      : methods_(methods), max_bytes_(max_bytes) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    const std::string& path = context->method();
    if (const UnaryMethod* method = methods_.FindUnary(path)) {
      if (!gate_.Enter()) {
        return new RefusedCall(absl::UnavailableError("the server is shutting down"));
      }
      return UnaryCall::Start(context, *method, &gate_, max_bytes_);
    }
    if (const StreamMethod* method = methods_.FindStream(path)) {
      return StreamCall::Start(context, *method, &streams_, max_bytes_);
    }
    return new RefusedCall(UnknownMethodError(methods_, path));
  }

  OpenStreams& streams() { return streams_; }
  CallGate& gate() { return gate_; }

 private:
  const MethodTable& methods_;
  const int64_t max_bytes_;
  OpenStreams streams_;
  CallGate gate_;
};

std::optional<int> AsInteger(const std::string& text) {
  int value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end) return std::nullopt;
  return value;
}

class GrpcppTransport final : public Transport {
 public:
  GrpcppTransport(const MethodTable& methods, TransportOptions options)
      : options_(std::move(options)), dispatcher_(methods, options_.max_message_bytes) {}
  ~GrpcppTransport() override { Shutdown(Clock::Steady().Now()); }

  absl::Status Start(const std::vector<std::string>& listeners) override;
  std::vector<std::string> addresses() const override { return addresses_; }
  void Shutdown(TimePoint deadline) override;

 private:
  void Configure(grpc::ServerBuilder* builder) const;

  const TransportOptions options_;
  Dispatcher dispatcher_;  // before server_, whose calls use it
  std::vector<std::string> addresses_;
  std::unique_ptr<grpc::Server> server_;
};

void GrpcppTransport::Configure(grpc::ServerBuilder* builder) const {
  // Larger messages are refused by the calls themselves, with a text that names the flag: gRPC
  // holds the whole message before it compares, so its own limit would save nothing.
  builder->SetMaxReceiveMessageSize(-1);
  builder->SetMaxSendMessageSize(-1);
  // Two servers on one port would share its connections without a word.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  for (const auto& [key, value] : options_.channel_args) {
    if (const std::optional<int> number = AsInteger(value)) {
      builder->AddChannelArgument(key, *number);
    } else {
      builder->AddChannelArgument(key, value);
    }
  }
}

// "host:port" with the port that was bound; other kinds of addresses as given.
std::string BoundAddress(const std::string& listener, int port) {
  if (listener.rfind("unix", 0) == 0) return listener;
  return absl::StrCat(listener.substr(0, listener.rfind(':')), ":", port);
}

absl::Status GrpcppTransport::Start(const std::vector<std::string>& listeners) {
  if (listeners.empty()) return absl::InvalidArgumentError("no listener: give --port or a socket");
  grpc::EnableDefaultHealthCheckService(false);
  grpc::ServerBuilder builder;
  Configure(&builder);
  builder.RegisterCallbackGenericService(&dispatcher_);
  std::vector<int> ports(listeners.size(), 0);
  for (size_t i = 0; i < listeners.size(); ++i) {
    builder.AddListeningPort(listeners[i], grpc::InsecureServerCredentials(), &ports[i]);
  }
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) {
    // gRPC stops at the first listener that fails.
    for (size_t i = 0; i < listeners.size(); ++i) {
      if (ports[i] > 0) continue;
      return absl::UnavailableError(
          absl::StrCat("cannot listen on ", listeners[i],
                       ": the address is in use, not this machine's, or not permitted"));
    }
    return absl::InternalError("gRPC did not start a server");
  }
  for (size_t i = 0; i < listeners.size(); ++i) {
    addresses_.push_back(BoundAddress(listeners[i], ports[i]));
  }
  return absl::OkStatus();
}

void GrpcppTransport::Shutdown(TimePoint deadline) {
  if (server_ == nullptr) return;
  dispatcher_.streams().Close();
  // gRPC cancels calls that reach it after its own shutdown began, which callers would take for a
  // failure; a plain UNAVAILABLE sends them elsewhere. So what is inside is finished first.
  dispatcher_.gate().CloseAndWait(deadline);
  const Duration left = deadline - Clock::Steady().Now();
  // A far deadline must not overflow on its way to the other clock.
  constexpr Duration kFar = std::chrono::hours(24 * 365);
  server_->Shutdown(std::chrono::system_clock::now() + std::min(left, kFar));
}

}  // namespace

std::unique_ptr<Transport> MakeGrpcppTransport(const MethodTable& methods,
                                               TransportOptions options) {
  return std::make_unique<GrpcppTransport>(methods, std::move(options));
}

}  // namespace floe::server
