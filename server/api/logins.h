// Logins: browsers that showed a token once, and send a cookie since then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "config/token_file.h"

namespace floe::server {

// Times are seconds since 1970. Threading: any thread.
class Logins {
 public:
  static constexpr int64_t kSeconds = 8 * 3600;  // then a browser shows its token again
  static constexpr size_t kMost = 1024;          // the one that ends first makes room
  // From one host within this time; then no token of it is looked at until the time is over.
  static constexpr int kMostFailures = 5;
  static constexpr int64_t kFailureSeconds = 60;

  struct Login {
    std::string token_id, token_hash;  // of the line of its token
    int64_t ends = 0;
  };

  // By the token of this line: the value of the cookie, 256 random bits, of which only a salted
  // hash is kept. UNAVAILABLE without random numbers.
  absl::StatusOr<std::string> Add(const TokenLine& by, int64_t now) ABSL_LOCKS_EXCLUDED(mutex_);
  // Compares in constant time, as tokens are. Nothing: it is none, or is over.
  std::optional<Login> Find(std::string_view cookie, int64_t now) const ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(std::string_view cookie) ABSL_LOCKS_EXCLUDED(mutex_);

  // RESOURCE_EXHAUSTED, with when to come again, after too many failures of the host.
  absl::Status CheckFailures(const std::string& host, int64_t now) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  void CountFailure(const std::string& host, int64_t now) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    TokenLine line;  // of the cookie, which has the form of a token
    Login login;
  };
  struct Failures {
    int count = 0;
    int64_t until = 0;
  };
  using Entries = std::map<std::string, Entry, std::less<>>;
  Entries::const_iterator FindEntry(std::string_view cookie) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);                           // by id
  std::map<std::string, Failures> failures_ ABSL_GUARDED_BY(mutex_);  // by host
};

}  // namespace floe::server
