#include "kernels/cuda/device/device_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <list>
#include <memory>
#include <utility>

#include "base/clock.h"

namespace floe::cuda {
namespace {

using Turn = DeviceGate::Turn;

constexpr Duration kRun = std::chrono::milliseconds(10);

// Models that always have work, stepped by hand: each of a model's workers asks again as soon as
// its run is over.
class DeviceGateTest : public testing::Test {
 protected:
  struct Model {
    Model(int64_t shares, int workers, Duration run) : user(shares), turns(workers), run(run) {}
    DeviceGate::User user;
    std::deque<Turn> turns;
    const Duration run;
    int runs = 0;
  };

  void Ask(Model* model) {
    for (Turn& turn : model->turns) {
      gate_.Ask(&model->user, &turn);
      asked_.emplace_back(model, &turn);
    }
  }

  // For so long. Runs that are in take their time one behind the other, as on a device.
  void RunFor(Duration time) {
    const TimePoint end = clock_.Now() + time;
    while (clock_.Now() < end) {
      const auto first = std::find_if(asked_.begin(), asked_.end(), [this](const auto& one) {
        return gate_.IsGranted(*one.second);
      });
      ASSERT_NE(first, asked_.end()) << "nobody runs";
      const auto [model, turn] = *first;
      asked_.erase(first);
      clock_.Advance(model->run);
      gate_.Leave(turn);
      ++model->runs;
      gate_.Ask(&model->user, turn);
      asked_.emplace_back(model, turn);
    }
  }

  int Granted() const {
    return static_cast<int>(std::count_if(asked_.begin(), asked_.end(), [this](const auto& one) {
      return gate_.IsGranted(*one.second);
    }));
  }

  FakeClock clock_;
  DeviceGate gate_{&clock_};
  std::list<std::pair<Model*, Turn*>> asked_;
};

TEST_F(DeviceGateTest, LetsTwoRunAtATimeAndAlwaysTwo) {
  Model a(1, 3, kRun);
  Ask(&a);
  EXPECT_EQ(Granted(), DeviceGate::kTogether);
  for (int i = 0; i < 10; ++i) {
    RunFor(kRun);
    EXPECT_EQ(Granted(), DeviceGate::kTogether);
  }
  EXPECT_EQ(a.runs, 10);
}

TEST_F(DeviceGateTest, TimeIsSharedByShares) {
  Model a(3, 3, kRun), b(1, 3, kRun);
  Ask(&a);
  Ask(&b);
  RunFor(400 * kRun);
  EXPECT_NEAR(a.runs, 300, 3);
  EXPECT_NEAR(b.runs, 100, 3);
}

// A model with long runs gets no more time than one with short ones.
TEST_F(DeviceGateTest, TimeCountsAndNotRuns) {
  Model a(1, 3, kRun), b(1, 3, 10 * kRun);
  Ask(&a);
  Ask(&b);
  RunFor(2000 * kRun);
  EXPECT_NEAR(a.runs * kRun / (b.runs * b.run * 1.0), 1, 0.1);
}

TEST_F(DeviceGateTest, WhoWasIdleGetsNoCredit) {
  Model a(1, 2, kRun), b(1, 2, kRun);
  Ask(&a);
  RunFor(1000 * kRun);
  Ask(&b);
  a.runs = 0;
  RunFor(100 * kRun);
  EXPECT_NEAR(a.runs, 50, 3);
  EXPECT_NEAR(b.runs, 50, 3);
}

TEST_F(DeviceGateTest, AThreadsUserIsThatOfItsScope) {
  EXPECT_EQ(ScopedDeviceUser::Current(), nullptr);
  { const ScopedDeviceTurn nobodys(&gate_); }  // would wait for nobody
  DeviceGate::User a(1), b(1);
  const ScopedDeviceUser outer(&a);
  {
    const ScopedDeviceUser inner(&b);
    EXPECT_EQ(ScopedDeviceUser::Current(), &b);
    const auto one = std::make_unique<ScopedDeviceTurn>(&gate_);
    auto other = std::make_unique<ScopedDeviceTurn>(&gate_);
    Turn third;
    gate_.Ask(&a, &third);
    EXPECT_FALSE(gate_.IsGranted(third));
    other.reset();
    EXPECT_TRUE(gate_.IsGranted(third));
    gate_.Leave(&third);
  }
}

}  // namespace
}  // namespace floe::cuda
