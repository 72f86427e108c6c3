// Browsers' logins: a cookie in the place of a token.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "server/api/access.h"

namespace floe::server {
namespace {

// "127.0.0.1" of "127.0.0.1:40213".
std::string HostOf(const std::string& peer) {
  const size_t colon = peer.rfind(':');
  return peer.substr(0, colon == 0 ? std::string::npos : colon);
}

// Pages of a browser change nothing of the server, whatever the token may do.
Principal BrowserOf(const Principal& token, int64_t ends) {
  Principal browser = token;
  browser.name = absl::StrCat("a browser with ", token.name);
  browser.roles = {};
  for (const Role role : {Role::kInfer, Role::kRead, Role::kHealth})
    if (token.roles.Has(role)) browser.roles.Add(role);
  browser.expires = token.expires == 0 ? ends : std::min(ends, token.expires);
  browser.is_browser = true;
  return browser;
}

}  // namespace

std::shared_ptr<const Access::Tokens> Access::tokens() const {
  MutexLock lock(mutex_);
  return tokens_;
}

absl::StatusOr<std::string> Access::LogIn(std::string_view token, const std::string& peer) const {
  if (!has_tokens()) return absl::FailedPreconditionError("this server has no file of tokens");
  const int64_t now = now_();
  const std::string host = HostOf(peer);
  FLOE_RETURN_IF_ERROR(logins_.CheckFailures(host, now));
  const Caller caller = OfCall({this, anonymous_}, absl::StrCat("Bearer ", std::string(token)));
  if (const absl::Status wrong = caller.CheckToken(); !wrong.ok()) {
    logins_.CountFailure(host, now);
    spdlog::warn("auth: a login from {} failed: {}", peer, std::string(wrong.message()));
    return wrong;
  }
  const Principal& who = *caller.principal();
  const Caller browser(this,
                       std::make_shared<const Principal>(BrowserOf(who, now + Logins::kSeconds)));
  FLOE_RETURN_IF_ERROR(browser.CheckRole(Role::kRead));
  const std::shared_ptr<const Tokens> all = tokens();
  const auto found = all->find(who.token_id);
  if (found == all->end()) return absl::UnauthenticatedError("the token was just taken away");
  spdlog::info("auth: {} logged in with a browser from {}", who.name, peer);
  return logins_.Add(found->second.line, now);
}

Caller Access::OfLogin(const Caller& caller, std::string_view cookie) const {
  if (caller.has_token()) return caller;
  const std::optional<Logins::Login> login = logins_.Find(cookie, now_());
  if (!login.has_value()) return caller;
  const std::shared_ptr<const Tokens> all = tokens();
  const auto found = all->find(login->token_id);
  if (found == all->end() || found->second.line.hash != login->token_hash) return caller;
  return {this, std::make_shared<const Principal>(BrowserOf(*found->second.who, login->ends))};
}

bool Access::Holds(const Principal& who) const {
  if (who.token_id.empty()) return true;
  const std::shared_ptr<const Tokens> all = tokens();
  const auto found = all->find(who.token_id);
  return found != all->end() && found->second.line.hash == who.token_hash;
}

bool Caller::Holds() const {
  return who_ == nullptr || who_->token_id.empty() || access_->Holds(*who_);
}

}  // namespace floe::server
