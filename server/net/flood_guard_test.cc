#include "server/net/flood_guard.h"

#include <gtest/gtest.h>

namespace floe::server {
namespace {

TEST(FloodGuard, SuspectsWhoSendsPiecesUntilThereIsWork) {
  const TimePoint now = TimePoint() + std::chrono::hours(1);
  FloodGuard guard(now);
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(guard.OnData(1, now));
  EXPECT_FALSE(guard.IsSuspect());
  EXPECT_TRUE(guard.OnData(1, now));
  EXPECT_TRUE(guard.OnData(1 << 14, now)) << "a whole frame costs no more than its size";
  EXPECT_TRUE(guard.IsSuspect());
  guard.OnWork();
  EXPECT_FALSE(guard.IsSuspect());
}

TEST(FloodGuard, EndsWhoGoesOn) {
  const TimePoint now = TimePoint() + std::chrono::hours(1);
  FloodGuard guard(now);
  int frames = 0;
  while (guard.OnIdleFrame(now)) ++frames;
  EXPECT_EQ(frames, 8000);
  EXPECT_TRUE(guard.OnReset(now)) << "resets are counted by themselves";
  EXPECT_TRUE(guard.OnIdleFrame(now + std::chrono::seconds(1)));
}

}  // namespace
}  // namespace floe::server
