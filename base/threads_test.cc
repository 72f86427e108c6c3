#include "base/threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <system_error>

#include "base/cpus.h"
#include "base/thread_pool.h"
#include "base/threads_for_test.h"

namespace floe {
namespace {

struct Seen {
  std::string name;
  int nice = -1;
  std::vector<int> cpus;
};

Seen Look() {
  Seen seen;
  char name[16];
  pthread_getname_np(pthread_self(), name, sizeof name);
  seen.name = name;
  seen.nice = getpriority(PRIO_PROCESS, 0);
  seen.cpus = FindUsableCpus().cpus;
  return seen;
}

TEST(Threads, HaveTheirTraitsWhoeverStartsThem) {
  const std::vector<int> all = FindUsableCpus().cpus;
  const int base = getpriority(PRIO_PROCESS, 0);
  StartThreadSource();
  Seen nicer, pinned, plain;
  SpawnThread({"a name that is too long", 3, {}}, [&] {
    nicer = Look();
    SpawnThread({"pinned", 0, {all.back()}}, [&] {
      pinned = Look();
      SpawnThread({}, [&] { plain = Look(); }).join();
    }).join();
  }).join();
  EXPECT_EQ(nicer.name, "a name that is ");
  EXPECT_EQ(nicer.nice, std::min(base + 3, 19));
  EXPECT_EQ(nicer.cpus, all);
  EXPECT_EQ(pinned.name, "pinned");
  EXPECT_EQ(pinned.nice, base) << "not the niceness of the thread that started it";
  EXPECT_EQ(pinned.cpus, std::vector<int>{all.back()});
  EXPECT_EQ(plain.nice, base);
  EXPECT_EQ(plain.cpus, all);
}

// In a process of its own, that of a user who may have no more threads.
TEST(ThreadsDeathTest, NoThreadIsAnExceptionOfWhoeverAsked) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto try_in_vain = [] {
    AllowNoMoreThreads();
    for (int i = 0; i < 2; ++i) {
      try {
        ThreadPool pool(3);
        std::_Exit(3);
      } catch (const std::system_error&) {
      }
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(try_in_vain(), testing::ExitedWithCode(0), "");
}

TEST(Threads, PoolsTakeTheTraitsOfTheScopeTheyAreMadeIn) {
  const ThreadTraits traits{"pool", 1, {}};
  const ThreadTraits inner{"inner", 0, {}};
  const auto names = [](ThreadPool& pool) {
    std::atomic<int> with_pool{0}, with_inner{0}, started{0};
    // As many chunks as threads, each of which waits for the others: one chunk a thread.
    pool.ParallelFor(pool.threads(), [&](int64_t) {
      const std::string name = Look().name;
      with_pool += name == "pool";
      with_inner += name == "inner";
      ++started;
      while (started < pool.threads()) std::this_thread::yield();
    });
    return std::pair(with_pool.load(), with_inner.load());
  };
  const ScopedThreadTraits scope(&traits);
  ThreadPool outer_pool(3);
  {
    const ScopedThreadTraits nested(&inner);
    ThreadPool inner_pool(2);
    EXPECT_EQ(names(inner_pool), std::pair(0, 1));
  }
  EXPECT_EQ(names(outer_pool), std::pair(2, 0));
  EXPECT_EQ(ScopedThreadTraits::Current().name, "pool");
}

TEST(Threads, NicenessOfWeights) {
  EXPECT_EQ(NiceOfShares(1, 1), 0);
  EXPECT_EQ(NiceOfShares(5, 3), 0);
  EXPECT_EQ(NiceOfShares(1, 2), 3);    // 1.25^3 = 1.95
  EXPECT_EQ(NiceOfShares(1, 10), 10);  // 1.25^10 = 9.3
  EXPECT_EQ(NiceOfShares(1, 1'000'000), 19);
}

TEST(Threads, CpuSetsAreChecked) {
  EXPECT_TRUE(CheckCpuSet({}, {0}).ok());
  EXPECT_TRUE(CheckCpuSet({1, 3}, {0, 1, 2, 3}).ok());
  EXPECT_THAT(std::string(CheckCpuSet({1, 7, 9}, {0, 1}).message()),
              testing::AllOf(testing::HasSubstr("(7, 9)"), testing::HasSubstr("0, 1")));
}

}  // namespace
}  // namespace floe
