#include "base/threads.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"

namespace floe {
namespace {

// One order at a time: whoever places one waits until its thread is made.
class ThreadSource {
 public:
  // Lives as long as the process, so that nothing has to be joined when it ends.
  static ThreadSource& Get() {
    static ThreadSource* const source = new ThreadSource;
    return *source;
  }

  int nice() const { return nice_; }

  std::thread Make(std::function<void()> body) {
    MutexLock turn(turn_);
    MutexLock lock(mutex_);
    body_ = std::move(body);
    ordered_.NotifyOne();
    while (!made_.joinable() && !failed_) ready_.Wait(mutex_);
    if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
    return std::exchange(made_, std::thread());
  }

 private:
  ThreadSource() {
    std::thread([this] { Work(); }).detach();
  }
  void Work() {
    ApplyTraits({"threads", 0, {}});
    MutexLock lock(mutex_);
    for (;;) {
      while (!body_) ordered_.Wait(mutex_);
      try {
        made_ = std::thread(std::exchange(body_, nullptr));
      } catch (const std::system_error&) {
        failed_ = std::current_exception();
      }
      ready_.NotifyOne();
    }
  }

  const int nice_ = getpriority(PRIO_PROCESS, 0);
  Mutex turn_;  // taken before mutex_
  Mutex mutex_;
  CondVar ordered_, ready_;
  std::function<void()> body_ ABSL_GUARDED_BY(mutex_);
  std::thread made_ ABSL_GUARDED_BY(mutex_);
  std::exception_ptr failed_ ABSL_GUARDED_BY(mutex_);
};

thread_local const ThreadTraits* current_traits = nullptr;

}  // namespace

void StartThreadSource() { (void)ThreadSource::Get(); }

int NicenessBeyondProcess() {
  return std::max(0, getpriority(PRIO_PROCESS, 0) - ThreadSource::Get().nice());
}

std::thread SpawnThread(const ThreadTraits& traits, std::function<void()> body) {
  return ThreadSource::Get().Make([traits, body = std::move(body)] {
    ApplyTraits(traits);
    body();
  });
}

absl::StatusOr<std::thread> TrySpawnThread(const ThreadTraits& traits, std::function<void()> body) {
  try {
    return SpawnThread(traits, std::move(body));
  } catch (const std::system_error& e) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the thread '", traits.name, "' could not be made (", e.what(),
                     "); raise the limit of threads (TasksMax of the unit, ulimit -u)"));
  }
}

void ApplyTraits(const ThreadTraits& traits) {
  if (!traits.name.empty()) pthread_setname_np(pthread_self(), traits.name.substr(0, 15).c_str());
  if (traits.nice > 0)
    setpriority(PRIO_PROCESS, 0, std::min(ThreadSource::Get().nice() + traits.nice, 19));
  if (traits.cpus.empty()) return;
  const int bits = *std::max_element(traits.cpus.begin(), traits.cpus.end()) + 1;
  cpu_set_t* mask = CPU_ALLOC(bits);
  const size_t size = CPU_ALLOC_SIZE(bits);
  CPU_ZERO_S(size, mask);
  for (const int cpu : traits.cpus) CPU_SET_S(cpu, size, mask);
  sched_setaffinity(0, size, mask);
  CPU_FREE(mask);
}

ScopedThreadTraits::ScopedThreadTraits(const ThreadTraits* traits)
    : outer_(std::exchange(current_traits, traits)) {}

ScopedThreadTraits::~ScopedThreadTraits() { current_traits = outer_; }

const ThreadTraits& ScopedThreadTraits::Current() {
  static const ThreadTraits* const kDefault = new ThreadTraits;
  return current_traits == nullptr ? *kDefault : *current_traits;
}

int NiceOfShares(int64_t shares, int64_t most) {
  if (shares >= most) return 0;
  const double ratio =
      static_cast<double>(most) / static_cast<double>(std::max<int64_t>(1, shares));
  return static_cast<int>(std::min(19.0, std::round(std::log(ratio) / std::log(1.25))));
}

absl::Status CheckCpuSet(const std::vector<int>& wanted, const std::vector<int>& usable) {
  std::string missing;
  for (const int cpu : wanted)
    if (std::find(usable.begin(), usable.end(), cpu) == usable.end())
      absl::StrAppend(&missing, missing.empty() ? "" : ", ", cpu);
  if (missing.empty()) return absl::OkStatus();
  std::string have;
  for (const int cpu : usable) absl::StrAppend(&have, have.empty() ? "" : ", ", cpu);
  return absl::InvalidArgumentError(absl::StrCat(
      "cpu_set names CPUs that this process may not use (", missing, "); it may use ", have));
}

}  // namespace floe
