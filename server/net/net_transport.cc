// The parts of a server: listeners, loops with their connections, and the order of its end.
#include "server/net/net_transport.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/cpus.h"
#include "base/status.h"
#include "base/task_thread_pool.h"
#include "server/listener/acceptor.h"
#include "server/listener/drain.h"
#include "server/listener/listen_socket.h"
#include "server/listener/socket_address.h"
#include "server/net/channel_arguments.h"
#include "server/net/connection.h"
#include "server/net/loop.h"
#include "server/net/net_rules.h"
#include "server/net/turn_queue.h"

namespace floe::server {
namespace {

// A loop and its connections, which its thread owns. Threading: as said.
class LoopOfConnections {
 public:
  explicit LoopOfConnections(NetShared* shared, const Clock& clock)
      : loop_(std::make_shared<Loop>(clock)), arrivals_(std::make_shared<Arrivals>(this, shared)) {}
  Loop* loop() { return loop_.get(); }

  // A connection that was accepted. Any thread.
  void Take(int fd, PeerIdentity who, std::shared_ptr<ssl_ctx_st> tls) {
    arrivals_->Add({fd, std::move(who), std::move(tls)});
  }
  // On the loop's thread. `visit` may close connections.
  void ForEach(const std::function<void(Connection*)>& visit) {
    while (arrivals_->OpenOne()) {
    }
    std::vector<const Connection*> all;
    for (const auto& [key, connection] : connections_) all.push_back(key);
    for (const Connection* const key : all)
      if (const auto found = connections_.find(key); found != connections_.end())
        visit(found->second.get());
  }

 private:
  struct Arrival {
    int fd;
    PeerIdentity who;
    std::shared_ptr<ssl_ctx_st> tls;
  };
  // Connections on their way from the thread that accepts them. However many come at once, calls
  // of the others have their turn between them, and the connections of other addresses.
  class Arrivals final : public Loop::Task, public std::enable_shared_from_this<Arrivals> {
   public:
    Arrivals(LoopOfConnections* to, NetShared* shared) : to_(*to), shared_(*shared) {}
    ~Arrivals() override {
      while (const std::optional<Arrival> one = waiting_.Pop()) {
        shared_.connections.Remove(one->fd);
        close(one->fd);
      }
    }
    void Add(Arrival arrival) {
      const std::string host(PeerOf(arrival.who.peer).host);
      {
        MutexLock lock(mutex_);
        waiting_.Push(host, std::move(arrival));
        if (std::exchange(posted_, true)) return;
      }
      to_.loop_->Post(shared_from_this());
    }
    void Run() override {
      constexpr int kTurn = 32;
      for (int n = 0; n < kTurn; ++n)
        if (!OpenOne()) return;
      to_.loop_->Post(shared_from_this());
    }
    // False: none waits, and the next one posts this again.
    bool OpenOne() {
      std::optional<Arrival> next;
      {
        MutexLock lock(mutex_);
        next = waiting_.Pop();
        posted_ = next.has_value();
      }
      if (!next.has_value()) return false;
      to_.Open(*std::move(next), &shared_);
      return true;
    }

   private:
    LoopOfConnections& to_;
    NetShared& shared_;
    Mutex mutex_;
    TurnQueue<Arrival> waiting_ ABSL_GUARDED_BY(mutex_);
    bool posted_ ABSL_GUARDED_BY(mutex_) = false;
  };

  void Open(Arrival arrival, NetShared* shared) {
    auto made =
        std::make_unique<Connection>(arrival.fd, std::move(arrival.who), arrival.tls, shared, loop_,
                                     [this](Connection* closed) { Forget(closed); });
    Connection* const connection = made.get();
    connections_[connection] = std::move(made);
    if (loop_->Watch(arrival.fd, connection).ok())
      connection->OnReady(/*may_be_over=*/true);  // its first bytes may be there
    else
      connection->Close(EndReason::kClient);
  }
  void Forget(Connection* connection) {
    const auto found = connections_.find(connection);
    if (found == connections_.end()) return;
    loop_->Forget(std::move(found->second));
    connections_.erase(found);
  }

