// ConfigWatch: reads the configuration again at SIGHUP or when its files change, and has its models
// activated.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/task_thread_pool.h"
#include "config/config.h"
#include "server/registry/registry.h"

namespace floe::server {

// Only the models are applied; changes of other keys are logged. If the configuration cannot be
// read or activated, the old one stays active until the files change again or ReloadNow is called.
// If the reason may pass, it is retried until another one is active. Changed files are read once
// two scans in a row find them the same: a half-written file may be valid, and name fewer models.
// Threading: any thread; the callbacks run on the watch's own thread.
class ConfigWatch {
 public:
  struct Options {
    ServerConfig config;  // the active one
    Duration poll = {};   // between two scans of its files; 0: only by ReloadNow
    std::function<absl::StatusOr<ServerConfig>(const ServerConfig& current)> read;
    // ModelRegistry::Reload; `generation` is that of the active configuration.
    std::function<absl::Status(ReloadRequest)> apply;
    std::function<int64_t()> generation;
    // The result of a read after which nothing is applied: an error, or files that are as before.
    std::function<void(const absl::Status&)> note;
    const Clock* clock = &Clock::Steady();
  };
  // Time limit of a change, with the loads for it.
  static constexpr Duration kTimeout = std::chrono::minutes(10);
  // Between attempts, doubled each time.
  static constexpr Duration kFirstRetry = std::chrono::seconds(10);
  static constexpr Duration kLongestRetry = std::chrono::minutes(1);

  explicit ConfigWatch(Options options);
  ~ConfigWatch() { Stop(); }
  ConfigWatch(const ConfigWatch&) = delete;
  ConfigWatch& operator=(const ConfigWatch&) = delete;

  // RESOURCE_EXHAUSTED when the system gives no thread.
  absl::Status Start() { return thread_.Start(); }
  // Returns at once. `done`, which may be empty, comes with the result on the watch's thread; or
  // with UNAVAILABLE here, after Stop.
  void ReloadNow(const ReloadDone& done = nullptr) ABSL_LOCKS_EXCLUDED(mutex_);
  void Stop() { thread_.Stop(); }  // waits for a reload under way

  // Does what is due now; for tests, and for the thread.
  void Step();

 private:
  // A valid configuration that could not be activated yet.
  struct Pending {
    ServerConfig config;
    int64_t replaces = 0;  // the generation that was active
    std::string who;       // SIGHUP, or files that changed
    Duration wait = kFirstRetry;
    TimePoint retry_at;
  };

  absl::Status Reload(bool requested);
  void Retry();
  void Applied(const absl::Status& status, Pending attempt);
  uint64_t FilesStamp() const;

  const Options options_;
  std::atomic<bool> requested_{false};
  Mutex mutex_;
  std::vector<ReloadDone> waiting_ ABSL_GUARDED_BY(mutex_);  // for the result of a request
  // The stepping thread's.
  ServerConfig current_;
  std::optional<Pending> pending_;
  bool failed_ = false;  // the files as they were last read
  // Stamps of the files: at the last scan, and at the last read. None at the start, because they
  // may have changed since `config` was read.
  std::optional<uint64_t> seen_, read_;
  TimePoint next_scan_;
  TaskThreadPool thread_;
};

}  // namespace floe::server
