#include "server/listener/call_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace floe::server {
namespace {

TEST(ReplyCount, ConnectionsWithoutAPortHaveASlotOfTheirOwn) {
  for (const uint16_t port : {1, 127, 254, 40213, 65535})
    EXPECT_NE(ReplyCount::SlotOf(port), ReplyCount::SlotOf(0)) << port;
}

TEST(ReplyCount, NothingIsSentBesideAReply) {
  ReplyCount count;
  const auto yes = [] { return true; };
  CountedReply first(&count, 1), second(&count, 1);
  first.Begin();
  second.Begin();
  second.Begin();  // of a reply in several parts
  EXPECT_FALSE(count.Aside(1, yes));
  EXPECT_TRUE(count.Aside(2, yes));
  first.End();
  EXPECT_FALSE(count.Aside(1, yes));
  second.End();
  EXPECT_TRUE(count.Aside(1, yes));
  EXPECT_FALSE(count.Aside(1, [] { return false; }));
}

TEST(ReplyCount, TheBeginningOfAReplyWaitsForWhatIsSent) {
  ReplyCount count;
  std::atomic<bool> sending{false}, sent{false};
  std::thread reply([&] {
    while (!sending) std::this_thread::yield();
    count.Begin(0);
    EXPECT_TRUE(sent);
    count.End(0);
  });
  EXPECT_TRUE(count.Aside(0, [&] {
    sending = true;
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    sent = true;
    return true;
  }));
  reply.join();
}

}  // namespace
}  // namespace floe::server
