// StartUp: when floed says that it is ready, what it says of its models, and whether it goes on.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "server/registry/served_table.h"

namespace floe::server {

// Ready: every model has settled, or has had its time. Which of them serve is another question,
// which the health service and the status answer. Threading: one thread at a time.
class StartUp {
 public:
  struct Options {
    bool exit_on_error = false;
    bool polls = true;  // places of models are looked at again and again
    std::function<void(const std::string& status)> ready;   // once
    std::function<void(const std::string& status)> status;  // another one than told before
  };
  // Whoever waits for the service, and would end it if it waited too long, waits no longer for a
  // model that hangs.
  static constexpr Duration kTimeout = std::chrono::seconds(60);

  // `now`: it listens.
  StartUp(Options options, TimePoint now) : options_(std::move(options)), until_(now + kTimeout) {}

  // Tells what is new. False: a model has failed, and the process is to end for it.
  bool Step(const ServedTable::Tally& models, TimePoint now);
  // When to step though nothing has changed.
  TimePoint next() const { return ready_ ? TimePoint::max() : until_; }

 private:
  void TellFailed(const std::vector<std::string>& failed);

  const Options options_;
  const TimePoint until_;
  bool ready_ = false;
  bool complete_ = false;  // all models have been available at a time
  std::string status_;
  std::vector<std::string> failed_;
};

}  // namespace floe::server
