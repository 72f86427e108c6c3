#include "server/health/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace floe::server {
namespace {

using ::testing::ElementsAre;
constexpr auto kServing = ServingStatus::kServing;
constexpr auto kNotServing = ServingStatus::kNotServing;
constexpr auto kUnknownService = ServingStatus::kServiceUnknown;

TEST(HealthState, NamesAndStates) {
  HealthState health;
  EXPECT_FALSE(health.Get("a").has_value());
  health.Set("a", kServing);
  EXPECT_EQ(health.Get("a"), kServing);
  health.Set("a", kNotServing);
  EXPECT_EQ(health.Get("a"), kNotServing);
  health.Remove("a");
  EXPECT_FALSE(health.Get("a").has_value());
}

TEST(HealthState, WatchersHearTheFirstStateAndEveryChangeOnce) {
  HealthState health;
  std::vector<ServingStatus> a, b;
  health.Set("a", kNotServing);
  const int64_t id = health.Watch("a", [&](ServingStatus s) { a.push_back(s); });
  health.Watch("b", [&](ServingStatus s) { b.push_back(s); });
  health.Set("a", kServing);
  health.Set("a", kServing);  // no change, no news
  health.Set("b", kServing);
  health.Remove("a");
  health.Remove("a");
  health.Unwatch(id);
  health.Set("a", kServing);
  EXPECT_THAT(a, ElementsAre(kNotServing, kServing, kUnknownService));
  EXPECT_THAT(b, ElementsAre(kUnknownService, kServing));
}

TEST(HealthState, NamesSetTogetherChangeTogether) {
  HealthState health;
  const std::map<std::string, ServingStatus> all = {{"", kServing}, {"a", kServing}};
  std::vector<std::optional<ServingStatus>> seen;
  health.Set({{"", kNotServing}, {"a", kNotServing}});
  health.Watch("", [&](ServingStatus) { seen.push_back(health.Get("a")); });
  health.Set(all);
  health.Set(all);  // no change, no news
  EXPECT_THAT(seen, ElementsAre(kNotServing, kServing));
}

TEST(HealthState, ShutdownIsForGood) {
  HealthState health;
  std::vector<ServingStatus> heard;
  health.Set("a", kServing);
  health.Set("b", kNotServing);
  health.Watch("a", [&](ServingStatus s) { heard.push_back(s); });
  health.Shutdown();
  health.Set("a", kServing);
  health.Set("new", kServing);
  health.Remove("a");
  EXPECT_EQ(health.Get("a"), kNotServing);
  EXPECT_FALSE(health.Get("new").has_value());
  EXPECT_THAT(heard, ElementsAre(kServing, kNotServing));
}

// Watchers may read the state, and many threads may set, watch and leave at once: each watcher
// hears alternating states (a repeated one would be a lost or doubled change).
TEST(HealthState, ManyThreads) {
  HealthState health;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&health] {
      for (int i = 0; i < 500; ++i) health.Set("a", i % 2 == 0 ? kServing : kNotServing);
    });
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&health] {
      for (int i = 0; i < 200; ++i) {
        std::vector<ServingStatus> heard;
        const int64_t id = health.Watch("a", [&](ServingStatus s) {
          EXPECT_EQ(health.Get("a").value_or(kUnknownService), s);
          heard.push_back(s);
        });
        health.Unwatch(id);
        for (size_t k = 1; k < heard.size(); ++k) EXPECT_NE(heard[k - 1], heard[k]);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace floe::server
