#include "server/net/loop.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>

namespace floe::server {
namespace {

class CountingWatcher final : public Loop::Watcher {
 public:
  void OnReady(bool) override { ++times_ready; }
  void OnTurnEnd() override {}
  int times_ready = 0;
};

TEST(LoopTest, TellsNothingOfADescriptorThatIsUnwatchedButOpenElsewhere) {
  Loop loop;
  ASSERT_TRUE(loop.Start().ok());
  std::array<int, 2> ends;
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
  CountingWatcher watcher;
  loop.RunNow([&] { EXPECT_TRUE(loop.Watch(ends[0], &watcher).ok()); });
  const int elsewhere = dup(ends[0]);
  loop.RunNow([&] {
    loop.Unwatch(ends[0]);
    close(ends[0]);
    watcher.times_ready = 0;  // it could be written to
  });
  ASSERT_EQ(write(ends[1], "late", 4), 4);
  for (int turn = 0; turn < 2; ++turn) loop.RunNow([] {});
  loop.RunNow([&] { EXPECT_EQ(watcher.times_ready, 0); });
  loop.Stop();
  close(elsewhere);
  close(ends[1]);
}

}  // namespace
}  // namespace floe::server
