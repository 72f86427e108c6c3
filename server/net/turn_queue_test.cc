#include "server/net/turn_queue.h"

#include <gtest/gtest.h>

namespace floe::server {
namespace {

TEST(TurnQueue, OwnersTakeTurnsAndKeepTheirOrder) {
  TurnQueue<int> queue;
  EXPECT_FALSE(queue.Pop().has_value());
  for (int i = 0; i < 100; ++i) {
    queue.Push("one", i);
    queue.Push("other", 1000 + i);
  }
  EXPECT_EQ(queue.Pop(), 0);
  queue.Push("", 2000);
  EXPECT_EQ(queue.Pop(), 1000);
  EXPECT_EQ(queue.Pop(), 2000);
  for (int i = 1; i < 100; ++i) {
    EXPECT_EQ(queue.Pop(), i);
    EXPECT_EQ(queue.Pop(), 1000 + i);
  }
  EXPECT_FALSE(queue.Pop().has_value());
  queue.Push("other", 1);
  EXPECT_EQ(queue.Pop(), 1);
}

}  // namespace
}  // namespace floe::server
