// StartUp: when floed reports that it is ready, its status line, and whether a failure ends it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "server/registry/served_table.h"

namespace floe::server {

// The start is over when every model serves or has failed, or kTimeout is over. This is what the
// service manager is told. The log says "ready" when health does. Threading: one thread at a time.
class StartUp {
 public:
  struct Options {
    bool exit_on_error = false;
    bool strict = true;  // ready when all models serve; false: when one does (strict_readiness)

    bool polls = true;                                      // base_paths are scanned periodically
    std::function<void(const std::string& status)> ready;   // once
    std::function<void(const std::string& status)> status;  // when it has changed
  };
  // A model that hangs delays readiness no longer than this. The service manager would end a
  // service that is not ready in time.
  static constexpr Duration kTimeout = std::chrono::seconds(60);

  // `now`: when it began to listen.
  StartUp(Options options, TimePoint now) : options_(std::move(options)), until_(now + kTimeout) {}

  // Reports changes. False: a model has failed and exit_on_error is set, so the process must end.
  bool Step(const ServedTable::Tally& models, TimePoint now);
  // When to step even if nothing has changed.
  TimePoint next() const { return started_ ? TimePoint::max() : until_; }

 private:
  void LogReadiness(const ServedTable::Tally& models);
  void ReportFailed(const std::vector<std::string>& failed);

  const Options options_;
  const TimePoint until_;
  bool started_ = false;
  bool logged_ready_ = false;

  bool complete_ = false;  // all models have been available at the same time
  std::string status_;
  std::vector<std::string> failed_;
};

}  // namespace floe::server