  const std::shared_ptr<Loop> loop_;
  const std::shared_ptr<Arrivals> arrivals_;
  std::unordered_map<const Connection*, std::unique_ptr<Connection>> connections_;
};

PeerIdentity IdentityOf(int fd, const ListenerSpec& spec, const Access* access) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  PeerIdentity who;
  who.roles = spec.roles;
  who.for_operators = spec.for_operators;
  (void)getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size);
  const std::string host = HostOf(address);
  const bool v6 = host.find(':') != std::string::npos;
  who.peer =
      host.empty() ? "unix" : absl::StrCat(v6 ? "[" : "", host, v6 ? "]:" : ":", PortOf(address));
  who.local = PeerOf(who.peer).local();
  who.principal = std::hash<std::string>()(who.peer);
  if (access == nullptr) return who;
  ConnectionFacts facts;
  facts.to_admin_listener = spec.for_operators;
  ucred user = {};
  socklen_t user_size = sizeof user;
  if (address.ss_family == AF_UNIX &&
      getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &user_size) == 0)
    facts.uid = user.uid;
  who.caller = access->OfConnection(facts);
  return who;
}

NetLimits LimitsOf(const TransportOptions& options, const ChannelArguments& arguments) {
  NetLimits limits;
  limits.max_message_bytes = options.max_message_bytes;
  limits.compression = options.compression;
  limits.times = options.times;
  if (options.calls.connection.calls > 0)
    limits.max_streams =
        static_cast<uint32_t>(std::min<int64_t>(options.calls.connection.calls, 1 << 20));
  const std::vector<std::string> without = ApplyChannelArguments(arguments, &limits);
  if (!without.empty())
    spdlog::warn("server.grpc_channel_arguments: without effect: {} (docs/transport.md)",
                 absl::StrJoin(without, ", "));
  return limits;
}

class EpollTransport final : public NetTransport {
 public:
  EpollTransport(const MethodTable& methods, const TransportOptions& options,
                 const ChannelArguments& arguments, const HttpRoutes* routes)
      : options_(options), shared_(methods, options.calls, options.connections) {
    shared_.routes = routes;
    shared_.access = options.access;
    shared_.limits = LimitsOf(options, arguments);
  }
  ~EpollTransport() override { Shutdown(Clock::Steady().Now()); }

  absl::Status Start(const std::vector<ListenerSpec>& listeners) override;
  std::vector<std::string> addresses() const override { return addresses_; }
  ListenerCounts connections() const override { return shared_.connections.Counts(); }
  int64_t max_connections() const override { return shared_.connections.limits().max_connections; }
  CallLoad calls() const override { return shared_.book.all(); }
  CallRefusals refused_calls() const override { return shared_.book.refusals(); }
  absl::Status CheckTurning() const override;
  void Shutdown(TimePoint deadline) override;
  const EndCounts& ends() const override { return shared_.ends; }

 private:
  // Between checks for clients that do not read.
  static constexpr Duration kReadCheck = std::chrono::seconds(1);

  void Hand(int listener_fd, int fd);
  void ForEach(const std::function<void(Connection*)>& visit);
  void CutOverdue();

  const TransportOptions options_;
  NetShared shared_;
  std::vector<std::string> addresses_;
  std::map<int, ListenerSpec> specs_;  // by the listener's descriptor
  std::vector<std::unique_ptr<LoopOfConnections>> loops_;
  std::atomic<size_t> next_loop_{0};
  bool stopped_ = false;
  std::unique_ptr<Acceptor> acceptor_;
  TaskThreadPool cutter_{1, {"unread", 0, {}}, [this] {
                           CutOverdue();
                           return Clock::Steady().Now() + kReadCheck;
                         }};
};

void EpollTransport::Hand(int listener_fd, int fd) {
  const ListenerSpec& spec = specs_.at(listener_fd);
  PeerIdentity who = IdentityOf(fd, spec, shared_.access);
  std::shared_ptr<ssl_ctx_st> tls;
  if (spec.tls.context != nullptr) tls = spec.tls.context();
  loops_[next_loop_++ % loops_.size()]->Take(fd, std::move(who), std::move(tls));
}

