#include "server/registry/readiness.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace floe::server {
namespace {

constexpr auto kYes = ServingStatus::kServing;
constexpr auto kNo = ServingStatus::kNotServing;

struct Reported {
  explicit Reported(bool strict) : readiness(&health, strict) {}
  ServingStatus Overall() const { return Of(""); }
  ServingStatus Of(const std::string& name) const {
    return health.Get(name).value_or(ServingStatus::kServiceUnknown);
  }
  HealthState health;
  Readiness readiness;
};

TEST(Readiness, StrictWaitsForEveryModelOnce) {
  Reported reported(/*strict=*/true);
  reported.readiness.SetAnswering(true);
  reported.readiness.Update({{"a", true}, {"b", false}});
  EXPECT_EQ(reported.Overall(), kNo);
  EXPECT_EQ(reported.Of("model/a"), kYes);
  EXPECT_EQ(reported.Of("model/b"), kNo);
  reported.readiness.Update({{"a", false}, {"b", true}});
  EXPECT_EQ(reported.Overall(), kYes) << "each has been available, if not at the same time";
  EXPECT_EQ(reported.Of("model/a"), kNo);
  reported.readiness.Update({{"a", true}, {"b", true}, {"c", false}});
  EXPECT_EQ(reported.Overall(), kNo) << "a new one counts too";
}

TEST(Readiness, NotStrictIsContentWithOne) {
  Reported reported(/*strict=*/false);
  reported.readiness.SetAnswering(true);
  reported.readiness.Update({{"a", false}, {"b", false}});
  EXPECT_EQ(reported.Overall(), kNo);
  reported.readiness.Update({{"a", false}, {"b", true}});
  EXPECT_EQ(reported.Overall(), kYes);
  EXPECT_EQ(reported.Of("model/a"), kNo);
}

TEST(Readiness, AStuckModelIsNotServingAndTheServerIs) {
  Reported reported(/*strict=*/true);
  reported.readiness.SetAnswering(true);
  reported.readiness.Update({{"a", true}, {"b", true}});
  reported.readiness.SetAiling({{"a", "makes no progress"}});
  EXPECT_EQ(reported.Of("model/a"), kNo);
  EXPECT_EQ(reported.Of("model/b"), kYes);
  EXPECT_EQ(reported.Overall(), kYes);
  reported.readiness.Update({{"a", true}, {"b", true}});
  EXPECT_EQ(reported.Of("model/a"), kNo) << "a new version does not make it move";
  reported.readiness.SetAiling({});
  EXPECT_EQ(reported.Of("model/a"), kYes);
}

TEST(Readiness, WhereNoModelGoesOnTheServerIsNotServing) {
  Reported reported(/*strict=*/true);
  reported.readiness.SetAnswering(true);
  reported.readiness.Update({{"a", true}, {"b", true}});
  reported.readiness.SetAiling({{"a", "makes no progress"}, {"b", "makes no progress"}});
  EXPECT_EQ(reported.Overall(), kNo);
  reported.readiness.SetAiling({{"b", "makes no progress"}});
  EXPECT_EQ(reported.Overall(), kYes);
  reported.readiness.Update({{"a", false}, {"b", true}});
  EXPECT_EQ(reported.Overall(), kNo) << "the one that is left is stuck";
  reported.readiness.SetAiling({});
  EXPECT_EQ(reported.Overall(), kYes);
}

TEST(Readiness, WhatAilsAModelMayChangeAndIsSaidOnce) {
  Reported reported(/*strict=*/true);
  reported.readiness.SetAnswering(true);
  reported.readiness.Update({{"a", true}, {"b", true}});
  for (const char* what : {"cannot answer: cuda:0 is lost", "makes no progress"}) {
    reported.readiness.SetAiling({{"a", what}});
    EXPECT_EQ(reported.Of("model/a"), kNo);
    EXPECT_EQ(reported.Of("model/b"), kYes);
  }
  reported.readiness.SetAiling({{"b", "makes no progress"}});
  EXPECT_EQ(reported.Of("model/a"), kYes);
  EXPECT_EQ(reported.Of("model/b"), kNo);
}

TEST(Readiness, AServerThatDoesNotAnswerIsNotServing) {
  Reported reported(/*strict=*/true);
  EXPECT_EQ(reported.Overall(), kNo) << "it is not known to answer at first";
  reported.readiness.Update({{"a", true}});
  EXPECT_EQ(reported.Overall(), kNo);
  reported.readiness.SetAnswering(true);
  EXPECT_EQ(reported.Overall(), kYes);
  reported.readiness.SetAnswering(false);
  EXPECT_EQ(reported.Overall(), kNo);
  EXPECT_EQ(reported.Of("model/a"), kYes);
}

TEST(Readiness, ModelsThatAreGoneAreForgotten) {
  Reported reported(/*strict=*/true);
  reported.readiness.SetAnswering(true);
  reported.readiness.Update({{"a", true}, {"b", false}});
  reported.readiness.Update({{"b", std::nullopt}});
  EXPECT_EQ(reported.health.Get("model/b"), std::nullopt);
  EXPECT_EQ(reported.Overall(), kYes) << "nothing more to wait for";
  reported.readiness.Update({{"a", std::nullopt}});
  EXPECT_EQ(reported.health.Get("model/a"), std::nullopt);
  reported.readiness.Update({{"a", false}});
  EXPECT_EQ(reported.Overall(), kNo) << "that it was available was in an earlier configuration";
}

// Whoever hears of one name finds the others changed.
TEST(Readiness, AllNamesChangeTogether) {
  const std::vector<std::string> names = {"",
                                          "tensorflow.serving.PredictionService",
                                          "tensorflow.serving.ModelService",
                                          "PredictionService",
                                          "ModelService",
                                          "inference.GRPCInferenceService",
                                          "model/a"};
  Reported reported(/*strict=*/true);
  reported.readiness.SetAnswering(true);
  reported.readiness.Update({{"a", false}});
  std::vector<ServingStatus> heard;
  for (const std::string& name : names) {
    reported.health.Watch(name, [&](ServingStatus status) {
      heard.push_back(status);
      for (const std::string& other : names) EXPECT_EQ(reported.Of(other), status) << other;
    });
  }
  heard.clear();
  reported.readiness.Update({{"a", true}});
  EXPECT_EQ(heard, std::vector<ServingStatus>(names.size(), kYes));
}

}  // namespace
}  // namespace floe::server
