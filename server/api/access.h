// Who calls, and what it may do: by a token, a client certificate, a user of this machine, or by
// nothing.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "config/config.h"
#include "config/token_file.h"
#include "server/api/logins.h"
#include "server/api/roles.h"

namespace floe::server {

class Access;

// Why calls are refused, for metrics.
enum class AccessRefusal : uint8_t { kListener, kAnonymous, kToken, kExpired, kRole, kModel };
inline constexpr int kAccessRefusals = 6;
const char* CauseOf(AccessRefusal cause);  // "listener", "anonymous", ...

// Since the start. Threading: any thread.
class AccessCounts {
 public:
  void Count(AccessRefusal cause) {
    counts_[static_cast<size_t>(cause)].fetch_add(1, std::memory_order_relaxed);
  }
  int64_t of(AccessRefusal cause) const {
    return counts_[static_cast<size_t>(cause)].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<int64_t>, kAccessRefusals> counts_ = {};
};

// Immutable.
struct Principal {
  std::string name;  // "token 'ci'", "anonymous": for messages and the log
  Roles roles;
  std::vector<std::string> models = {};  // globs of what it may use; empty: all
  int64_t expires = 0;                   // seconds since 1970; 0: never
  bool anonymous = false;
  std::string token_id = {}, token_hash = {};  // of the line of its token; "": it brought none
  bool is_browser = false;                     // that logged in with the token
};

// Who makes a call. By default this process itself, which may do what the listener offers.
// Threading: as a string.
class Caller {
 public:
  Caller() = default;
  // `wrong`: what is wrong with the token that the call brought; OK: nothing.
  Caller(const Access* access, std::shared_ptr<const Principal> who, absl::Status wrong = {})
      : access_(access), who_(std::move(who)), wrong_(std::move(wrong)) {}

  // PERMISSION_DENIED, or UNAUTHENTICATED where a token could help; names the way out.
  absl::Status CheckRole(Role role) const;
  // Of this alone: UNAUTHENTICATED, when the token that it brought is wrong or has expired.
  absl::Status CheckToken() const;
  // Whether it brought a token, be it right or wrong.
  bool has_token() const { return !wrong_.ok() || (who_ != nullptr && !who_->token_id.empty()); }
  // Whether its token is in use still.
  bool Holds() const;
  // PERMISSION_DENIED unless it may use and see the model.
  absl::Status CheckModel(std::string_view model) const;
  bool Sees(std::string_view model) const;
  std::string_view name() const {
    return who_ == nullptr ? std::string_view("this process") : std::string_view(who_->name);
  }
  const std::shared_ptr<const Principal>& principal() const { return who_; }
  const Access* access() const { return access_; }

 private:
  const Access* access_ = nullptr;  // null: nobody asks
  std::shared_ptr<const Principal> who_;
  absl::Status wrong_;
};

// Everything that decides by the head of a call whether it is opened: what its listener offers, who
// calls, and the role. Counts refusals.
absl::Status CheckAccess(const ListenerRoles& roles, MethodRole method, bool local,
                         const Caller& caller);

// What a connection shows of its client.
struct ConnectionFacts {
  std::string common_name = {};         // of its certificate, which was checked; "": none
  std::vector<std::string> names = {};  // alternative ones: "DNS:a.b"
  std::optional<uid_t> uid = {};        // of unix sockets
  bool to_admin_listener = false;       // there root and the server's own user have all roles
};

struct AccessState {
  int64_t tokens = 0;   // that have not expired
  absl::Status status;  // OK, or why the file's newer content is not used
};

// Outlives the callers. One class: whatever says who calls has its answer in one table of tokens
// and principals. Threading: any thread, but Poll and Reload one at a time.
class Access {
 public:
  using WallClock = std::function<std::time_t()>;  // seconds since 1970

  // Reads the file of tokens. NOT_FOUND when it cannot be read, else INVALID_ARGUMENT, which names
  // the place and what was expected.
  static absl::StatusOr<std::shared_ptr<Access>> Make(
      const AuthConfig& config, WallClock now = [] { return std::time(nullptr); });

  Caller OfConnection(const ConnectionFacts& facts) const;
  // Of a call by a caller of OfConnection: whose token it brings, if it does. `authorization`: the
  // field's value; "": there is none. Without a file of tokens the field means nothing.
  Caller OfCall(const Caller& connection, std::string_view authorization) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Of a browser whose user shows a token: the value of the cookie that OfLogin takes instead, for
  // Logins::kSeconds at most. `peer`: as in CallHead. UNAUTHENTICATED: the token is wrong;
  // RESOURCE_EXHAUSTED: too many were, from there; PERMISSION_DENIED: it may not read.
  absl::StatusOr<std::string> LogIn(std::string_view token, const std::string& peer) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Of a call by a caller of OfCall with such a cookie: the token's roles but admin. The caller as
  // it is, where it brings a token of its own, or the login is over: its time, its token's, or the
  // token is not in use any more.
  Caller OfLogin(const Caller& caller, std::string_view cookie) const ABSL_LOCKS_EXCLUDED(mutex_);
  void LogOut(std::string_view cookie) const { logins_.Remove(cookie); }
  // Whether the token that it came by is in use.
  bool Holds(const Principal& who) const ABSL_LOCKS_EXCLUDED(mutex_);

  // To be called each second or two: reads the file, and uses other content once it was the same in
  // two calls. What is wrong changes nothing but state() and the log.
  void Poll() { Step(/*asked=*/false).IgnoreError(); }
  // The same at once, for SIGHUP.
  absl::Status Reload() { return Step(/*asked=*/true); }

  bool has_tokens() const { return !config_.tokens_file.empty(); }
  AccessState state() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::time_t now() const { return now_(); }
  AccessCounts& counts() const { return counts_; }

 private:
  struct Token {
    TokenLine line;
    std::shared_ptr<const Principal> who;
  };
  using Tokens = std::unordered_map<std::string, Token>;  // by id

  Access(const AuthConfig& config, WallClock now) : config_(config), now_(std::move(now)) {}
  absl::Status AddPrincipals();
  std::shared_ptr<const Principal> PrincipalOf(std::string name,
                                               const PrincipalConfig& config) const;
  std::shared_ptr<const Tokens> tokens() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Tokens> Parse(const std::string& text) const;
  absl::Status Use(std::string text);
  absl::Status Step(bool asked);
  absl::Status Refused(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  const AuthConfig config_;
  const WallClock now_;
  std::shared_ptr<const Principal> anonymous_, owner_;
  std::vector<std::pair<std::string, std::shared_ptr<const Principal>>> by_certificate_;
  std::map<uid_t, std::shared_ptr<const Principal>> by_uid_;
  mutable AccessCounts counts_;
  mutable Logins logins_;
  // The stepping thread's: what is in use, what was found wrong, and what the last Poll saw.
  std::string used_;
  std::optional<std::string> refused_, seen_;

  mutable Mutex mutex_;
  std::shared_ptr<const Tokens> tokens_ ABSL_GUARDED_BY(mutex_);
  absl::Status problem_ ABSL_GUARDED_BY(mutex_);
};

// Takes the field "authorization" out of the fields; several are joined, which no token is.
std::string TakeAuthorization(std::vector<std::pair<std::string, std::string>>* fields);

// Leaves those of a list of messages whose names the caller sees.
template <typename List>
void KeepSeen(const Caller& caller, List* models) {
  models->erase(std::remove_if(models->begin(), models->end(),
                               [&caller](const auto& model) { return !caller.Sees(model.name()); }),
                models->end());
}

}  // namespace floe::server
