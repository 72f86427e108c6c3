// CallBook: how many calls are in progress and how many bytes they hold, of each connection, of
// each address and in all, and which calls may begin.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/memory_budget.h"
#include "base/mutex.h"

namespace floe::server {

struct CallLimit {
  int64_t calls = 0;  // in progress; 0: no limit
  int64_t bytes = 0;  // of their requests, and of their replies until those are sent; 0: no limit
};

struct CallLimits {
  CallLimit connection, address, all;
  // A connection ends where replies wait and its client has taken less than kLeastRate for so long;
  // zero: never.
  Duration send_timeout = Duration::zero();
  static constexpr int64_t kLeastRate = 128 << 10;  // bytes a second
  // Pays for the bytes, but for those of small calls; outlives the book. Null: nobody does.
  const MemoryBudget* memory = nullptr;
  static constexpr int64_t kSmall = 64 << 10;
};

// Who calls, of what gRPC says of it: "ipv4:127.0.0.1:40213", "ipv6:%5B::1%5D:40213", "unix:".
struct Peer {
  std::string_view host;  // "127.0.0.1", "::1", "unix"
  uint16_t port = 0;      // 0: of a unix socket
  // Of this machine.
  bool local() const;
};
Peer PeerOf(std::string_view text);

struct CallLoad {
  int64_t calls = 0, request_bytes = 0, reply_bytes = 0;
};

class CallBook;

// A call's place in the book, left when it goes. Threading: one thread at a time.
class CallSeat {
 public:
  CallSeat() = default;
  ~CallSeat() { Leave(); }
  CallSeat(const CallSeat&) = delete;
  CallSeat& operator=(const CallSeat&) = delete;

  // What the request takes beside what was counted. RESOURCE_EXHAUSTED when it passes a limit.
  absl::Status AddRequest(int64_t bytes);
  // A reply that is to be sent. RESOURCE_EXHAUSTED when it passes a limit, and others are unsent.
  absl::Status AddReply(int64_t bytes);
  void Leave();

 private:
  friend class CallBook;
  struct Connection {
    std::string host;
    uint16_t port = 0;
    CallLoad load;
    CallLoad* address = nullptr;
    std::multiset<TimePoint> unsent;  // since when, of each reply
    TimePoint marked;                 // when its client had taken so many bytes
    int64_t taken = -1;
  };
  // What the call holds now is paid for; RESOURCE_EXHAUSTED when it cannot be.
  absl::Status Pay();

  CallBook* book_ = nullptr;
  Connection* connection_ = nullptr;
  int64_t request_bytes_ = 0, reply_bytes_ = 0;
  TimePoint reply_since_;
  MemoryShare paid_;
};

// Connections of unix sockets have no address: they are not told apart, and no limit of a single
// connection holds for them. Threading: any thread; outlives its seats.
class CallBook {
 public:
  explicit CallBook(const CallLimits& limits, const Clock* clock = &Clock::Steady())
      : limits_(limits), clock_(*clock) {}

  // RESOURCE_EXHAUSTED names the limit that the call passes, or says what memory is in use.
  absl::Status Take(std::string_view peer, int64_t request_bytes, CallSeat* seat);

  // Connections whose clients do not read: those whose replies are overdue and, where calls were
  // refused for want of bytes since the last look, the one that has most of them unsent for
  // kPressed.
  struct Cut {
    std::string host;
    uint16_t port;
    int64_t reply_bytes;
  };
  static constexpr Duration kPressed = std::chrono::seconds(5);
  // `taken`: how many bytes a client has taken so far.
  using Taken = std::function<int64_t(const std::string& host, uint16_t port)>;
  std::vector<Cut> Overdue(const Taken& taken);

  int64_t calls() const;
  int64_t bytes() const;
  int64_t refused() const;

 private:
  friend class CallSeat;
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  template <typename T>
  using ByName = std::unordered_map<std::string, T, Hash, std::equal_to<>>;

  CallSeat::Connection* Find(std::string_view peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Check(const CallSeat::Connection& connection, int64_t calls, int64_t bytes,
                     bool reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsOverdue(CallSeat::Connection* connection, TimePoint now, const Taken& taken)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Add(CallSeat::Connection* connection, int64_t calls, int64_t request, int64_t reply)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const CallLimits limits_;
  const Clock& clock_;
  mutable Mutex mutex_;
  ByName<CallSeat::Connection> connections_ ABSL_GUARDED_BY(mutex_);
  ByName<CallLoad> addresses_ ABSL_GUARDED_BY(mutex_);
  CallLoad all_ ABSL_GUARDED_BY(mutex_);
  int64_t refused_ ABSL_GUARDED_BY(mutex_) = 0;
  bool pressed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace floe::server
