#include "server/listener/call_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>

namespace floe::server {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kA1[] = "10.0.0.1:1001", kA2[] = "10.0.0.1:1002", kB1[] = "10.0.0.2:1001",
               kUnix[] = "unix";

TEST(PeerOf, HostAndPort) {
  EXPECT_EQ(PeerOf("10.0.0.1:80").host, "10.0.0.1");
  EXPECT_EQ(PeerOf("10.0.0.1:80").port, 80);
  EXPECT_FALSE(PeerOf("10.0.0.1:80").local());
  EXPECT_TRUE(PeerOf("127.0.0.3:80").local());
  EXPECT_EQ(PeerOf("[::1]:65535").host, "::1");
  EXPECT_EQ(PeerOf("[::1]:65535").port, 65535);
  EXPECT_TRUE(PeerOf("[::1]:65535").local());
  EXPECT_EQ(PeerOf("[fe80::1%eth0]:7").host, "fe80::1");
  EXPECT_FALSE(PeerOf("[fe80::1]:7").local());
  EXPECT_TRUE(PeerOf("unix").local());
  EXPECT_TRUE(PeerOf("").local());
}

TEST(CallBook, BoundsCallsOfAConnectionOfAnAddressAndOfAll) {
  CallBook book({{2, 0}, {3, 0}, {4, 0}});
  std::list<CallSeat> seats;
  const auto take = [&](const char* peer) {
    return std::string(book.Take(peer, 10, &seats.emplace_back()).message());
  };
  EXPECT_EQ(take(kA1), "");
  EXPECT_EQ(take(kA1), "");
  EXPECT_THAT(take(kA1), HasSubstr("server.max_calls_per_connection"));
  EXPECT_EQ(take(kA2), "");
  EXPECT_THAT(take(kA2), HasSubstr("server.max_calls_per_address"));
  EXPECT_EQ(take(kB1), "");
  EXPECT_THAT(take(kUnix), HasSubstr("server.max_calls)"));
  EXPECT_EQ(book.all().calls, 4);
  EXPECT_EQ(book.all().request_bytes, 40);
  const CallRefusals refused = book.refusals();
  EXPECT_EQ(refused.connection, 1);
  EXPECT_EQ(refused.address, 1);
  EXPECT_EQ(refused.all, 1);
  EXPECT_EQ(refused.memory, 0);
  seats.pop_front();
  EXPECT_EQ(take(kA1), "");
  seats.clear();
  EXPECT_EQ(book.all().calls, 0);
  EXPECT_EQ(book.all().request_bytes, 0);
}

TEST(CallBook, ConnectionsOfUnixSocketsCountAsAnAddress) {
  CallBook book({{1, 0}, {2, 0}, {}});
  CallSeat a, b, c;
  EXPECT_TRUE(book.Take(kUnix, 0, &a).ok());
  EXPECT_TRUE(book.Take(kUnix, 0, &b).ok());
  EXPECT_THAT(std::string(book.Take(kUnix, 0, &c).message()), HasSubstr("per_address"));
}

TEST(CallBook, BytesAreThoseOfRequestsAndOfRepliesUntilTheyAreSent) {
  CallBook book({{0, 100}, {0, 150}, {}});
  CallSeat a, b, c, d;
  EXPECT_TRUE(book.Take(kA1, 60, &a).ok());
  EXPECT_THAT(std::string(book.Take(kA1, 60, &b).message()),
              HasSubstr("server.max_call_bytes_per_connection"));
  EXPECT_TRUE(book.Take(kA1, 10, &b).ok());
  EXPECT_TRUE(a.AddReply(1000).ok()) << "one reply is there for everybody";
  EXPECT_TRUE(absl::IsResourceExhausted(b.AddReply(1)));
  EXPECT_TRUE(absl::IsResourceExhausted(book.Take(kA2, 1, &c))) << "of the same address";
  EXPECT_TRUE(book.Take(kB1, 1, &d).ok());
  a.Leave();
  EXPECT_TRUE(b.AddReply(80).ok());
  EXPECT_EQ(book.all().request_bytes, 11);
  EXPECT_EQ(book.all().reply_bytes, 80);
}

TEST(CallBook, TheBytesOfLargeCallsArePaidFor) {
  const MemoryBudget memory(1 << 20);
  CallLimits limits;
  limits.memory = &memory;
  CallBook book(limits);
  CallSeat small, large, other;
  EXPECT_TRUE(book.Take(kA1, 1000, &small).ok());
  EXPECT_EQ(memory.in_use(), 0);
  EXPECT_TRUE(book.Take(kA1, 500'000, &large).ok());
  EXPECT_EQ(memory.in_use(), 500'000);
  EXPECT_TRUE(large.AddReply(200'000).ok());
  EXPECT_EQ(memory.in_use(), 700'000);
  EXPECT_TRUE(absl::IsResourceExhausted(book.Take(kB1, 500'000, &other)));
  EXPECT_TRUE(absl::IsResourceExhausted(small.AddReply(500'000)));
  EXPECT_EQ(book.refusals().memory, 2);
  large.Leave();
  EXPECT_EQ(memory.in_use(), 0);
}

TEST(CallBook, WhoDoesNotReadIsOverdue) {
  FakeClock clock;
  CallLimits limits;
  limits.send_timeout = seconds(30);
  CallBook book(limits, &clock);
  CallSeat idle, slow, unix_socket, waits;
  ASSERT_TRUE(book.Take(kA1, 1, &idle).ok());
  ASSERT_TRUE(book.Take(kA2, 1, &slow).ok());
  ASSERT_TRUE(book.Take(kUnix, 1, &unix_socket).ok());
  ASSERT_TRUE(book.Take(kB1, 1, &waits).ok());
  ASSERT_TRUE(idle.AddReply(100).ok());
  ASSERT_TRUE(slow.AddReply(1 << 30).ok());
  ASSERT_TRUE(unix_socket.AddReply(100).ok());
  int64_t taken = 0;  // by the slow one
  const auto overdue = [&] {
    return book.Overdue([&](const std::string& host, uint16_t port) {
      EXPECT_EQ(host, "10.0.0.1");
      return port == 1002 ? taken : 5;
    });
  };
  for (int second = 0; second < 31; ++second) {
    EXPECT_THAT(overdue(), IsEmpty()) << second;
    clock.Advance(seconds(1));
    taken += CallLimits::kLeastRate;
  }
  const auto cuts = overdue();
  ASSERT_THAT(cuts, SizeIs(1));
  EXPECT_EQ(cuts[0].host, "10.0.0.1");
  EXPECT_EQ(cuts[0].port, 1001);
  idle.Leave();
  for (int second = 0; second < 30; ++second) {
    EXPECT_THAT(overdue(), IsEmpty()) << second;
    clock.Advance(seconds(1));
    taken += CallLimits::kLeastRate / 2;
  }
  clock.Advance(seconds(30));
  EXPECT_THAT(overdue(), SizeIs(1)) << "half of what it should take";
}

TEST(CallBook, WhereBytesAreShortTheWorstReaderGoes) {
  FakeClock clock;
  CallBook book({{}, {}, {0, 1000}}, &clock);
  const auto none = [](const std::string&, uint16_t) { return int64_t{0}; };
  CallSeat a, b, c;
  ASSERT_TRUE(book.Take(kA1, 0, &a).ok());
  ASSERT_TRUE(book.Take(kB1, 0, &b).ok());
  ASSERT_TRUE(a.AddReply(400).ok());
  ASSERT_TRUE(b.AddReply(500).ok());
  clock.Advance(CallBook::kPressed + seconds(1));
  EXPECT_THAT(book.Overdue(none), IsEmpty()) << "nobody was refused";
  EXPECT_TRUE(absl::IsResourceExhausted(book.Take(kA2, 200, &c)));
  const auto cuts = book.Overdue(none);
  ASSERT_THAT(cuts, SizeIs(1));
  EXPECT_EQ(cuts[0].host, "10.0.0.2");
  EXPECT_THAT(book.Overdue(none), IsEmpty());
}

}  // namespace
}  // namespace floe::server
