// Threads with a name, a niceness and CPUs of their own, whoever starts them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace floe {

struct ThreadTraits {
  std::string name;  // the kernel keeps 15 characters
  int nice = 0;  // beyond the process's own, to 19 in all; a thread cannot be made less nice again
  std::vector<int> cpus;  // it may run on; empty: all the process may use
};

// Linux lets a thread inherit niceness and CPUs from the one that starts it, and a process without
// privileges cannot take niceness back. So threads are started by a thread kept for this, which
// takes after the one that calls this function or SpawnThread first. To be called by main, before
// any thread is made nicer. Any thread; calls after the first do nothing.
void StartThreadSource();

// How much nicer the calling thread is than the process was when StartThreadSource was called.
int NicenessBeyondProcess();

// Runs `body` on a new thread with these traits, and those only. Any thread.
std::thread SpawnThread(const ThreadTraits& traits, std::function<void()> body);

// The same; RESOURCE_EXHAUSTED, which names the thread, where SpawnThread throws because the system
// gives no more of them.
absl::StatusOr<std::thread> TrySpawnThread(const ThreadTraits& traits, std::function<void()> body);

// Gives the calling thread the traits; what the kernel refuses is left as it is. An empty name and
// empty CPUs change nothing.
void ApplyTraits(const ThreadTraits& traits);

// Within it, pools that this thread makes (ThreadPool) spawn their threads with these traits, which
// outlive it. Scopes nest.
class ScopedThreadTraits {
 public:
  explicit ScopedThreadTraits(const ThreadTraits* traits);
  ~ScopedThreadTraits();
  ScopedThreadTraits(const ScopedThreadTraits&) = delete;
  ScopedThreadTraits& operator=(const ScopedThreadTraits&) = delete;

  static const ThreadTraits& Current();  // the default ones outside any scope

 private:
  const ThreadTraits* const outer_;
};

// The niceness of a thread with `shares` beside one with `most` shares, when both want one CPU. It
// gets shares/most of the other's time: Linux gives a step of niceness 1/1.25 of the time. At most
// 19, which is about 1/70. Shares are at least 1.
int NiceOfShares(int64_t shares, int64_t most);

// INVALID_ARGUMENT names the CPUs of `wanted` that are not usable.
absl::Status CheckCpuSet(const std::vector<int>& wanted, const std::vector<int>& usable);

}  // namespace floe
