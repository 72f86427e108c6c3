#include "server/scheduling/admission.h"

#include <gtest/gtest.h>

namespace floe::server {
namespace {

using std::chrono::milliseconds;

TEST(Admission, WaitsForWhatRunsAndWhatGoesBefore) {
  Backlog backlog;
  Cost cost;
  EXPECT_EQ(ExpectedLatency(backlog, cost), Duration::zero()) << "nothing is known";
  cost.work = cost.run = milliseconds(10);
  EXPECT_EQ(ExpectedLatency(backlog, cost), milliseconds(10));
  backlog.running = milliseconds(8);
  EXPECT_EQ(ExpectedLatency(backlog, cost), milliseconds(8 + 2 + 10))
      << "and a quarter of the wait";
  backlog.ahead = milliseconds(20);
  EXPECT_EQ(ExpectedLatency(backlog, cost), milliseconds(28 + 7 + 10));
  backlog.workers = 2;
  EXPECT_EQ(ExpectedLatency(backlog, cost),
            milliseconds(4 + 10 + 10) + Duration(milliseconds(14)) / 4);
}

TEST(Admission, ItsBatchMayFillUpByWhatComesMeanwhile) {
  Backlog backlog;
  Cost cost{milliseconds(1), milliseconds(1), milliseconds(40)};
  EXPECT_EQ(ExpectedLatency(backlog, cost), milliseconds(1)) << "nothing comes meanwhile";
  backlog.running = milliseconds(20);
  EXPECT_EQ(ExpectedLatency(backlog, cost), milliseconds(20 + 5 + 21));
}

TEST(Admission, LateAndFull) {
  Backlog backlog;
  backlog.empty = backlog.idle = false;
  backlog.ahead = backlog.queued = milliseconds(20);
  const Cost cost{milliseconds(10), milliseconds(10), {}};
  const auto admit = [&](int left, Duration most) {
    return Admit(backlog, cost, milliseconds(left), most);
  };
  EXPECT_EQ(admit(34, Duration::max()), Admission::kLate);
  EXPECT_EQ(admit(35, Duration::max()), Admission::kAccept);
  EXPECT_EQ(admit(35, milliseconds(29)), Admission::kFull);
  EXPECT_EQ(admit(35, milliseconds(30)), Admission::kAccept);
  backlog.idle = true;
  EXPECT_EQ(admit(1, Duration::max()), Admission::kAccept) << "nothing is gained by refusing it";
  backlog.empty = true;
  EXPECT_EQ(admit(1, milliseconds(1)), Admission::kAccept) << "nothing waits";
}

}  // namespace
}  // namespace floe::server
