// A queue that is to end, and a run that does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "server/batching/batcher_for_test.h"

namespace floe::server {
namespace {

using ::testing::HasSubstr;

// One worker of a doubler.
struct Worked {
  Worked() {
    auto owned = std::make_unique<Doubler>();
    runner = owned.get();
    runner->splittable = false;
    batcher =
        std::make_unique<Batcher>(std::move(owned), Batcher::Options{.threads = 1, .name = "m"});
  }
  Doubler* runner;
  std::unique_ptr<Batcher> batcher;
};

TEST(StopBy, AnIdleOneEndsAtOnce) {
  Worked worked;
  EXPECT_TRUE(worked.batcher->StopBy(Clock::Steady().Now()));
  EXPECT_TRUE(worked.batcher->Idle());
}

TEST(StopBy, RunsAreToldToEndAndWhatWaitsIsRefused) {
  std::atomic<bool> running{false};
  Call endless({1}), waiting({2});
  Worked worked;
  worked.runner->on_limits = [&](const RunLimits& limits) {
    running = true;
    while (limits.cancel == nullptr || !limits.cancel->cancelled()) std::this_thread::yield();
  };
  worked.batcher->Submit(endless.Request());
  while (!running) std::this_thread::yield();
  worked.batcher->Submit(waiting.Request());
  EXPECT_TRUE(worked.batcher->StopBy(Clock::Steady().Now()));
  endless.ExpectCode(absl::StatusCode::kUnavailable);
  waiting.ExpectCode(absl::StatusCode::kUnavailable);
}

TEST(StopBy, OneThatDoesNotEndIsLeftAndNamed) {
  std::atomic<bool> running{false}, go{false};
  Call stuck({1}), waiting({2}), late({3});
  Worked worked;
  worked.runner->on_limits = [&](const RunLimits&) {
    running = true;
    while (!go) std::this_thread::yield();
  };
  worked.batcher->Submit(stuck.Request());
  while (!running) std::this_thread::yield();
  worked.batcher->Submit(waiting.Request());
  EXPECT_FALSE(worked.batcher->StopBy(Clock::Steady().Now()));
  EXPECT_FALSE(worked.batcher->Idle());
  EXPECT_THAT(worked.batcher->RunsUnderWay(Clock::Steady().Now() + std::chrono::seconds(40)),
              HasSubstr("w0:m for 4"));
  while (waiting.sends == 0) std::this_thread::yield();
  waiting.ExpectCode(absl::StatusCode::kUnavailable);
  worked.batcher->Submit(late.Request());
  late.ExpectCode(absl::StatusCode::kUnavailable);
  go = true;
  while (!worked.batcher->Idle()) std::this_thread::yield();
  worked.batcher->Stop();
  EXPECT_EQ(stuck.answers, 1);
  EXPECT_EQ(worked.batcher->RunsUnderWay(Clock::Steady().Now()), "");
}

}  // namespace
}  // namespace floe::server
