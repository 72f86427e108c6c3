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
  int64_t connections_refused() const override {
    const AcceptorCounts counts = acceptor_->Counts();
    return counts.refused_total + counts.refused_address;
  }
  void Shutdown(TimePoint deadline) override;

 private:
  using Connection = grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters;

  void Configure(grpc::ServerBuilder* builder) const;

  const TransportOptions options_;
  Dispatcher dispatcher_;  // before server_, whose calls use it
  std::vector<std::string> addresses_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Acceptor> acceptor_;
};

void GrpcppTransport::Configure(grpc::ServerBuilder* builder) const {
  // Larger messages are refused by the calls themselves, with a text that names the flag: gRPC
  // holds the whole message before it compares, so its own limit would save nothing.
  builder->SetMaxReceiveMessageSize(-1);
  builder->SetMaxSendMessageSize(-1);
  for (const auto& [key, value] : options_.channel_args) {
    if (const std::optional<int> number = AsInteger(value)) {
      builder->AddChannelArgument(key, *number);
    } else {
      builder->AddChannelArgument(key, value);
    }
  }
}

absl::Status GrpcppTransport::Start(const std::vector<std::string>& listeners) {
  if (listeners.empty()) return absl::InvalidArgumentError("no listener: give --port or a socket");
  std::vector<ListenSocket> sockets;
  for (const std::string& listener : listeners) {
    FLOE_ASSIGN_OR_RETURN(ListenSocket socket, ListenSocket::Open(listener));
    addresses_.push_back(socket.address());
    sockets.push_back(std::move(socket));
  }
  grpc::EnableDefaultHealthCheckService(false);
  grpc::ServerBuilder builder;
  Configure(&builder);
  builder.RegisterCallbackGenericService(&dispatcher_);
  // grpc++'s own listener stops for good once the process was out of file descriptors.
  connections_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      grpc::InsecureServerCredentials());
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return absl::InternalError("gRPC did not start a server");
  acceptor_ = std::make_unique<Acceptor>(std::move(sockets), options_.connections,
                                         [this](int listener_fd, int fd) {
                                           Connection connection;
                                           connection.listener_fd = listener_fd;
                                           connection.fd = fd;
                                           connections_->HandleNewConnection(&connection);
                                         });
  acceptor_->Start();
  return absl::OkStatus();
}

void GrpcppTransport::Shutdown(TimePoint deadline) {
  if (server_ == nullptr) return;
  acceptor_->Stop();
  dispatcher_.streams().Close();
  // gRPC cancels calls that reach it after its own shutdown began, which callers would take for a
  // failure; a plain UNAVAILABLE sends them elsewhere. So what is inside is finished first, and
  // connections end before the server does.
  dispatcher_.gate().CloseAndWait(deadline);
  constexpr auto kLastBytes = std::chrono::seconds(1);
  acceptor_->CloseConnections(std::min(deadline, Clock::Steady().Now() + kLastBytes));
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
