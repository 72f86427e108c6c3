#include "server/loading/load_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace floe::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

const TimePoint kStart{std::chrono::hours(1)};

TEST(LoadWatch, TellsOfSlowLoadsLessAndLessOften) {
  LoadWatch watch;
  EXPECT_THAT(watch.Slow(kStart), ElementsAre());
  std::optional<LoadWatch::Load> slow(std::in_place, &watch, "model 'm' version 3", kStart);
  const LoadWatch::Load late(&watch, "model 'n' version 1", kStart + seconds(15));
  EXPECT_THAT(watch.Slow(kStart + milliseconds(9999)), ElementsAre());
  EXPECT_THAT(watch.Slow(kStart + seconds(10)),
              ElementsAre("model 'm' version 3 is still being loaded after 10 s: it has begun"));
  EXPECT_THAT(watch.Slow(kStart + seconds(19)), ElementsAre()) << "it was told of";
  slow->Enter("it is compiled");
  EXPECT_THAT(watch.Slow(kStart + seconds(25)),
              ElementsAre("model 'm' version 3 is still being loaded after 25 s: it is compiled",
                          "model 'n' version 1 is still being loaded after 10 s: it has begun"));
  slow.reset();
  EXPECT_THAT(watch.Slow(kStart + seconds(100)),
              ElementsAre("model 'n' version 1 is still being loaded after 85 s: it has begun"));
}

}  // namespace
}  // namespace floe::server
