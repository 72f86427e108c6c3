// Reloads of models that have versions known to fail, by way of Lifecycle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/registry/lifecycle_world_for_test.h"

namespace floe::server {
namespace {

TEST(Reload, ABadVersionIsTheErrorOfOneAttempt) {
  for (const bool without_model : {false, true}) {
    ServingWorld world(TestModel("a"), WithoutPolling());
    world.Put("/b", 1);
    if (without_model) {
      world.PutWithoutModel("/a", 2);
    } else {
      world.Put("/a", 2);
      world.Break("a", 2, kBadModel);
    }
    const auto reload = [&](const ModelConfig& a) {
      const int64_t ticket = world.Reload({a, TestModel("b")});
      world.Finish();
      return world.Outcome(ticket);
    };
    EXPECT_EQ(reload(TestModel("a")), world.lifecycle().config().last_error);
    EXPECT_EQ(world.States("b"), "none");
    // To ask for it by its number is another matter.
    ModelConfig named = TestModel("a");
    named.versions = {VersionPolicy::Kind::kSpecific, 1, {1, 2}};
    for (int i = 0; i < 2; ++i) EXPECT_EQ(reload(named).code(), kBadModel.code());
    const int loads = world.finished_loads();
    EXPECT_TRUE(reload(TestModel("a")).ok());
    EXPECT_EQ(world.finished_loads(), loads + 1) << "of b";
    EXPECT_EQ(world.States("a"), "2 END!, 1 AVAILABLE");
    EXPECT_EQ(world.Served("b"), "1");
    EXPECT_EQ(reload(named).code(), kBadModel.code());
    EXPECT_EQ(world.Served("a"), "1");
  }
}

// Its place may have other files then.
TEST(Reload, ABadVersionIsAnErrorAgainWhereTheModelIsAnother) {
  ServingWorld world(TestModel("m"), WithoutPolling());
  world.Put("/m", 2);
  world.Break("m", 2, kBadModel);
  ModelConfig other = TestModel("m");
  other.workers = 7;
  for (int i = 0; i < 2; ++i) {
    for (const ModelConfig& model : {TestModel("m"), other}) {
      const int64_t ticket = world.Reload({model});
      world.Finish();
      EXPECT_EQ(world.Outcome(ticket).ok(), i == 1 && model == TestModel("m"));
    }
  }
}

}  // namespace
}  // namespace floe::server
