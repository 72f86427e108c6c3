// The grpc++ server: its arguments, the thread that closes connections whose clients do not read,
// start and shutdown.
#include "server/transport/grpcpp/grpcpp_transport.h"

#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <climits>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/task_thread_pool.h"
#include "base/threads.h"
#include "server/listener/drain.h"
#include "server/transport/grpcpp/calls.h"

namespace floe::server {
namespace {

// HTTP/2's frame that tells a client to open no more streams on this connection, while all that it
// opened are served. RFC 9113 6.8: type 7, stream 0, last stream 2^31-1, NO_ERROR.
std::string_view GoAwayFrame() {
  static constexpr char kFrame[] = {0, 0, 8, 7, 0, 0, 0, 0, 0, 127, -1, -1, -1, 0, 0, 0, 0};
  return {kFrame, sizeof kFrame};
}

// Within this time both ends of a connection have usually sent their prefaces (RFC 9113 3.4).
constexpr Duration kPrefaces = std::chrono::milliseconds(50);

// The farewell must not land inside a frame that is partly written. So it is sent while no reply of
// the connection is in progress. Other frames have a few bytes, and a socket that is nearly empty
// takes them whole. A connection with replies in progress until the deadline gets no farewell; its
// next calls find a closed gate.
void SendGoAways(ConnectionTable* connections, ReplyCount* replies, TimePoint until) {
  const auto aside = [replies](uint16_t port, const std::function<bool()>& send) {
    return replies->Aside(ReplyCount::SlotOf(port), send);
  };
  connections->SendFarewell(GoAwayFrame(), aside, kPrefaces, until);
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
  GrpcppTransport(const MethodTable& methods, const TransportOptions& options,
                  GrpcArguments arguments)
      : methods_(methods),
        options_(options),
        arguments_(std::move(arguments)),
        book_(options_.calls) {}
  ~GrpcppTransport() override { Shutdown(Clock::Steady().Now()); }

  absl::Status Start(const std::vector<ListenerSpec>& listeners) override;
  std::vector<std::string> addresses() const override { return addresses_; }
  ListenerCounts connections() const override {
    return acceptor_ == nullptr ? ListenerCounts() : acceptor_->connections().Counts();
  }
  int64_t max_connections() const override {
    return acceptor_ == nullptr ? 0 : acceptor_->connections().limits().max_connections;
  }
  absl::StatusOr<int> ConnectInside() override;
  void Shutdown(TimePoint deadline) override;

 private:
  using Connection = grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters;

  // gRPC does not tell a call by which listener it came. So listeners of the same roles share a
  // server of gRPC's, and others have another one.
  struct Server {
    ListenerRoles roles;
    std::unique_ptr<grpc::Service> unary;
    std::unique_ptr<grpc::CallbackGenericService> other;
    std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections;
    std::unique_ptr<grpc::Server> server;
  };

  // Between checks for clients that do not read.
  static constexpr Duration kReadCheck = std::chrono::seconds(1);

  void Configure(grpc::ServerBuilder* builder) const;
  // `quota` may be null.
  absl::StatusOr<std::unique_ptr<Server>> StartServer(const ListenerRoles& roles,
                                                      const grpc::ResourceQuota* quota);
  absl::Status StartServers(const std::vector<ListenerSpec>& listeners,
                            const std::vector<ListenSocket>& sockets);
  void Hand(int listener_fd, int fd);
  void CutOverdue();

  const MethodTable& methods_;
  const TransportOptions options_;
  const GrpcArguments arguments_;
  // Before servers_, whose calls use them.
  CallBook book_;
  CallGate gate_;
  OpenStreams streams_{gate_.replies()};
  ReplySender sender_;
  std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<Server>> servers_;  // of the first listener's roles first
  std::map<int, Server*> server_of_;              // by the listener's descriptor
  std::unique_ptr<Acceptor> acceptor_;
  TaskThreadPool cutter_{1, {"unread", 0, {}}, [this] {
                           CutOverdue();
                           return Clock::Steady().Now() + kReadCheck;
                         }};
};

int Millis(Duration time) {
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  return static_cast<int>(std::min<int64_t>(millis, INT_MAX));
}

// gRPC's own arguments that follow from the options.
std::map<std::string, int> ArgumentsOf(const TransportOptions& options) {
  std::map<std::string, int> arguments = {
      {GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, Millis(options.times.handshake)},
      // gzip is unpacked on this side, because gRPC unpacks without a bound, or refused here,
      // because
      // gRPC's words do not name the key.
      {GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET,
       1 << GRPC_COMPRESS_NONE | 1 << GRPC_COMPRESS_GZIP},
      {GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0},
  };
  const auto set = [&arguments](const char* name, int64_t value) {
    if (value > 0) arguments[name] = static_cast<int>(std::min<int64_t>(value, INT_MAX));
  };
  const ConnectionTimes& times = options.times;
  set(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.calls.connection.calls);
  set(GRPC_ARG_MAX_CONNECTION_IDLE_MS, Millis(times.idle));
  set(GRPC_ARG_MAX_CONNECTION_AGE_MS, Millis(times.age));
  if (times.age > Duration::zero()) set(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, Millis(times.grace));
  // gRPC's own default is two hours, and only while there are calls.
  const bool asks = times.keepalive > Duration::zero();
  set(GRPC_ARG_KEEPALIVE_TIME_MS, asks ? Millis(times.keepalive) : INT_MAX);
  if (asks) set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  if (asks) set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  return arguments;
}

void GrpcppTransport::Configure(grpc::ServerBuilder* builder) const {
  // gRPC's own limit is applied to complete messages, so it saves no memory, and its error does not
  // name the flag. The quota bounds messages that are still arriving.
  builder->SetMaxReceiveMessageSize(-1);
  builder->SetMaxSendMessageSize(-1);
  std::map<std::string, int> arguments = ArgumentsOf(options_);
  for (const auto& [key, value] : arguments_) {
    if (const std::optional<int> number = AsInteger(value)) {
      arguments[key] = *number;
    } else {
      arguments.erase(key);
      builder->AddChannelArgument(key, value);
    }
  }
  for (const auto& [key, value] : arguments) builder->AddChannelArgument(key, value);
}

void GrpcppTransport::Hand(int listener_fd, int fd) {
  Connection connection;
  connection.listener_fd = listener_fd;
  connection.fd = fd;
  const auto server = server_of_.find(listener_fd);
  Server& to = server == server_of_.end() ? *servers_.front() : *server->second;
  to.connections->HandleNewConnection(&connection);
}

absl::StatusOr<int> GrpcppTransport::ConnectInside() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
    return absl::ErrnoToStatus(errno, "a connection inside the process");
  Hand(-1, ends[0]);
  return ends[1];
}

void GrpcppTransport::CutOverdue() {
  ConnectionTable& connections = acceptor_->connections();
  const auto acknowledged = [&connections](const std::string& host, uint16_t port) {
    return connections.BytesAcknowledged(host, port);
  };
  for (const CallBook::Cut& cut : book_.Overdue(acknowledged)) {
    spdlog::warn("{}:{} does not read: its connection is closed with {} bytes of replies unsent",
                 cut.host, cut.port, cut.reply_bytes);
    connections.Cut(cut.host, cut.port);
  }
}

// gRPC itself would block on stderr, and log a line for each mistake of a client.
void LogOfGrpc(gpr_log_func_args* said) {
  constexpr int kLines = 10;  // of every kEvery
  constexpr auto kEvery = std::chrono::seconds(10);
  static auto* const mutex = new Mutex;
  static TimePoint next = TimePoint::min();
  static int64_t lines = 0;
  int64_t left_out = 0;
  {
    MutexLock lock(*mutex);
    const TimePoint now = Clock::Steady().Now();
    if (now >= next) {
      left_out = std::max<int64_t>(0, std::exchange(lines, 0) - kLines);
      next = now + kEvery;
    }
    if (++lines > kLines) return;
  }
  const auto level =
      said->severity == GPR_LOG_SEVERITY_ERROR ? spdlog::level::warn : spdlog::level::debug;
  if (left_out > 0) spdlog::log(level, "gRPC: {} more lines of the last seconds", left_out);
  spdlog::log(level, "gRPC: {}", said->message);
}

// gRPC hangs where the system refuses it a thread: whether there are as many as it takes is found
// out before, by making them.
absl::Status CheckThreads() {
  const int cpus = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 2, 32);
  std::promise<void> end;
  const std::shared_future<void> ended = end.get_future().share();
  absl::Status status;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8 + 2 * cpus && status.ok(); ++i) {
    auto thread = TrySpawnThread({"gRPC", 0, {}}, [ended] { ended.wait(); });
    status = thread.status();
    if (thread.ok()) threads.push_back(*std::move(thread));
  }
  end.set_value();
  for (std::thread& thread : threads) thread.join();
  return status;
}

