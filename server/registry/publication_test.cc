#include "server/registry/publication.h"

#include <gtest/gtest.h>

namespace floe::server {
namespace {

// One that changes no configuration.
class ReadOnly : public Publication {
 public:
  using Publication::Publication;
  absl::StatusOr<std::vector<ModelStats>> Stats(std::string_view) const override {
    return absl::UnimplementedError("");
  }
  absl::Status Reload(ReloadRequest) override { return absl::UnimplementedError(""); }
};

ServedTable TableOf(const std::string& model, int64_t version, bool settled) {
  ServedTable table;
  table.config.generation = version;
  table.settled = settled;
  ServedTable::Entry& entry = table.models[model];
  entry.available.push_back({version, nullptr, nullptr});
  entry.statuses.push_back({version, VersionState::kAvailable, absl::OkStatus()});
  return table;
}

TEST(Publication, HealthFollowsTheTable) {
  HealthState health;
  int changes = 0;
  ReadOnly publication(&health, /*strict_readiness=*/true, [&] { ++changes; });
  publication.SetAnswering(true);
  // Whoever hears that a model serves finds it.
  health.Watch("model/m", [&](ServingStatus status) {
    if (status == ServingStatus::kServing) EXPECT_TRUE(publication.Acquire("m", {}).ok());
  });
  publication.Publish(TableOf("m", 1, true));
  publication.WaitUntilLoaded();
  EXPECT_EQ(health.Get("model/m"), ServingStatus::kServing);
  EXPECT_EQ(health.Get(""), ServingStatus::kServing);
  EXPECT_EQ(publication.CurrentConfig().generation, 1);
  EXPECT_EQ(changes, 1);
  publication.Publish(TableOf("n", 2, true));
  EXPECT_EQ(health.Get("model/m"), std::nullopt);
  EXPECT_EQ(publication.Status("n", {})->at(0).version, 2);
}

TEST(Publication, ATableThatIsHeldStaysAsItIs) {
  HealthState health;
  ReadOnly publication(&health, true, nullptr);
  publication.Publish(TableOf("m", 1, false));
  const auto before = publication.Table();
  publication.Publish(TableOf("m", 2, false));
  EXPECT_EQ(before->models.at("m").available[0].version, 1);
  EXPECT_EQ(publication.Table()->models.at("m").available[0].version, 2);
}

TEST(Publication, AfterItsEndRequestsAreRefused) {
  HealthState health;
  ReadOnly publication(&health, true, nullptr);
  publication.Publish(TableOf("m", 1, false));
  publication.Close();
  publication.WaitUntilLoaded();  // for nothing more
  EXPECT_EQ(publication.Acquire("m", {}).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(publication.Status("m", {})->at(0).state, VersionState::kEnd);
  EXPECT_EQ(publication.Acquire("floe.probe", {}).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace floe::server
