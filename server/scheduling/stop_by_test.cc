// A queue that is to end, and a run that does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "server/scheduling/scheduler_for_test.h"

namespace floe::server {
namespace {

using ::testing::HasSubstr;

// One worker of a doubler.
struct Worked {
  Worked() {
    auto owned = std::make_unique<Doubler>();
    executor = owned.get();
    executor->splittable = false;
    scheduler = std::make_unique<Scheduler>(std::move(owned),
                                            Scheduler::Options{.threads = 1, .name = "m"});
  }
  Doubler* executor;
  std::unique_ptr<Scheduler> scheduler;
};

TEST(StopBy, AnIdleOneEndsAtOnce) {
  Worked worked;
  EXPECT_TRUE(worked.scheduler->StopBy(Clock::Steady().Now()));
  EXPECT_TRUE(worked.scheduler->Idle());
}

TEST(StopBy, RunsAreToldToEndAndWhatWaitsIsRefused) {
  std::atomic<bool> running{false};
  Call endless({1}), waiting({2});
  Worked worked;
  worked.executor->on_limits = [&](const RunLimits& limits) {
    running = true;
    while (limits.cancel == nullptr || !limits.cancel->cancelled()) std::this_thread::yield();
  };
  worked.scheduler->Submit(endless.MakeRequest());
  while (!running) std::this_thread::yield();
  worked.scheduler->Submit(waiting.MakeRequest());
  EXPECT_TRUE(worked.scheduler->StopBy(Clock::Steady().Now()));
  endless.ExpectCode(absl::StatusCode::kUnavailable);
  waiting.ExpectCode(absl::StatusCode::kUnavailable);
}

TEST(StopBy, OneThatDoesNotEndIsLeftAndNamed) {
  std::atomic<bool> running{false}, go{false};
  Call stuck({1}), waiting({2}), late({3});
  Worked worked;
  worked.executor->on_limits = [&](const RunLimits&) {
    running = true;
    while (!go) std::this_thread::yield();
  };
  worked.scheduler->Submit(stuck.MakeRequest());
  while (!running) std::this_thread::yield();
  worked.scheduler->Submit(waiting.MakeRequest());
  EXPECT_FALSE(worked.scheduler->StopBy(Clock::Steady().Now()));
  EXPECT_FALSE(worked.scheduler->Idle());
  EXPECT_THAT(worked.scheduler->RunsUnderWay(Clock::Steady().Now() + std::chrono::seconds(40)),
              HasSubstr("w0:m for 4"));
  while (waiting.answers == 0) std::this_thread::yield();
  waiting.ExpectCode(absl::StatusCode::kUnavailable);
  worked.scheduler->Submit(late.MakeRequest());
  late.ExpectCode(absl::StatusCode::kUnavailable);
  go = true;
  while (!worked.scheduler->Idle()) std::this_thread::yield();
  worked.scheduler->Stop();
  EXPECT_EQ(stuck.answers, 1);
  EXPECT_EQ(worked.scheduler->RunsUnderWay(Clock::Steady().Now()), "");
}

}  // namespace
}  // namespace floe::server
