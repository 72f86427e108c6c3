#include "server/daemon/transport_watch.h"

#include <gtest/gtest.h>

namespace floe::server {
namespace {

using std::chrono::seconds;

struct Watched {
  FakeClock clock;
  Duration cpu = seconds(5);
  bool answers = true;
  TransportWatch watch{{.answered = [this] { return answers; },
                        .cpu_time = [this] { return cpu; },
                        .clock = &clock}};
  // The result of the last of so many checks.
  absl::Status Checks(int checks, Duration work) {
    absl::Status status;
    for (int i = 0; i < checks; ++i) {
      clock.Advance(seconds(10));
      cpu += work;
      status = watch.Check();
    }
    return status;
  }
};

TEST(TransportWatch, AnAnswerIsEnough) {
  Watched w;
  EXPECT_TRUE(w.Checks(100, Duration::zero()).ok()) << "nothing to do";
}

TEST(TransportWatch, AFloodIsWork) {
  Watched w;
  w.answers = false;
  EXPECT_TRUE(w.Checks(1000, seconds(20)).ok());
  EXPECT_TRUE(w.Checks(12, Duration::zero()).ok());
  EXPECT_TRUE(absl::IsUnavailable(w.Checks(1, Duration::zero())));
  w.answers = true;
  EXPECT_TRUE(w.Checks(1, Duration::zero()).ok());
}

TEST(TransportWatch, SilenceWithoutWorkIsAStandstill) {
  Watched w;
  w.answers = false;
  EXPECT_TRUE(w.Checks(12, std::chrono::milliseconds(100)).ok());
  EXPECT_TRUE(absl::IsUnavailable(w.Checks(1, std::chrono::milliseconds(100))));
  EXPECT_FALSE(w.Checks(1, std::chrono::milliseconds(100)).ok()) << "silent since before";
}

}  // namespace
}  // namespace floe::server