absl::StatusOr<std::unique_ptr<GrpcppTransport::Server>> GrpcppTransport::StartServer(
    const ListenerRoles& roles, const grpc::ResourceQuota* quota) {
  auto made = std::make_unique<Server>();
  made->roles = roles;
  const CallRules rules = {
      &book_, &sender_, {options_.max_message_bytes, options_.compression}, roles};
  made->unary = MakeUnaryService(methods_, &gate_, rules);
  made->other = MakeStreamService(methods_, &streams_, rules);
  grpc::ServerBuilder builder;
  Configure(&builder);
  if (quota != nullptr) builder.SetResourceQuota(*quota);
  builder.RegisterService(made->unary.get());
  builder.RegisterCallbackGenericService(made->other.get());
  // grpc++'s own listener stops for good once the process was out of file descriptors.
  made->connections = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      grpc::InsecureServerCredentials());
  made->server = builder.BuildAndStart();
  if (made->server == nullptr) return absl::InternalError("gRPC did not start a server");
  return made;
}

absl::Status GrpcppTransport::StartServers(const std::vector<ListenerSpec>& listeners,
                                           const std::vector<ListenSocket>& sockets) {
  grpc::ResourceQuota quota("requests");  // of all servers together
  const bool bounded = options_.max_arriving_bytes > 0;
  if (bounded) quota.Resize(static_cast<size_t>(options_.max_arriving_bytes));
  std::vector<std::unique_ptr<Server>> servers;
  for (size_t i = 0; i < listeners.size(); ++i) {
    const ListenerRoles& roles = listeners[i].roles;
    auto server = std::find_if(servers.begin(), servers.end(),
                               [&](const auto& one) { return one->roles == roles; });
    if (server == servers.end()) {
      FLOE_ASSIGN_OR_RETURN(auto started, StartServer(roles, bounded ? &quota : nullptr));
      server = servers.insert(servers.end(), std::move(started));
    }
    server_of_[sockets[i].fd()] = server->get();
  }
  servers_ = std::move(servers);
  return absl::OkStatus();
}

