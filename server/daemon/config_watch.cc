// When to read the files again, what to do with the result, and when to retry.
#include "server/daemon/config_watch.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "config/files.h"
#include "server/loading/load_errors.h"

namespace floe::server {
namespace {

void NoteWhatNeedsARestart(const ServerConfig& started_with, const ServerConfig& now) {
  const std::vector<std::string> changes = ChangesForRestart(started_with, now);
  if (!changes.empty())
    spdlog::warn(
        "the configuration differs in what is read at the start only; restart floed for {}",
        absl::StrJoin(changes, ", "));
}

// A label may wait for its version, as a model waits for its files.
bool MayPass(const absl::Status& error) {
  return (MayRetry(error) && !absl::IsAborted(error)) || absl::IsFailedPrecondition(error);
}

}  // namespace

ConfigWatch::ConfigWatch(Options options)
    : options_(std::move(options)),
      current_(options_.config),
      next_scan_(options_.clock->Now() + options_.poll),
      thread_(1, {"config", 0, {}}, [this] {
        Step();
        return options_.poll > Duration::zero() ? next_scan_ : TimePoint::max();
      }) {}

void ConfigWatch::ReloadNow(const ReloadDone& done) {
  if (!done) {
    requested_ = true;
    thread_.Post([] {});  // it steps afterwards
    return;
  }
  const bool runs = thread_.Post([this, done] {
    MutexLock lock(mutex_);
    waiting_.push_back(done);
    requested_ = true;
  });
  if (!runs) done(absl::UnavailableError("the server is shutting down"));
}

void ConfigWatch::Step() {
  const bool requested = requested_.exchange(false);
  const TimePoint now = options_.clock->Now();
  const bool scan = options_.poll > Duration::zero() && now >= next_scan_;
  if (!requested && !scan) return;
  const uint64_t stamp = FilesStamp();
  bool settled = false;
  if (scan) {
    next_scan_ = now + options_.poll;
    settled = seen_ == stamp;
    seen_ = stamp;
  }
  if (requested || (settled && stamp != read_)) {
    read_ = stamp;
    std::vector<ReloadDone> waiting;
    if (requested) {
      MutexLock lock(mutex_);
      waiting.swap(waiting_);
    }
    const absl::Status result = Reload(requested);
    for (const ReloadDone& done : waiting) done(result);
  } else if (pending_ && stamp == read_ && now >= pending_->retry_at) {
    Retry();
  }
}

absl::Status ConfigWatch::Reload(bool requested) {
  pending_.reset();
  const bool failed_before = std::exchange(failed_, true);
  absl::StatusOr<ServerConfig> config = options_.read(current_);
  if (!config.ok()) {
    spdlog::error("the configuration was not changed: {}", std::string(config.status().message()));
    options_.note(config.status());
    return config.status();
  }
  // Written again with the same content.
  if (!requested && config->source.content_hash == current_.source.content_hash) {
    if (failed_before) options_.note(absl::OkStatus());
    failed_ = false;
    return absl::OkStatus();
  }
  NoteWhatNeedsARestart(options_.config, *config);
  Pending attempt{*std::move(config),
                  options_.generation(),
                  requested ? "SIGHUP" : "a change of its files",
                  kFirstRetry,
                  {}};
  ReloadRequest request{attempt.config.models, options_.clock->Now() + kTimeout};
  request.who = attempt.who;
  absl::Status applied = options_.apply(std::move(request));
  Applied(applied, std::move(attempt));
  return applied;
}

// A configuration that became active since the last attempt is newer than these files.
void ConfigWatch::Retry() {
  Pending attempt = *std::exchange(pending_, std::nullopt);
  if (options_.generation() != attempt.replaces) return;
  attempt.wait = std::min(2 * attempt.wait, kLongestRetry);
  ReloadRequest request{attempt.config.models, options_.clock->Now() + kTimeout, attempt.replaces};
  request.who = absl::StrCat("a retry after ", attempt.who);
  const absl::Status applied = options_.apply(std::move(request));
  Applied(applied, std::move(attempt));
}

// Only an active configuration becomes current_. The registry has logged the error.
void ConfigWatch::Applied(const absl::Status& status, Pending attempt) {
  failed_ = !status.ok();
  if (status.ok()) {
    current_ = std::move(attempt.config);
  } else if (MayPass(status)) {
    attempt.retry_at = options_.clock->Now() + attempt.wait;
    pending_ = std::move(attempt);
  }
}

uint64_t ConfigWatch::FilesStamp() const {
  uint64_t stamp = 0;
  for (const std::string& file : current_.source.files) {
    struct stat info = {};
    if (stat(file.c_str(), &info) != 0) info = {};
    stamp =
        absl::HashOf(stamp, info.st_ino, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
  }
  return stamp;
}

}  // namespace floe::server