absl::Status EpollTransport::CheckTurning() const {
  constexpr auto kLongest = std::chrono::seconds(2);
  const TimePoint now = options_.clock->Now();
  for (const auto& one : loops_)
    if (const TimePoint turned = one->loop()->last_turn(); turned < now - kLongest)
      return absl::UnavailableError(absl::StrCat(
          "a connection loop has not turned for ",
          std::chrono::duration_cast<std::chrono::seconds>(now - turned).count(), " s"));
  return absl::OkStatus();
}

absl::Status EpollTransport::Start(const std::vector<ListenerSpec>& listeners) {
  if (listeners.empty()) return absl::InvalidArgumentError("no listener: give --port or a socket");
  std::vector<ListenSocket> sockets;
  for (const ListenerSpec& listener : listeners) {
    FLOE_ASSIGN_OR_RETURN(ListenSocket socket, ListenSocket::Open(listener.address));
    addresses_.push_back(socket.address());
    specs_[socket.fd()] = listener;
    sockets.push_back(std::move(socket));
  }
  FLOE_RETURN_IF_ERROR(shared_.helpers.Start());
  constexpr int kCpusForTwo = 4;
  const int loops = FindUsableCpus().count() >= kCpusForTwo ? 2 : 1;
  for (int i = 0; i < loops; ++i) {
    auto made = std::make_unique<LoopOfConnections>(&shared_, *options_.clock);
    FLOE_RETURN_IF_ERROR(made->loop()->Start());
    loops_.push_back(std::move(made));
  }
  acceptor_ =
      std::make_unique<Acceptor>(std::move(sockets), &shared_.connections,
                                 [this](int listener_fd, int fd) { Hand(listener_fd, fd); });
  FLOE_RETURN_IF_ERROR(cutter_.Start());
  return acceptor_->Start();
}

void EpollTransport::CutOverdue() {
  ConnectionTable& connections = shared_.connections;
  const auto acknowledged = [&connections](const std::string& host, uint16_t port) {
    return connections.BytesAcknowledged(host, port);
  };
  for (const CallBook::Cut& cut : shared_.book.Overdue(acknowledged)) {
    spdlog::warn("{}:{} does not read: its connection is closed with {} bytes of replies unsent",
                 cut.host, cut.port, cut.reply_bytes);
    connections.Cut(cut.host, cut.port);
  }
}

void EpollTransport::ForEach(const std::function<void(Connection*)>& visit) {
  for (const auto& one : loops_)
    one->loop()->RunNow([&visit, loop = one.get()] { loop->ForEach(visit); });
}

void EpollTransport::Shutdown(TimePoint deadline) {
  if (acceptor_ == nullptr || std::exchange(stopped_, true)) return;
  cutter_.Stop();
  const auto with_protocol = [this](void (Protocol::*act)()) {
    ForEach([act](Connection* connection) {
      if (Protocol* const protocol = connection->protocol()) (protocol->*act)();
    });
  };
  Drain({*acceptor_, shared_.connections, shared_.gate,
         [&](TimePoint) {
           ForEach([](Connection* one) { one->NoteReason(EndReason::kDrain); });
           with_protocol(&Protocol::AskToLeave);
         },
         [&] {
           shared_.streams_end = true;
           with_protocol(&Protocol::EndStreams);
         },
         options_.time_to_leave},
        deadline);
  with_protocol(&Protocol::TakeNoMore);
  ForEach([](Connection* one) { one->Close(EndReason::kDrain); });
  shared_.gate.CloseAndWait(TimePoint::max());  // for calls that were just cancelled
  for (const auto& one : loops_) one->loop()->Stop();
  shared_.helpers.Stop();
}

}  // namespace

std::unique_ptr<NetTransport> MakeNetTransport(const MethodTable& methods,
                                               const TransportOptions& options,
                                               const ChannelArguments& arguments,
                                               const HttpRoutes* routes) {
  return std::make_unique<EpollTransport>(methods, options, arguments, routes);
}

}  // namespace floe::server
