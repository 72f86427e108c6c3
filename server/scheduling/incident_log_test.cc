#include "server/scheduling/incident_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace floe::server {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

const TimePoint kFirstHour = TimePoint() + std::chrono::hours(1);

TEST(IncidentLog, OneLineACauseAndMinute) {
  IncidentLog log;
  SchedulerStats stats;
  stats[Outcome::kAnswered] = 100;
  EXPECT_THAT(log.Lines(stats, kFirstHour), IsEmpty());
  stats[Outcome::kRefusedFull] = 3;
  EXPECT_THAT(log.Lines(stats, kFirstHour), ElementsAre("3 requests refused: the queue was full"));
  stats[Outcome::kRefusedFull] = 500;
  stats[Outcome::kExpired] = 1;
  EXPECT_THAT(log.Lines(stats, kFirstHour + seconds(10)), ElementsAre("1 requests expired"));
  EXPECT_THAT(log.Lines(stats, kFirstHour + seconds(59)), IsEmpty());
  EXPECT_THAT(log.Lines(stats, kFirstHour + seconds(60)),
              ElementsAre("497 requests refused: the queue was full"));
  EXPECT_THAT(log.Lines(stats, kFirstHour + seconds(300)), IsEmpty()) << "nothing new";
}

TEST(IncidentLog, NamesTheLastInternalError) {
  IncidentLog log;
  SchedulerStats stats;
  stats.by_code[static_cast<size_t>(absl::StatusCode::kInternal)] = 2;
  stats.last_internal_error = "node 'x' gave two rows";
  EXPECT_THAT(log.Lines(stats, kFirstHour),
              ElementsAre("2 requests failed with INTERNAL, the last one: node 'x' gave two rows"));
}

}  // namespace
}  // namespace floe::server
