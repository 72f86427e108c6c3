// The loop of sigtimedwait: it wakes for signals, for a new time limit, and when the limit is over.
#include "server/daemon/signals.h"

#include <pthread.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "server/daemon/logging.h"

namespace floe::server {
namespace {

// Only wakes the watcher.
const int kWake = SIGRTMIN;

sigset_t WatchedSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR2, kWake}) sigaddset(&set, signal);
  return set;
}

// To debug, or back to the level before.
void ToggleDebugLog() {
  static std::string before = "info";
  std::string level = LogLevel();
  if (level == "debug") {
    level = before;
  } else {
    before = std::exchange(level, "debug");
  }
  (void)SetLogLevel(level);
  spdlog::log(spdlog::get_level(), "SIGUSR2 received: the log level is {}", level);
}

}  // namespace

void BlockSignals() {
  const sigset_t set = WatchedSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

SignalWatcher::SignalWatcher(std::function<TimePoint()> on_first, std::function<void()> on_hangup)
    : on_first_(std::move(on_first)),
      on_hangup_(std::move(on_hangup)),
      thread_([this] { Watch(); }) {}

SignalWatcher::~SignalWatcher() {
  leaving_ = true;
  pthread_kill(thread_.native_handle(), kWake);
  thread_.join();
}

void SignalWatcher::ExitAt(TimePoint when, int code, std::string waits_for) {
  {
    MutexLock lock(mutex_);
    end_ = {when, code, std::move(waits_for)};
  }
  pthread_kill(thread_.native_handle(), kWake);
}

void SignalWatcher::Exit(int code, const std::string& text) {
  spdlog::warn("{}", text);
  FlushLog(Clock::Steady().Now() + kLastWords);
  _exit(code);
}

void SignalWatcher::Watch() {
  const sigset_t set = WatchedSignals();
  int received = 0;
  while (!leaving_) {
    std::optional<End> end;
    {
      MutexLock lock(mutex_);
      end = end_;
    }
    timespec timeout = {3600, 0};
    if (end) {
      const auto left = end->when - Clock::Steady().Now();
      if (left <= Duration::zero())
        Exit(end->code, "ending without waiting any longer for " + end->waits_for);
      const auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
      timeout = {nanos / 1'000'000'000, nanos % 1'000'000'000};
    }
    const int signal = sigtimedwait(&set, nullptr, &timeout);
    if (signal == SIGHUP) {
      on_hangup_();
      spdlog::info("SIGHUP received: reading the configuration again");
    }
    if (signal == SIGUSR2) ToggleDebugLog();
    if (signal != SIGTERM && signal != SIGINT) continue;
    if (++received > 1) Exit(1, "a second signal: ending at once");
    spdlog::info("{} received: finishing the calls in progress; once more ends at once",
                 signal == SIGTERM ? "SIGTERM" : "SIGINT");
    const TimePoint latest = on_first_();
    MutexLock lock(mutex_);
    if (!end_) end_ = {latest, 1, "work in progress, which delays the drain"};
  }
}

}  // namespace floe::server
