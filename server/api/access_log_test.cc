#include "server/api/access_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace floe::server {
namespace {

using ::testing::ElementsAre;

TEST(AccessLog, ALineHasWhatIsKnown) {
  std::vector<std::string> lines;
  AccessLog log(
      1, [&](std::string line) { lines.push_back(std::move(line)); }, [] { return 1.5; });
  AccessRecord record;
  record.peer = "127.0.0.1:40213";
  record.caller = "app";
  record.method = "/v1/models/a:predict";
  record.model = "a\"\x01\xff";
  record.version = 3;
  record.signature = "s";
  record.request_bytes = 7;
  record.reply_bytes = 9;
  record.took = std::chrono::microseconds(1234);
  record.timings = {std::chrono::microseconds(12), std::chrono::microseconds(345), 8};
  record.request_id = "r-1";
  record.trace_id = "t";
  log.Add(record);
  log.Add({.status = absl::UnavailableError("full\n")});
  EXPECT_THAT(
      lines,
      ElementsAre(
          "{\"time\":\"1970-01-01T00:00:01.500000Z\",\"peer\":\"127.0.0.1:40213\",\"caller\":"
          "\"app\","
          "\"method\":\"/v1/models/a:predict\",\"model\":\"a\\\"\\\\x01\\\\xff\",\"version\":3,"
          "\"signature\":\"s\",\"code\":\"OK\",\"request_bytes\":7,\"reply_bytes\":9,"
          "\"total_us\":1234,\"queue_us\":12,\"run_us\":345,\"batch_rows\":8,"
          "\"request_id\":\"r-1\",\"trace_id\":\"t\"}\n",
          "{\"time\":\"1970-01-01T00:00:01.500000Z\",\"code\":\"UNAVAILABLE\",\"request_bytes\":0,"
          "\"reply_bytes\":0,\"total_us\":0,\"queue_us\":0,\"run_us\":0,\"batch_rows\":0,"
          "\"error\":\"full\\n\"}\n"));
}

TEST(AccessLog, SomeOfThoseThatSucceedAndAllOthers) {
  AccessLog log(3, [](const std::string&) {});
  std::vector<bool> taken;
  for (int i = 0; i < 6; ++i) taken.push_back(log.Takes(absl::OkStatus()));
  EXPECT_THAT(taken, ElementsAre(true, false, false, true, false, false));
  EXPECT_TRUE(log.Takes(absl::InternalError("a")));
  EXPECT_TRUE(log.Takes(absl::InternalError("a")));
}

}  // namespace
}  // namespace floe::server