absl::Status GrpcppTransport::Start(const std::vector<ListenerSpec>& listeners) {
  FLOE_RETURN_IF_ERROR(CheckThreads());
  if (listeners.empty()) return absl::InvalidArgumentError("no listener: give --port or a socket");
  std::vector<ListenSocket> sockets;
  for (const ListenerSpec& listener : listeners) {
    if (listener.tls.context != nullptr)
      return absl::UnimplementedError(
          absl::StrCat(listener.address, ": grpc++ cannot carry TLS here; use --transport=net"));
    FLOE_ASSIGN_OR_RETURN(ListenSocket socket, ListenSocket::Open(listener.address));
    addresses_.push_back(socket.address());
    sockets.push_back(std::move(socket));
  }
  gpr_set_log_function(LogOfGrpc);
  grpc::EnableDefaultHealthCheckService(false);
  FLOE_RETURN_IF_ERROR(sender_.Start());
  FLOE_RETURN_IF_ERROR(StartServers(listeners, sockets));
  acceptor_ =
      std::make_unique<Acceptor>(std::move(sockets), options_.connections,
                                 [this](int listener_fd, int fd) { Hand(listener_fd, fd); });
  FLOE_RETURN_IF_ERROR(cutter_.Start());
  return acceptor_->Start();
}

void GrpcppTransport::Shutdown(TimePoint deadline) {
  if (servers_.empty()) return;
  cutter_.Stop();
  // gRPC cannot send GOAWAY and still accept calls that are already on their way. So the frame is
  // written beside gRPC, which rules out TLS. gRPC reports the end of a call, and of a message of a
  // stream, once all its bytes are in the socket. It cancels calls that arrive after its shutdown
  // began, which is a failure for callers. So the connections end before the server does.
  const auto ask = [this](TimePoint until) {
    SendGoAways(&acceptor_->connections(), gate_.replies(), until);
  };
  Drain({*acceptor_, gate_, ask, [this] { streams_.Close(); }, options_.time_to_leave}, deadline);
  const Duration left = deadline - Clock::Steady().Now();
  // A far deadline must not overflow on its way to the other clock.
  constexpr Duration kFar = std::chrono::hours(24 * 365);
  const auto end = std::chrono::system_clock::now() + std::min(left, kFar);
  for (const auto& one : servers_) one->server->Shutdown(end);
}

}  // namespace

std::unique_ptr<Transport> MakeGrpcppTransport(const MethodTable& methods,
                                               const TransportOptions& options,
                                               GrpcArguments arguments) {
  return std::make_unique<GrpcppTransport>(methods, options, std::move(arguments));
}

}  // namespace floe::server
