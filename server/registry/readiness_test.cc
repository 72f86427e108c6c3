#include "server/registry/readiness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace floe::server {
namespace {

using ::testing::ElementsAre;

constexpr auto kYes = ServingStatus::kServing;
constexpr auto kNo = ServingStatus::kNotServing;

struct Told {
  explicit Told(bool strict) : readiness(&health, strict) {}
  ServingStatus Overall() const { return Of(""); }
  ServingStatus Of(const std::string& name) const {
    return health.Get(name).value_or(ServingStatus::kServiceUnknown);
  }
  HealthState health;
  Readiness readiness;
};

TEST(Readiness, StrictWaitsForEveryModelOnce) {
  Told told(/*strict=*/true);
  told.readiness.SetAnswering(true);
  told.readiness.SetModels({{"a", true}, {"b", false}});
  EXPECT_EQ(told.Overall(), kNo);
  EXPECT_EQ(told.Of("model/a"), kYes);
  EXPECT_EQ(told.Of("model/b"), kNo);
  told.readiness.SetModels({{"a", false}, {"b", true}});
  EXPECT_EQ(told.Overall(), kYes) << "each has been available, if not at the same time";
  EXPECT_EQ(told.Of("model/a"), kNo);
  told.readiness.SetModels({{"a", true}, {"b", true}, {"c", false}});
  EXPECT_EQ(told.Overall(), kNo) << "a new one counts too";
}

TEST(Readiness, NotStrictIsContentWithOne) {
  Told told(/*strict=*/false);
  told.readiness.SetAnswering(true);
  told.readiness.SetModels({{"a", false}, {"b", false}});
  EXPECT_EQ(told.Overall(), kNo);
  told.readiness.SetModels({{"a", false}, {"b", true}});
  EXPECT_EQ(told.Overall(), kYes);
  EXPECT_EQ(told.Of("model/a"), kNo);
}

TEST(Readiness, AStuckModelIsNotServingAndTheServerIs) {
  Told told(/*strict=*/true);
  told.readiness.SetAnswering(true);
  told.readiness.SetModels({{"a", true}, {"b", true}});
  told.readiness.SetStuck({"a"});
  EXPECT_EQ(told.Of("model/a"), kNo);
  EXPECT_EQ(told.Of("model/b"), kYes);
  EXPECT_EQ(told.Overall(), kYes);
  told.readiness.SetModels({{"a", true}, {"b", true}});
  EXPECT_EQ(told.Of("model/a"), kNo) << "a new version does not make it move";
  told.readiness.SetStuck({});
  EXPECT_EQ(told.Of("model/a"), kYes);
}

TEST(Readiness, WhereNoModelGoesOnTheServerIsNotServing) {
  Told told(/*strict=*/true);
  told.readiness.SetAnswering(true);
  told.readiness.SetModels({{"a", true}, {"b", true}});
  told.readiness.SetStuck({"a", "b"});
  EXPECT_EQ(told.Overall(), kNo);
  told.readiness.SetStuck({"b"});
  EXPECT_EQ(told.Overall(), kYes);
  told.readiness.SetModels({{"a", false}, {"b", true}});
  EXPECT_EQ(told.Overall(), kNo) << "the one that is left is stuck";
  told.readiness.SetStuck({});
  EXPECT_EQ(told.Overall(), kYes);
}

TEST(Readiness, AServerThatDoesNotAnswerIsNotServing) {
  Told told(/*strict=*/true);
  EXPECT_EQ(told.Overall(), kNo) << "it is not known to answer at first";
  told.readiness.SetModels({{"a", true}});
  EXPECT_EQ(told.Overall(), kNo);
  told.readiness.SetAnswering(true);
  EXPECT_EQ(told.Overall(), kYes);
  told.readiness.SetAnswering(false);
  EXPECT_EQ(told.Overall(), kNo);
  EXPECT_EQ(told.Of("model/a"), kYes);
}

TEST(Readiness, ModelsThatAreGoneAreForgotten) {
  Told told(/*strict=*/true);
  told.readiness.SetAnswering(true);
  told.readiness.SetModels({{"a", true}, {"b", false}});
  told.readiness.SetModels({{"a", true}});
  EXPECT_EQ(told.health.Get("model/b"), std::nullopt);
  EXPECT_EQ(told.Overall(), kYes) << "nothing more to wait for";
  told.readiness.SetModels({});
  EXPECT_EQ(told.health.Get("model/a"), std::nullopt);
  told.readiness.SetModels({{"a", false}});
  EXPECT_EQ(told.Overall(), kNo) << "that it was available was in an earlier configuration";
}

// Whoever hears of one name finds the others changed.
TEST(Readiness, AllNamesChangeTogether) {
  const std::vector<std::string> names = {"",
                                          "tensorflow.serving.PredictionService",
                                          "tensorflow.serving.ModelService",
                                          "PredictionService",
                                          "ModelService",
                                          "model/a"};
  Told told(/*strict=*/true);
  told.readiness.SetAnswering(true);
  told.readiness.SetModels({{"a", false}});
  std::vector<ServingStatus> heard;
  for (const std::string& name : names) {
    told.health.Watch(name, [&](ServingStatus status) {
      heard.push_back(status);
      for (const std::string& other : names) EXPECT_EQ(told.Of(other), status) << other;
    });
  }
  heard.clear();
  told.readiness.SetModels({{"a", true}});
  EXPECT_THAT(heard, ElementsAre(kYes, kYes, kYes, kYes, kYes, kYes));
}

}  // namespace
}  // namespace floe::server
