#include "server/api/trace_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace floe::server {
namespace {

constexpr char kTraceId[] = "0af7651916cd43dd8448eb211c80319c";
// The example of the specification.
constexpr char kHeader[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(Traceparent, ContinuesATrace) {
  const auto read = ParseTraceparent(kHeader);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->trace_id, kTraceId);
  EXPECT_TRUE(read->sampled);
  EXPECT_EQ(Traceparent(*read, "00f067aa0ba902b7"),
            absl::StrCat("00-", kTraceId, "-00f067aa0ba902b7-01"));
  std::string header = kHeader;
  header.replace(53, 2, "fe");  // flags that are not known are not sent on
  ASSERT_TRUE(ParseTraceparent(header).has_value());
  EXPECT_FALSE(ParseTraceparent(header)->sampled);
  EXPECT_THAT(Traceparent(*ParseTraceparent(header), "1"), testing::EndsWith("-1-00"));
}

TEST(Traceparent, LaterVersionsMayBeLonger) {
  std::string header = kHeader;
  header[1] = '1';
  EXPECT_TRUE(ParseTraceparent(header).has_value());
  EXPECT_TRUE(ParseTraceparent(header + "-more").has_value());
  EXPECT_FALSE(ParseTraceparent(header + "more").has_value());
  EXPECT_FALSE(ParseTraceparent(absl::StrCat(kHeader, "-more")).has_value());
}

TEST(Traceparent, WhatIsNoneCountsAsNone) {
  EXPECT_FALSE(ParseTraceparent("").has_value());
  EXPECT_FALSE(ParseTraceparent(std::string(kHeader).substr(1)).has_value());
  const struct {
    size_t at;
    std::string text;
  } kWrong[] = {{0, "ff"}, {2, "_"},  {3, std::string(32, '0')},
                {3, "0A"}, {35, "_"}, {36, std::string(16, '0')},
                {40, "g"}, {52, "_"}, {54, "x"}};
  for (const auto& wrong : kWrong) {
    std::string header = kHeader;
    header.replace(wrong.at, wrong.text.size(), wrong.text);
    EXPECT_FALSE(ParseTraceparent(header).has_value()) << header;
  }
}

TEST(Traceparent, SpansHaveIdsOfTheirOwn) {
  const std::string one = NewSpanId(), other = NewSpanId();
  EXPECT_NE(one, other);
  EXPECT_TRUE(ParseTraceparent(Traceparent({kTraceId, true}, one)).has_value());
}

}  // namespace
}  // namespace floe::server
