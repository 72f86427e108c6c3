#include "server/registry/served_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Only its address matters here.
class Served : public ServedModel {
 public:
  const ModelHandle& model() const override { return model_; }
  ReplyFormat reply_format() const override { return ReplyFormat::kTyped; }
  void Submit(Request) override { ADD_FAILURE() << "nobody asked"; }

 private:
  ModelHandle model_;
};

// Versions 7 and 5 of "digits" are available, 6 has failed; "later" is loading.
class ServedTableTest : public testing::Test {
 protected:
  // To be written to.
  ServedTable::Entry& Entry(const std::string& model) {
    auto entry = std::make_shared<ServedTable::Entry>();
    if (const auto it = table_.models.find(model); it != table_.models.end()) *entry = *it->second;
    table_.models[model] = entry;
    return *entry;
  }
  ServedTableTest() {
    ServedTable::Entry& digits = Entry("digits");
    digits.available = {{7, seven_, nullptr}, {5, five_, nullptr}};
    digits.statuses = {{7, VersionState::kAvailable, absl::OkStatus()},
                       {6, VersionState::kEnd, absl::InvalidArgumentError("no such op")},
                       {5, VersionState::kAvailable, absl::OkStatus()}};
    digits.labels = {{"stable", 5}, {"canary", 6}};
    digits.settled = true;
    ServedTable::Entry& later = Entry("later");
    later.statuses = {{1, VersionState::kLoading, absl::OkStatus()}};
    later.labels = {{"stable", 1}};
  }
  ServedModel* Acquired(const VersionChoice& choice) const {
    const auto served = table_.Acquire("digits", choice);
    EXPECT_TRUE(served.ok()) << served.status();
    return served.ok() ? served->get() : nullptr;
  }
  // The code, and that the message has `part`.
  absl::StatusCode Refused(std::string_view name, const VersionChoice& choice,
                           const std::string& part) const {
    const absl::Status status = table_.Acquire(name, choice).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
    return status.code();
  }
  const std::shared_ptr<Served> seven_ = std::make_shared<Served>();
  const std::shared_ptr<Served> five_ = std::make_shared<Served>();
  ServedTable table_;
};

TEST_F(ServedTableTest, WhereNoVersionHasBeenFoundTheStatusSaysWhy) {
  ServedTable::Entry& none = Entry("none");
  EXPECT_EQ(table_.Status("none", {}).status(),
            absl::NotFoundError("no version of model 'none' has been found yet"));
  none.last_error = absl::InvalidArgumentError("its place is empty");
  EXPECT_EQ(table_.Status("none", {}).status(),
            absl::NotFoundError("no version of model 'none' has been found: its place is empty"));
}

// The distance to each of ten thousand names would take a transport's thread a tenth of a second.
TEST_F(ServedTableTest, AmongManyModelsNoNearestIsLookedFor) {
  for (int i = 0; i < 200; ++i) Entry("model" + std::to_string(i));
  EXPECT_EQ(Refused("digit", {}, "there is no model 'digit' among the 202"),
            absl::StatusCode::kNotFound);
}

TEST_F(ServedTableTest, NewestVersionLabel) {
  EXPECT_EQ(Acquired({}), seven_.get());
  EXPECT_EQ(Acquired({5, ""}), five_.get());
  EXPECT_EQ(Acquired({7, ""}), seven_.get());
  EXPECT_EQ(Acquired({std::nullopt, "stable"}), five_.get());
}

TEST_F(ServedTableTest, VersionZeroIsTheNewestUnlessItExists) {
  EXPECT_EQ(Acquired({0, ""}), seven_.get());
  EXPECT_EQ(table_.Status("digits", {0, ""})->size(), 3u);
  ServedTable::Entry& digits = Entry("digits");
  digits.statuses.push_back({0, VersionState::kAvailable, absl::OkStatus()});
  EXPECT_EQ(Refused("digits", {0, ""}, "no version 0 loaded"), absl::StatusCode::kNotFound);
  digits.available.push_back({0, five_, nullptr});
  EXPECT_EQ(Acquired({0, ""}), five_.get());
  EXPECT_EQ(table_.Status("digits", {0, ""})->size(), 1u);
}

TEST_F(ServedTableTest, NotFoundNamesWhatThereIs) {
  EXPECT_EQ(Refused("digit", {}, "'digit'; nearest: 'digits'"), absl::StatusCode::kNotFound);
  EXPECT_EQ(Refused("digits", {8, ""}, "no version 8 loaded; available: 7, 5"),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(Refused("digits", {6, ""}, "(it is FAILED: no such op); available: 7, 5"),
            absl::StatusCode::kNotFound);
  const std::string long_name(5000, '\n');
  const absl::Status status = table_.Acquire(long_name, {}).status();
  EXPECT_LT(status.message().size(), 1000u);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("\\n...'"), Not(HasSubstr("\n"))));
  table_.models.clear();
  EXPECT_EQ(Refused("digits", {}, "no model is configured"), absl::StatusCode::kNotFound);
}

