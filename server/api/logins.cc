#include "server/api/logins.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/retry_after.h"
#include "base/status.h"

namespace floe::server {
namespace {

constexpr size_t kMostHosts = 1024;
constexpr char kOtherHosts[] = "";  // those beyond share a count

}  // namespace

absl::StatusOr<std::string> Logins::Add(const TokenLine& by, int64_t now) {
  Entry entry;
  FLOE_ASSIGN_OR_RETURN(std::string cookie, MakeToken(&entry.line));
  entry.login = {by.id, by.hash, now + kSeconds};
  if (by.expires != 0) entry.login.ends = std::min(entry.login.ends, by.expires);
  std::string id = entry.line.id;
  MutexLock lock(mutex_);
  std::erase_if(entries_, [now](const auto& one) { return one.second.login.ends <= now; });
  if (entries_.size() >= kMost)
    entries_.erase(std::min_element(entries_.begin(), entries_.end(), [](auto& a, auto& b) {
      return a.second.login.ends < b.second.login.ends;
    }));
  entries_.insert_or_assign(std::move(id), std::move(entry));
  return cookie;
}

Logins::Entries::const_iterator Logins::FindEntry(std::string_view cookie) const {
  const auto found = entries_.find(TokenId(cookie));
  return found != entries_.end() && IsTokenOf(cookie, found->second.line) ? found : entries_.end();
}

std::optional<Logins::Login> Logins::Find(std::string_view cookie, int64_t now) const {
  MutexLock lock(mutex_);
  const auto found = FindEntry(cookie);
  if (found == entries_.end() || found->second.login.ends <= now) return std::nullopt;
  return found->second.login;
}

void Logins::Remove(std::string_view cookie) {
  MutexLock lock(mutex_);
  if (const auto found = FindEntry(cookie); found != entries_.end()) entries_.erase(found);
}

absl::Status Logins::CheckFailures(const std::string& host, int64_t now) const {
  MutexLock lock(mutex_);
  auto found = failures_.find(host);
  if (found == failures_.end() && failures_.size() >= kMostHosts)
    found = failures_.find(kOtherHosts);
  if (found == failures_.end() || found->second.until <= now) return absl::OkStatus();
  if (found->second.count < kMostFailures) return absl::OkStatus();
  const int64_t wait = found->second.until - now;
  return WithRetryAfter(absl::ResourceExhaustedError(absl::StrCat(
                            "too many logins from this address failed; try again in ", wait, " s")),
                        std::chrono::seconds(wait));
}

void Logins::CountFailure(const std::string& host, int64_t now) {
  MutexLock lock(mutex_);
  if (failures_.size() >= kMostHosts)
    std::erase_if(failures_, [now](const auto& one) { return one.second.until <= now; });
  const bool room = failures_.size() < kMostHosts || failures_.count(host) > 0;
  Failures& failures = failures_[room ? host : kOtherHosts];
  if (failures.until <= now) failures = {0, now + kFailureSeconds};
  ++failures.count;
}

}  // namespace floe::server
