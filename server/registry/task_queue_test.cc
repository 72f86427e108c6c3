#include "server/registry/task_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace floe::server {
namespace {

using ::testing::ElementsAre;

void Open(const std::vector<TaskQueue::Task>& tasks) {
  for (const TaskQueue::Task& task : tasks) task();
}

TEST(TaskQueue, HandsOutWhatCameInOrderAndOnce) {
  TaskQueue box;
  std::vector<int> seen;
  for (const int i : {1, 2, 3}) EXPECT_TRUE(box.Post([&seen, i] { seen.push_back(i); }));
  Open(box.Take(TimePoint::max()));
  EXPECT_THAT(seen, ElementsAre(1, 2, 3));
  EXPECT_TRUE(box.Take(TimePoint()).empty()) << "the time has come, and nothing else";
  EXPECT_TRUE(box.Post([&seen] { seen.push_back(4); }));
  Open(box.Take(TimePoint()));
  EXPECT_THAT(seen, ElementsAre(1, 2, 3, 4)) << "what is there is handed out however late it is";
}

TEST(TaskQueue, WakesTheOneWhoWaits) {
  TaskQueue box;
  int opened = 0;
  std::thread taker([&] {
    while (opened < 100) {
      std::vector<TaskQueue::Task> tasks = box.Take(TimePoint::max());
      EXPECT_FALSE(tasks.empty());
      Open(tasks);
    }
  });
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(box.Post([&opened] { ++opened; }));
  taker.join();
  EXPECT_EQ(opened, 100);
}

TEST(TaskQueue, CloseDropsTasksAndEndsTheWait) {
  TaskQueue box;
  auto held = std::make_shared<int>();
  EXPECT_TRUE(box.Post([held] { ADD_FAILURE() << "it was to be dropped"; }));
  EXPECT_FALSE(box.closed());
  box.Close();
  EXPECT_TRUE(box.closed());
  EXPECT_EQ(held.use_count(), 1) << "what a task holds is let go";
  EXPECT_FALSE(box.Post([held] {}));
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_TRUE(box.Take(TimePoint::max()).empty());
  TaskQueue other;
  std::thread taker([&] { EXPECT_TRUE(other.Take(TimePoint::max()).empty()); });
  other.Close();
  taker.join();
}

}  // namespace
}  // namespace floe::server
