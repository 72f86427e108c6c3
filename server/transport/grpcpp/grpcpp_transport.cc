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

// The unary methods, each with its path, their messages unread. gRPC reads the request with the
// call's first bytes, which a generic method has to ask for: that costs two more turns of its
// queue, a quarter of what a small call takes.
class UnaryService final : public grpc::Service {
 public:
  // `methods` and `gate` outlive this.
  UnaryService(const MethodTable& methods, CallGate* gate, int64_t max_bytes) {
    int index = 0;
    for (const auto& [path, method] : methods.unary()) {
      AddMethod(new grpc::internal::RpcServiceMethod(
          path.c_str(), grpc::internal::RpcMethod::NORMAL_RPC, nullptr));
      MarkMethodRawCallback(
          index++, new grpc::internal::CallbackUnaryHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
                       [gate, max_bytes, &path = path, &method = method](
                           grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                           grpc::ByteBuffer* reply) -> grpc::ServerUnaryReactor* {
                         if (!gate->Enter()) return Refuse(context);
                         // The handler's, which does not read it again.
                         auto* const own = const_cast<grpc::ByteBuffer*>(request);
                         return UnaryCall::Start(context, path, method, gate, max_bytes, own,
                                                 reply);
                       }));
    }
  }

 private:
  static grpc::ServerUnaryReactor* Refuse(grpc::CallbackServerContext* context) {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish({grpc::StatusCode::UNAVAILABLE, "the server is shutting down"});
    return reactor;
  }
};

// Every other path arrives here.
class StreamService final : public grpc::CallbackGenericService {
 public:
  // `methods` and `streams` outlive this.
  StreamService(const MethodTable& methods, OpenStreams* streams, int64_t max_bytes)
      : methods_(methods), streams_(*streams), max_bytes_(max_bytes) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    const std::string& path = context->method();
    if (const StreamMethod* method = methods_.FindStream(path)) {
      return StreamCall::Start(context, *method, &streams_, max_bytes_);
    }
    return new RefusedCall(UnknownMethodError(methods_, path));
  }

 private:
  const MethodTable& methods_;
  OpenStreams& streams_;
  const int64_t max_bytes_;
};

// HTTP/2's frame that tells a client to open no more streams on this connection, while all that it
// opened are served (RFC 9113 6.8: type 7, stream 0, last stream 2^31-1, NO_ERROR).
std::string_view GoAwayFrame() {
  static constexpr char kFrame[] = {0, 0, 8, 7, 0, 0, 0, 0, 0, 127, -1, -1, -1, 0, 0, 0, 0};
  return {kFrame, sizeof kFrame};
}

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
      : options_(std::move(options)),
        unary_(methods, &gate_, options_.max_message_bytes),
        other_(methods, &streams_, options_.max_message_bytes) {}
  ~GrpcppTransport() override { Shutdown(Clock::Steady().Now()); }

  absl::Status Start(const std::vector<std::string>& listeners) override;
  std::vector<std::string> addresses() const override { return addresses_; }
  int64_t connections_refused() const override {
    const AcceptorCounts counts = acceptor_->Counts();
    return counts.refused_total + counts.refused_address + counts.refused_files;
  }
  void Shutdown(TimePoint deadline) override;

 private:
  using Connection = grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters;

  // Both ends speak first (RFC 9113 3.4) within this time, mostly.
  static constexpr Duration kHandshake = std::chrono::milliseconds(50);
  // Clients that have sent no call for so long have left, or have nothing to lose.
  static constexpr Duration kQuiet = std::chrono::milliseconds(100);
  static constexpr Duration kLastBytes = std::chrono::seconds(1);

  void Configure(grpc::ServerBuilder* builder) const;
  void AskClientsToLeave(TimePoint deadline);

  const TransportOptions options_;
  // Before server_, whose calls use them.
  ReplyCount replies_;
  CallGate gate_{&replies_};
  OpenStreams streams_{&replies_};
  UnaryService unary_;
  StreamService other_;
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
  builder.RegisterService(&unary_);
  builder.RegisterCallbackGenericService(&other_);
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

// gRPC has no way to send GOAWAY and still take the calls that were already on their way. So the
// frame is written beside gRPC; TLS would rule this out. It must not land within a frame of which
// the socket has taken a part, which the socket does not tell: its queue may be empty before gRPC's
// thread wakes and writes on. So it is sent while no reply is under way: gRPC says that a call is
// done, or a message of a stream sent, once all that it had to write is in the socket. What else it
// writes are frames of a few bytes, which a socket that is nearly empty takes whole. A connection
// that has replies under way until the deadline is not asked; its calls find a closed gate.
// Clients finish what they began, take their next calls elsewhere, and close the connection.
void GrpcppTransport::AskClientsToLeave(TimePoint deadline) {
  const auto aside = [this](uint16_t port, const std::function<bool()>& send) {
    return replies_.Aside(ReplyCount::SlotOfPort(port), send);
  };
  acceptor_->Tell(GoAwayFrame(), aside, kHandshake, deadline);
  streams_.Close();  // they would keep their connections
  int64_t calls = -1;
  while (calls != gate_.entered() && Clock::Steady().Now() < deadline) {
    calls = gate_.entered();
    acceptor_->AwaitClosed(std::min(deadline, Clock::Steady().Now() + kQuiet));
  }
}

void GrpcppTransport::Shutdown(TimePoint deadline) {
  if (server_ == nullptr) return;
  acceptor_->Stop();
  AskClientsToLeave(std::min(deadline, Clock::Steady().Now() + options_.time_to_leave));
  // gRPC cancels calls that reach it after its own shutdown began, which callers would take for a
  // failure; a plain UNAVAILABLE sends them elsewhere. So what is inside is finished first, and
  // connections end before the server does.
  gate_.CloseAndWait(deadline);
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
