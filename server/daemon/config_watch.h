// ConfigWatch: reads the configuration again when asked to, or when its files have changed, and
// has its models activated.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "config/config.h"
#include "server/registry/registry.h"

namespace floe::server {

// Only the models are taken over; that other parts differ is said in the log. A configuration that
// cannot be read leaves the old one until the files change once more, or ReloadNow is called. So
// does one that cannot be activated; where the reason may pass, it is retried until another one is
// active. Files that changed are read once two scans in a row found them the same: those that are
// still being written may be valid, and name fewer models. Threading: any thread; the callbacks run
// on the watch's own thread.
class ConfigWatch {
 public:
  struct Options {
    ServerConfig config;  // the active one
    Duration poll = {};   // between two scans of its files; 0: only by ReloadNow
    std::function<absl::StatusOr<ServerConfig>(const ServerConfig& current)> read;
    // ModelRegistry::Reload; `generation` is that of the active configuration.
    std::function<absl::Status(ReloadRequest)> apply;
    std::function<int64_t()> generation;
    // How reading went where nothing is applied: the files are wrong, or right again as they were.
    std::function<void(const absl::Status&)> note;
    const Clock* clock = &Clock::Steady();
  };
  // What a change may take, with all that is to be loaded for it.
  static constexpr Duration kTimeout = std::chrono::minutes(10);
  // From one attempt to the next, twice as long each time.
  static constexpr Duration kFirstRetry = std::chrono::seconds(10);
  static constexpr Duration kLongestRetry = std::chrono::minutes(1);

  explicit ConfigWatch(Options options);
  ~ConfigWatch();  // Stop()
  ConfigWatch(const ConfigWatch&) = delete;
  ConfigWatch& operator=(const ConfigWatch&) = delete;

  absl::Status Start();  // RESOURCE_EXHAUSTED when the system gives no thread
  void ReloadNow();      // returns at once
  void Stop();           // waits for a reload under way

  // Does what is due, now; for tests, and for the thread.
  void Step();

 private:
  // A configuration that is right, and could not be activated yet.
  struct Pending {
    ServerConfig config;
    int64_t replaces = 0;  // the generation that was active
    std::string who;       // SIGHUP, or files that changed
    Duration wait = kFirstRetry;
    TimePoint retry_at;
  };

  void Run();
  void Reload(bool requested);
  void Retry();
  void Applied(const absl::Status& status, Pending attempt);
  uint64_t FilesStamp() const;

  const Options options_;
  Mutex mutex_;
  CondVar wake_;
  bool requested_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  // The stepping thread's.
  ServerConfig current_;
  std::optional<Pending> pending_;
  bool failed_ = false;  // the files as they were last read
  // Of the files: at the last look, and when they were last read, or tried. None at the start, as
  // they may have changed since `config` was read.
  std::optional<uint64_t> seen_, read_;
  TimePoint next_look_;
  std::thread thread_;
};

}  // namespace floe::server
