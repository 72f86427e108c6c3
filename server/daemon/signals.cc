#include "server/daemon/signals.h"

#include <pthread.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

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

SignalWatcher::SignalWatcher(std::function<void()> on_first, std::function<void()> on_hangup)
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
    exit_ = {when, code, std::move(waits_for)};
  }
  pthread_kill(thread_.native_handle(), kWake);
}

void SignalWatcher::Watch() {
  const sigset_t set = Watched();
  int received = 0;
  while (!leaving_) {
    timespec patience = {3600, 0};
    {
      MutexLock lock(mutex_);
      if (exit_) {
        const auto left = exit_->when - Clock::Steady().Now();
        if (left <= Duration::zero()) {
          spdlog::warn("ending without waiting any longer for {}", exit_->waits_for);
          _exit(exit_->code);
        }
        const auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
        patience = {nanos / 1'000'000'000, nanos % 1'000'000'000};
      }
    }
    const int signal = sigtimedwait(&set, nullptr, &patience);
    if (signal == SIGHUP) {
      spdlog::info("SIGHUP received: reading the configuration again");
      on_hangup_();
    }
    if (signal != SIGTERM && signal != SIGINT) continue;
    if (++received == 1) {
      spdlog::info("{} received: finishing the calls in progress; once more ends at once",
                   signal == SIGTERM ? "SIGTERM" : "SIGINT");
      on_first_();
    } else {
      spdlog::warn("a second signal: ending at once");
      _exit(1);
    }
  }
}

}  // namespace floe::server
