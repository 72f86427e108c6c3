// CallBook: counts calls in progress and their bytes, per connection, per address and in all, and
// refuses calls beyond the limits.
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
  // A connection ends if replies wait and its client has read less than kLeastRate for this time;
  // zero: never.
  Duration send_timeout = Duration::zero();
  static constexpr int64_t kLeastRate = 128 << 10;  // bytes a second
  // Pays for the bytes, except those of small calls. Outlives the book; may be null.
  const MemoryBudget* memory = nullptr;
  static constexpr int64_t kSmall = 64 << 10;
};

// Who calls, as in CallHead::peer: "127.0.0.1:40213", "[::1]:40213", "[fe80::1%eth0]:7", "unix".
struct Peer {
  std::string_view host;  // "127.0.0.1", "::1", without a scope; "unix"
  uint16_t port = 0;      // 0: of a unix socket
  // A process of this machine.
  bool local() const;
};
Peer PeerOf(std::string_view text);

struct CallLoad {
  int64_t calls = 0, request_bytes = 0, reply_bytes = 0;
};

// Since the start, by what had no room: a limit, or the memory.
struct CallRefusals {
  int64_t connection = 0, address = 0, all = 0, memory = 0;
};

class CallBook;

// A call's place in the book, left when it goes. Threading: one thread at a time.
class CallSeat {
 public:
  CallSeat() = default;
  ~CallSeat() { Leave(); }
  CallSeat(const CallSeat&) = delete;
  CallSeat& operator=(const CallSeat&) = delete;

  // Further bytes of the request. RESOURCE_EXHAUSTED beyond a limit.
  absl::Status AddRequest(int64_t bytes);
  // A reply to send. RESOURCE_EXHAUSTED beyond a limit, unless no other reply is unsent.
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
    TimePoint marked;                 // when its client had acknowledged `acknowledged`
    int64_t acknowledged = -1;
  };
  // Takes the call's bytes from the budget. RESOURCE_EXHAUSTED when it has too few.
  absl::Status Pay();

  CallBook* book_ = nullptr;
  Connection* connection_ = nullptr;
  int64_t request_bytes_ = 0, reply_bytes_ = 0;
  TimePoint reply_since_;
  MemoryShare paid_;
};

// Connections of unix sockets have no address. They count as one address, without limits per
// connection. Threading: any thread; outlives its seats.
class CallBook {
 public:
  explicit CallBook(const CallLimits& limits, const Clock* clock = &Clock::Steady())
      : limits_(limits), clock_(*clock) {}

  // RESOURCE_EXHAUSTED names the limit that the call exceeds, or the memory in use.
  absl::Status Take(std::string_view peer, int64_t request_bytes, CallSeat* seat);

  // Connections whose clients do not read: those with overdue replies. If there are none and calls
  // were refused by max_call_bytes since the last call of this, the connection with most bytes
  // unsent for kPressed.
  struct Cut {
    std::string host;
    uint16_t port;
    int64_t reply_bytes;
  };
  static constexpr Duration kPressed = std::chrono::seconds(5);
  // How many bytes a client has acknowledged so far.
  using Acknowledged = std::function<int64_t(const std::string& host, uint16_t port)>;
  std::vector<Cut> Overdue(const Acknowledged& acknowledged);

  CallLoad all() const;
  CallRefusals refusals() const;

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
  bool IsOverdue(CallSeat::Connection* connection, TimePoint now, const Acknowledged& acknowledged)
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
  CallRefusals refusals_ ABSL_GUARDED_BY(mutex_);
  bool pressed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace floe::server
