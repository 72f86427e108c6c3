// RefusalLog: which requests were refused, as a few lines of the log and a list for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace floe::server {

// Requests that were refused for one cause.
struct Refusals {
  std::string model;  // as the requests named it, or ""
  uint64_t count = 0;
  // Of the last one.
  TimePoint when = TimePoint::min();
  std::string request_id, message;
  absl::StatusCode code = absl::StatusCode::kUnknown;
};

// One line for each model and cause, at once when it first occurs and then at most every kEvery,
// with how many such requests had no line. Two refusals have the same cause if their messages
// differ in nothing but numbers and what is quoted. Threading: any thread.
class RefusalLog {
 public:
  static constexpr Duration kEvery = std::chrono::minutes(1);
  // Models and causes that are told apart at a time. Callers choose names, so that there may be any
  // number; further ones share a line.
  static constexpr size_t kMost = 256;

  // The line about a request that ended with `status`, or "" when none is due. `model`: as the
  // request names it, or "".
  std::string Line(std::string_view model, const std::string& request_id,
                   const absl::Status& status, TimePoint now);

  // The causes that occurred last, at most so many, the last one first; of one model, unless
  // `model` is "".
  std::vector<Refusals> Recent(size_t most, std::string_view model = {}) const;

 private:
  struct Cause {
    TimePoint next = TimePoint::min();
    uint64_t unlogged = 0;
    Refusals seen;
  };
  Cause& Find(size_t hash, TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::unordered_map<size_t, Cause> causes_ ABSL_GUARDED_BY(mutex_);  // by a hash
};

}  // namespace floe::server
