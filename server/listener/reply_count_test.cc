#include "server/listener/reply_count.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace floe::server {
namespace {

TEST(ReplyCount, PeersAreKnownByTheirPorts) {
  const size_t slot = ReplyCount::SlotOfPort(40213);
  EXPECT_EQ(ReplyCount::SlotOf("ipv4:127.0.0.1:40213"), slot);
  EXPECT_EQ(ReplyCount::SlotOf("ipv6:[::1]:40213"), slot);
  EXPECT_EQ(ReplyCount::SlotOf("ipv6:%5B::1%5D:40213"), slot);
  EXPECT_NE(slot, ReplyCount::SlotOfPort(0));
  for (const char* nameless : {"", "unix:", "unix:/run/client:40213", "unknown"})
    EXPECT_EQ(ReplyCount::SlotOf(nameless), ReplyCount::SlotOfPort(0)) << nameless;
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
