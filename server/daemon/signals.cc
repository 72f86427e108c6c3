#include "server/daemon/signals.h"

#include <pthread.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

namespace floe::server {
namespace {

// Wakes the watcher without meaning anything.
constexpr int kWake = SIGUSR2;

sigset_t Watched() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, kWake}) sigaddset(&set, signal);
  return set;
}

}  // namespace

void BlockSignals() {
  const sigset_t set = Watched();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

SignalWatcher::SignalWatcher(std::function<TimePoint()> on_first, std::function<void()> on_hangup)
    : on_first_(std::move(on_first)),
      on_hangup_(std::move(on_hangup)),
      logger_([this] { Log(); }),
      thread_([this] { Watch(); }) {}

SignalWatcher::~SignalWatcher() {
  {
    MutexLock lock(mutex_);
    logs_no_more_ = true;
  }
  changed_.NotifyAll();
  logger_.join();  // while the watcher still limits how long that takes
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

void SignalWatcher::Log() {
  mutex_.Lock();
  while (!logs_no_more_ || !lines_.empty()) {
    if (lines_.empty()) {
      changed_.Wait(mutex_);
      continue;
    }
    const auto [level, text] = lines_.front();
    mutex_.Unlock();
    spdlog::log(level, "{}", text);
    mutex_.Lock();
    lines_.pop_front();
    changed_.NotifyAll();
  }
  mutex_.Unlock();
}

void SignalWatcher::Say(spdlog::level::level_enum level, std::string text) {
  {
    MutexLock lock(mutex_);
    lines_.emplace_back(level, std::move(text));
  }
  changed_.NotifyAll();
}

void SignalWatcher::Exit(int code, std::string text) {
  Say(spdlog::level::warn, std::move(text));
  const TimePoint until = Clock::Steady().Now() + kLastWords;
  MutexLock lock(mutex_);
  while (!lines_.empty() && changed_.WaitUntil(mutex_, until)) {
  }
  _exit(code);
}

void SignalWatcher::Watch() {
  const sigset_t set = Watched();
  int received = 0;
  while (!leaving_) {
    std::optional<End> end;
    {
      MutexLock lock(mutex_);
      end = end_;
    }
    timespec patience = {3600, 0};
    if (end) {
      const auto left = end->when - Clock::Steady().Now();
      if (left <= Duration::zero())
        Exit(end->code, "ending without waiting any longer for " + end->waits_for);
      const auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
      patience = {nanos / 1'000'000'000, nanos % 1'000'000'000};
    }
    const int signal = sigtimedwait(&set, nullptr, &patience);
    if (signal == SIGHUP) {
      on_hangup_();
      Say(spdlog::level::info, "SIGHUP received: reading the configuration again");
    }
    if (signal != SIGTERM && signal != SIGINT) continue;
    if (++received > 1) Exit(1, "a second signal: ending at once");
    Say(spdlog::level::info,
        absl::StrCat(signal == SIGTERM ? "SIGTERM" : "SIGINT",
                     " received: finishing the calls in progress; once more ends at once"));
    const TimePoint latest = on_first_();
    MutexLock lock(mutex_);
    if (!end_) end_ = {latest, 1, "what is under way: it keeps the draining from its beginning"};
  }
}

}  // namespace floe::server