TEST_F(ServedTableTest, UnknownLabels) {
  EXPECT_EQ(Refused("digits", {std::nullopt, "beta"}, "'beta'; it has 'canary', 'stable'"),
            absl::StatusCode::kInvalidArgument);
  Entry("digits").labels.clear();
  EXPECT_EQ(Refused("digits", {std::nullopt, "beta"}, "leave version_label out"),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ServedTableTest, ALabelOfAVersionThatIsNotAvailable) {
  EXPECT_EQ(Refused("digits", {std::nullopt, "canary"},
                    "label 'canary' stands for version 6, which is not available (it is FAILED"),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Refused("later", {std::nullopt, "stable"}, "(it is LOADING)"),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(ServedTableTest, UnavailableWhileItIsNotKnownWhatThereWillBe) {
  for (const VersionChoice& choice : {VersionChoice{}, VersionChoice{1, ""}})
    EXPECT_EQ(Refused("later", choice, "'later' is still loading"), absl::StatusCode::kUnavailable);
  ServedTable::Entry& later = Entry("later");
  later.last_error = absl::NotFoundError("no such directory");
  EXPECT_EQ(Refused("later", {}, "not available: no such directory"),
            absl::StatusCode::kUnavailable);
  later.settled = true;
  EXPECT_EQ(Refused("later", {}, "no such directory"), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Refused("later", {2, ""}, "available: none"), absl::StatusCode::kNotFound);
  table_.stopping = true;
  for (const VersionChoice& choice : {VersionChoice{}, VersionChoice{2, ""}})
    EXPECT_EQ(Refused("later", choice, "is being stopped"), absl::StatusCode::kUnavailable);
}

TEST_F(ServedTableTest, StatusOfAVersionInAnyState) {
  const auto all = table_.Status("digits", {});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->size(), 3u);
  for (const VersionChoice& choice : {VersionChoice{6, ""}, {std::nullopt, "canary"}}) {
    const auto one = table_.Status("digits", choice);
    ASSERT_TRUE(one.ok()) << one.status();
    ASSERT_EQ(one->size(), 1u);
    EXPECT_EQ(one->at(0).version, 6);
    EXPECT_EQ(one->at(0).state, VersionState::kEnd);
  }
  EXPECT_EQ(table_.Status("digits", {8, ""}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(table_.Status("digit", {}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(table_.Status("digits", {std::nullopt, "beta"}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// One that changes no configuration.
class ReadOnly : public Publication {
 public:
  using Publication::Publication;
  absl::StatusOr<std::vector<ModelStats>> Stats(std::string_view) const override {
    return absl::UnimplementedError("");
  }
  void StartReload(ReloadRequest, ReloadDone) override {}
};

ServedTable TableOf(const std::string& model, int64_t version, bool settled) {
  ServedTable table;
  ConfigState config;
  config.generation = version;
  table.config = std::make_shared<const ConfigState>(std::move(config));
  table.settled = settled;
  ServedTable::Entry entry;
  entry.available.push_back({version, nullptr, nullptr});
  entry.statuses.push_back({version, VersionState::kAvailable, absl::OkStatus()});
  table.models[model] = std::make_shared<const ServedTable::Entry>(std::move(entry));
  return table;
}

TEST(Publication, HealthFollowsTheTable) {
  HealthState health;
  int changes = 0;
  ReadOnly publication(&health, /*strict_readiness=*/true, [&] { ++changes; });
  publication.SetAnswering(true);
  // Whoever hears that a model serves finds it.
  health.Watch("model/m", [&](ServingStatus status) {
    if (status == ServingStatus::kServing) {
      EXPECT_TRUE(publication.Acquire("m", {}).ok());
    }
  });
  publication.Publish(TableOf("m", 1, true), {"m"});
  publication.WaitUntilLoaded();
  EXPECT_EQ(health.Get("model/m"), ServingStatus::kServing);
  EXPECT_EQ(health.Get(""), ServingStatus::kServing);
  EXPECT_EQ(publication.CurrentConfig().generation, 1);
  EXPECT_EQ(changes, 1);
  publication.Publish(TableOf("n", 2, true), {"m", "n"});
  EXPECT_EQ(health.Get("model/m"), std::nullopt);
  EXPECT_EQ(publication.Status("n", {})->at(0).version, 2);
}

TEST(Publication, ATableThatIsHeldStaysAsItIs) {
  HealthState health;
  ReadOnly publication(&health, true, nullptr);
  publication.Publish(TableOf("m", 1, false), {"m"});
  const auto before = publication.Table();
  publication.Publish(TableOf("m", 2, false), {"m"});
  EXPECT_EQ(before->models.at("m")->available[0].version, 1);
  EXPECT_EQ(publication.Table()->models.at("m")->available[0].version, 2);
}

TEST(Publication, AfterItsEndRequestsAreRefused) {
  HealthState health;
  ReadOnly publication(&health, true, nullptr);
  publication.Publish(TableOf("m", 1, false), {"m"});
  publication.Close();
  publication.WaitUntilLoaded();  // for nothing more
  EXPECT_EQ(publication.Acquire("m", {}).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(publication.Status("m", {})->at(0).state, VersionState::kEnd);
  EXPECT_EQ(publication.Acquire("floe.probe", {}).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace floe::server
