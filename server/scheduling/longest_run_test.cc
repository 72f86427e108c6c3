// Runs that take too long, and calls that say nothing of time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "server/scheduling/scheduler_for_test.h"

namespace floe::server {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LongestRun, OneThatTakesLongerIsStoppedAndNamesTheKey) {
  Stepped stepped({}, 1, seconds(5));
  std::optional<TimePoint> until;
  stepped.executor->on_limits = [&](const RunLimits& limits) { until = limits.deadline; };
  Call endless({Doubler::kEndless}), urgent({1});
  stepped.scheduler->Submit(endless.MakeRequest());
  stepped.Drain();
  EXPECT_EQ(until, stepped.clock.Now() + seconds(5));
  endless.ExpectCode(absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(endless.status.message()), HasSubstr("max_run_seconds of model 'm' (5)"));
  // A caller that has less time than that is not told of the key.
  stepped.scheduler->Submit(urgent.MakeRequest(stepped.clock.Now() + seconds(1)));
  stepped.Drain();
  EXPECT_EQ(until, stepped.clock.Now() + seconds(1));
  urgent.ExpectDoubled();
}

// Those that shared the run are no worse for it. The next requests of its caller share no run.
TEST(LongestRun, OthersAreAnsweredWithoutIt) {
  Stepped stepped({}, 1, seconds(5));
  Call first({1}), endless({Doubler::kEndless}), last({3});
  for (Call* call : {&first, &endless, &last}) {
    auto request = call->MakeRequest();
    request.principal = call == &endless ? 7 : 8;
    stepped.scheduler->Submit(std::move(request));
  }
  stepped.Drain();
  first.ExpectDoubled();
  last.ExpectDoubled();
  endless.ExpectCode(absl::StatusCode::kDeadlineExceeded);
  stepped.batches.clear();
  Call again({4}), other({5});
  for (Call* call : {&again, &other}) {
    auto request = call->MakeRequest();
    request.principal = call == &again ? 7 : 8;
    stepped.scheduler->Submit(std::move(request));
  }
  stepped.Drain();
  EXPECT_THAT(stepped.batches, ElementsAre(ElementsAre(4), ElementsAre(5)));
}

TEST(DefaultTimeout, IsTheDeadlineOfCallsWithoutOne) {
  Stepped stepped({}, 1, Duration::max(), seconds(2));
  Call silent({1}), patient({2}), waiting({3});
  stepped.scheduler->Submit(silent.MakeRequest());
  stepped.scheduler->Submit(patient.MakeRequest(stepped.clock.Now() + seconds(60)));
  stepped.clock.Advance(seconds(2));
  stepped.Drain();
  silent.ExpectCode(absl::StatusCode::kDeadlineExceeded);
  patient.ExpectDoubled();
  stepped.scheduler->Submit(waiting.MakeRequest());
  stepped.clock.Advance(seconds(1));
  stepped.Drain();
  waiting.ExpectDoubled();
}

// A large message takes a while to be decoded.
TEST(DefaultTimeout, CountsFromTheArrivalOfTheCall) {
  Stepped stepped({}, 1, Duration::max(), seconds(5));
  stepped.clock.Advance(seconds(100));
  Call early({1}), late({2}), too_late({3});
  for (const auto& [call, before] : {std::pair(&early, 1), {&late, 4}, {&too_late, 6}}) {
    auto request = call->MakeRequest();
    request.arrived = stepped.clock.Now() - seconds(before);
    stepped.scheduler->Submit(std::move(request));
  }
  too_late.ExpectCode(absl::StatusCode::kDeadlineExceeded);
  stepped.clock.Advance(seconds(2));
  stepped.Drain();
  early.ExpectDoubled();
  late.ExpectCode(absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace floe::server
