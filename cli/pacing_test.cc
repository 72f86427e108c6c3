#include "cli/pacing.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace floe::cli {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

// A server that answers after `service`, one call after the other, under a clock that tests move.
class StepServer : public Sender {
 public:
  explicit StepServer(Duration service) : service(service) {}

  void WaitUntil(TimePoint due) override {
    if (due > clock.Now()) clock.Advance(due - clock.Now());
  }
  bool Send(TimePoint due) override {
    if (clock.Now() >= sends_until) return false;
    const auto call = static_cast<int>(latencies.size());
    sent_at.push_back(clock.Now());
    clock.Advance(call == stalled_call ? stall : service);
    latencies.push_back(clock.Now() - due);
    return true;
  }

  FakeClock clock;
  Duration service, stall{};
  int stalled_call = -1;
  TimePoint sends_until = TimePoint::max();
  std::vector<TimePoint> sent_at;
  std::vector<Duration> latencies;
};

TEST(Arrivals, ConstantOnesAreEvenlySpacedAndDoNotDrift) {
  Arrivals arrivals(1000, /*constant=*/true);
  EXPECT_EQ(arrivals.Next(), Duration(0));
  EXPECT_EQ(arrivals.Next(), milliseconds(1));
  for (int i = 2; i < 1'000'000; ++i) arrivals.Next();
  EXPECT_NEAR(std::chrono::duration<double>(arrivals.Next()).count(), 1000, 1e-6);
}

TEST(Arrivals, PartsMakeTheWholeStream) {
  std::vector<Duration> together, whole;
  Arrivals all(700, /*constant=*/true);
  for (int i = 0; i < 30; ++i) whole.push_back(all.Next());
  for (int part = 0; part < 3; ++part) {
    Arrivals some(700, /*constant=*/true, part, 3);
    for (int i = 0; i < 10; ++i) together.push_back(some.Next());
  }
  std::sort(together.begin(), together.end());
  EXPECT_EQ(together, whole);
}

// Of a Poisson process, gaps have a standard deviation as large as their mean, and e^-1 of them are
// longer than it.
TEST(Arrivals, RandomOnesAreAPoissonProcess) {
  constexpr int kCount = 100'000;
  for (const int of : {1, 4}) {
    Arrivals arrivals(1000.0 * of, /*constant=*/false, of - 1, of);
    double last = 0, squares = 0;
    int longer = 0;
    for (int i = 0; i < kCount; ++i) {
      const double at = std::chrono::duration<double>(arrivals.Next()).count();
      ASSERT_GE(at, last);
      const double gap = at - last;
      squares += (gap - 1e-3) * (gap - 1e-3);
      longer += gap > 1e-3;
      last = at;
    }
    EXPECT_NEAR(last / kCount, 1e-3, 1e-5);
    EXPECT_NEAR(std::sqrt(squares / kCount), 1e-3, 3e-5);
    EXPECT_NEAR(longer / static_cast<double>(kCount), std::exp(-1), 0.01);
  }
}

TEST(Arrivals, PartsOfRandomStreamsDiffer) {
  Arrivals one(10, false, 0, 2), other(10, false, 1, 2), again(10, false, 0, 2);
  const Duration first = one.Next();
  EXPECT_NE(first, other.Next());
  EXPECT_EQ(first, again.Next());
}

TEST(Pace, SendsEachCallWhenItIsDue) {
  StepServer server(std::chrono::microseconds(100));
  Arrivals arrivals(1000, /*constant=*/true);
  const TimePoint start = server.clock.Now() + milliseconds(5);
  const Paced paced = Pace(arrivals, start, start + milliseconds(4), server);
  EXPECT_EQ(paced.sent, 4);
  EXPECT_EQ(paced.unsent, 0);
  EXPECT_THAT(server.sent_at, ElementsAre(start, start + milliseconds(1), start + milliseconds(2),
                                          start + milliseconds(3)));
  EXPECT_THAT(server.latencies, testing::Each(server.service));
}

TEST(Pace, AStallDelaysAllThatIsDueMeanwhile) {
  StepServer server(Duration(0));
  server.stalled_call = 10;
  server.stall = milliseconds(100);
  Arrivals arrivals(1000, /*constant=*/true);
  const TimePoint start = server.clock.Now();
  EXPECT_EQ(Pace(arrivals, start, start + milliseconds(200), server).sent, 200);
  for (int call = 0; call < 200; ++call) {
    const bool late = call >= 10 && call < 110;
    EXPECT_EQ(server.latencies[call], late ? milliseconds(110 - call) : milliseconds(0)) << call;
  }
  // From the time of sending, a single call would have been slow.
  const auto slow = std::count_if(server.latencies.begin(), server.latencies.end(),
                                  [](Duration latency) { return latency > milliseconds(50); });
  EXPECT_EQ(slow, 50);
}

TEST(Pace, CountsWhatItCannotSend) {
  StepServer server(milliseconds(2));
  Arrivals arrivals(1000, /*constant=*/true);
  const TimePoint start = server.clock.Now();
  server.sends_until = start + milliseconds(100);
  const Paced paced = Pace(arrivals, start, start + milliseconds(100), server);
  EXPECT_EQ(paced.sent, 50);
  EXPECT_EQ(paced.unsent, 50);
  EXPECT_EQ(server.latencies.back(), milliseconds(51)) << "of the call that was due after 49 ms";
}

}  // namespace
}  // namespace floe::cli
