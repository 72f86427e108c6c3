#include "server/daemon/transport_watch.h"

#include <gtest/gtest.h>

namespace floe::server {
namespace {

using std::chrono::seconds;

struct Watched {
  FakeClock clock;
  Duration cpu = seconds(5);
  absl::Status answer;
  TransportWatch watch{{.ask = [this](Duration, CancelToken*) { return answer; },
                        .cpu_time = [this] { return cpu; },
                        .clock = &clock}};
  // So many rounds of the probe; what the last one said.
  absl::Status Rounds(int rounds, Duration work) {
    absl::Status status;
    for (int i = 0; i < rounds; ++i) {
      clock.Advance(seconds(10));
      cpu += work;
      status = watch.Check();
    }
    return status;
  }
};

TEST(TransportWatch, AnAnswerIsEnough) {
  Watched w;
  w.watch.Ask();
  EXPECT_TRUE(w.Rounds(100, Duration::zero()).ok()) << "nothing to do";
  w.answer = absl::ResourceExhaustedError("no descriptor");
  w.watch.Ask();
  EXPECT_TRUE(w.Rounds(100, Duration::zero()).ok()) << "not its fault";
}

TEST(TransportWatch, AFloodIsWork) {
  Watched w;
  w.answer = absl::DeadlineExceededError("silent");
  w.watch.Ask();
  EXPECT_TRUE(w.Rounds(1000, seconds(20)).ok());
  EXPECT_TRUE(w.Rounds(12, Duration::zero()).ok());
  EXPECT_TRUE(absl::IsUnavailable(w.Rounds(1, Duration::zero())));
  w.answer = absl::OkStatus();
  w.watch.Ask();
  EXPECT_TRUE(w.Rounds(1, Duration::zero()).ok());
}

TEST(TransportWatch, SilenceWithoutWorkIsAStandstill) {
  Watched w;
  w.answer = absl::DeadlineExceededError("silent");
  w.watch.Ask();
  EXPECT_TRUE(w.Rounds(12, std::chrono::milliseconds(100)).ok());
  EXPECT_TRUE(absl::IsUnavailable(w.Rounds(1, std::chrono::milliseconds(100))));
  w.watch.Ask();
  EXPECT_FALSE(w.Rounds(1, std::chrono::milliseconds(100)).ok()) << "silent since before";
}

}  // namespace
}  // namespace floe::server
