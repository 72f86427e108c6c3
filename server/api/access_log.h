// AccessLog: a line of JSON for each inference, or for some of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/clock.h"
#include "server/request/request.h"

namespace floe::server {

// What a line says. "" and 0: not known.
struct AccessRecord {
  std::string_view peer, method;  // as in CallHead; of REST the path
  std::string_view caller;        // the name of its principal
  std::string_view model, signature;
  int64_t version = 0;
  absl::Status status;
  int64_t request_bytes = 0, reply_bytes = 0;
  Duration took = Duration::zero();
  Timings timings;
  std::string_view request_id, trace_id;
  std::string_view refused;  // why no door took the call
};

// Threading: any thread.
class AccessLog {
 public:
  // Gets each line with its newline, and must not block.
  using Write = std::function<void(std::string line)>;
  // Seconds since 1970, for the lines.
  using WallClock = double (*)();
  // Of the inferences that succeed, one in `one_in` has a line; every other one has.
  AccessLog(int64_t one_in, Write write, WallClock wall_clock = nullptr);

  // Whether an inference that ends so is to have a line. Counts it.
  bool Takes(const absl::Status& status) {
    return !status.ok() || succeeded_.fetch_add(1, std::memory_order_relaxed) % one_in_ == 0;
  }
  void Add(const AccessRecord& record) const;

 private:
  const uint64_t one_in_;
  const Write write_;
  const WallClock wall_clock_;
  std::atomic<uint64_t> succeeded_{0};
};

}  // namespace floe::server
