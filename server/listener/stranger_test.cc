#include "server/listener/stranger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace floe::server {
namespace {

TEST(Stranger, IsKnownByItsFirstBytes) {
  EXPECT_EQ(StrangerOf("GET / HTTP/1.1\r\n"), "HTTP/1");
  EXPECT_EQ(StrangerOf("POST /v1/models"), "HTTP/1");
  EXPECT_EQ(StrangerOf("\x16\x03\x01\x02"), "TLS");
  for (const char* other : {"", "P", "PRI * HTTP/2.0\r\n\r\nSM", "GETS", "\x16", "\x16\x04"})
    EXPECT_EQ(StrangerOf(other), "") << other;
}

TEST(Stranger, HearsWhatIsSpokenHere) {
  EXPECT_THAT(AnswerTo("HTTP/1"), testing::AllOf(testing::StartsWith("HTTP/1.1 400 "),
                                                 testing::HasSubstr("This port speaks gRPC")));
  EXPECT_EQ(AnswerTo("TLS"), "");
}

}  // namespace
}  // namespace floe::server
