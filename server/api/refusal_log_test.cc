#include "server/api/refusal_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/str_cat.h"

namespace floe::server {
namespace {

using ::testing::HasSubstr;

const TimePoint kStart = TimePoint() + std::chrono::hours(1);

absl::Status Missing(const std::string& input) {
  return absl::InvalidArgumentError("there is no input '" + input + "' among 3");
}

TEST(RefusalLog, OneLineForEachModelAndCauseInAMinute) {
  RefusalLog log;
  EXPECT_EQ(log.Line("m", "a-1", Missing("x"), kStart),
            "request 'a-1' of model 'm' refused: INVALID_ARGUMENT: there is no input 'x' among 3");
  // The same cause, whatever is quoted and counted.
  EXPECT_EQ(log.Line("m", "a-2", Missing("y7"), kStart), "");
  EXPECT_EQ(log.Line("m", "a-3", Missing("z"), kStart + RefusalLog::kEvery - Duration(1)), "");
  // Another model, another code, another message.
  EXPECT_NE(log.Line("n", "a-4", Missing("x"), kStart), "");
  EXPECT_NE(log.Line("m", "a-5", absl::NotFoundError(Missing("x").message()), kStart), "");
  EXPECT_NE(log.Line("m", "a-6", absl::InvalidArgumentError("bad shape"), kStart), "");
  EXPECT_THAT(log.Line("m", "a-7", Missing("x"), kStart + RefusalLog::kEvery),
              HasSubstr("(2 more like it before)"));
}

TEST(RefusalLog, NamesAreEscapedAndMayBeMissing) {
  RefusalLog log;
  EXPECT_EQ(log.Line("", "id", absl::InvalidArgumentError("no name"), kStart),
            "request 'id' refused: INVALID_ARGUMENT: no name");
  EXPECT_THAT(log.Line("a\x1b[31m\nb", "id", absl::NotFoundError("no"), kStart),
              HasSubstr("model 'a\\x1b[31m\\nb' refused"));
}

// Callers that make up names fill neither the log nor memory.
TEST(RefusalLog, ManyModelsShareALine) {
  RefusalLog log;
  size_t lines = 0;
  for (int i = 0; i < 10'000; ++i)
    if (!log.Line(absl::StrCat("model", i), "id", absl::NotFoundError("no"), kStart).empty())
      ++lines;
  EXPECT_EQ(lines, RefusalLog::kMost + 1);
  // Those of a minute ago make room.
  EXPECT_NE(log.Line("new", "id", absl::NotFoundError("no"), kStart + RefusalLog::kEvery), "");
  EXPECT_NE(log.Line("new2", "id", absl::NotFoundError("no"), kStart + RefusalLog::kEvery), "");
}

TEST(RefusalLog, ListsTheLastRequestOfEachCause) {
  RefusalLog log;
  EXPECT_TRUE(log.Recent(9).empty());
  const auto later = [](int seconds) { return kStart + std::chrono::seconds(seconds); };
  (void)log.Line("m", "a-1", Missing("x"), kStart);
  (void)log.Line("n", "b-1", absl::UnavailableError("full"), later(1));
  (void)log.Line("m", "a-2", Missing("y"), later(2));  // no line is due
  const std::vector<Refusals> recent = log.Recent(9);
  ASSERT_EQ(recent.size(), 2u);
  EXPECT_EQ(recent[0].model, "m");
  EXPECT_EQ(recent[0].count, 2u);
  EXPECT_EQ(recent[0].request_id, "a-2");
  EXPECT_EQ(recent[0].when, later(2));
  EXPECT_EQ(recent[0].code, absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(recent[0].message, HasSubstr("'y'"));
  EXPECT_EQ(recent[1].request_id, "b-1");
  ASSERT_EQ(log.Recent(1).size(), 1u);
  EXPECT_EQ(log.Recent(1)[0].model, "m");
  ASSERT_EQ(log.Recent(9, "n").size(), 1u);
  EXPECT_EQ(log.Recent(9, "n")[0].count, 1u);
}

}  // namespace
}  // namespace floe::server
