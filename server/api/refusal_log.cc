// Tells causes apart by the words of a message.
#include "server/api/refusal_log.h"

#include <algorithm>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "base/quoted.h"

namespace floe::server {
namespace {

constexpr size_t kOthers = 0;  // the cause that those beyond kMost share
constexpr size_t kMostMessageBytes = 1024;
constexpr size_t kMostModelBytes = 256;

// The words that do not come from the request: without digits, and without what is in quotes.
std::string Words(std::string_view message) {
  std::string words;
  bool quoted = false;
  for (const char c : message.substr(0, kMostMessageBytes)) {
    if (c == '\'') quoted = !quoted;
    if (!quoted && (c < '0' || c > '9')) words += c;
  }
  return words;
}

}  // namespace

RefusalLog::Cause& RefusalLog::Find(size_t hash, TimePoint now) {
  const auto found = causes_.find(hash);
  if (found != causes_.end()) return found->second;
  if (causes_.size() >= kMost)
    std::erase_if(causes_, [&](const auto& cause) { return cause.second.next <= now; });
  return causes_[causes_.size() < kMost ? hash : kOthers];
}

std::string RefusalLog::Line(std::string_view model, const std::string& request_id,
                             const absl::Status& status, TimePoint now) {
  const absl::string_view said = status.message();
  const std::string message(said.substr(0, kMostMessageBytes + 1));
  const size_t hash = absl::HashOf(std::string(model), status.raw_code(), Words(message));
  uint64_t unlogged = 0;
  {
    const MutexLock lock(mutex_);
    Cause& cause = Find(hash, now);
    Refusals& seen = cause.seen;
    seen.model.assign(model.substr(0, kMostModelBytes));
    seen.request_id = request_id;
    seen.message = message;
    seen.code = status.code();
    seen.when = now;
    ++seen.count;
    if (now < cause.next) {
      ++cause.unlogged;
      return "";
    }
    unlogged = cause.unlogged;
    cause.unlogged = 0;
    cause.next = now + kEvery;
  }
  return absl::StrCat("request ", Quoted(request_id), model.empty() ? "" : " of model ",
                      model.empty() ? "" : Quoted(model),
                      " refused: ", absl::StatusCodeToString(status.code()), ": ",
                      Printable(message, kMostMessageBytes),
                      unlogged == 0 ? "" : absl::StrCat(" (", unlogged, " more like it before)"));
}

std::vector<Refusals> RefusalLog::Recent(size_t most, std::string_view model) const {
  std::vector<Refusals> recent;
  {
    const MutexLock lock(mutex_);
    for (const auto& [hash, cause] : causes_)
      if (model.empty() || cause.seen.model == model) recent.push_back(cause.seen);
  }
  std::sort(recent.begin(), recent.end(),
            [](const Refusals& a, const Refusals& b) { return a.when > b.when; });
  if (recent.size() > most) recent.resize(most);
  return recent;
}

}  // namespace floe::server
