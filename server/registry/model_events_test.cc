#include "server/registry/model_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/registry/staging.h"

namespace floe::server {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::Key;

const absl::Status kPassingFailure = absl::UnavailableError("the disk is slow today");

FoundVersion FileVersion(int64_t version, uint64_t stamp = 7) {
  return {.version = version, .file = "f", .stamp = stamp, .quiet = std::chrono::hours(1)};
}

// A model whose configuration wants the latest version.
class ModelEventsTest : public testing::Test {
 protected:
  ModelEventsTest() {
    model_.name = "m";
    SetCurrent(&model_, std::make_shared<const ModelConfig>(), {});
  }
  bool Scan(const std::vector<FoundVersion>& found) {
    (void)BeginScan(model_, now_, &*model_.current);
    return NoteScanned(&model_, model_.current->scan_ticket, {found}, now_, times_);
  }
  Work Step() {
    Work work;
    Reconcile(&model_, now_, &work);
    return work;
  }
  // The only load that is under way ends so.
  void EndLoad(const absl::Status& status) {
    ASSERT_EQ(model_.servables.size(), 1u);
    NoteLoaded(&model_, model_.servables.front().id, status, now_, times_, {});
  }
  AttemptKey KeyOf(int64_t version, uint64_t stamp = 7) const {
    return {model_.current_revision(), version, "f", stamp};
  }

  ModelState model_;
  TimePoint now_{std::chrono::hours(1)};
  LifecycleTimes times_;
};

TEST_F(ModelEventsTest, AFailureIsKeptByConfigurationVersionAndFiles) {
  EXPECT_TRUE(Scan({FileVersion(1)}));
  EXPECT_EQ(Step().loads.size(), 1u);
  EndLoad(kPassingFailure);
  EXPECT_THAT(model_.attempts, ElementsAre(Key(KeyOf(1))));
  EXPECT_EQ(Step().next, now_ + times_.retry);
  now_ += times_.retry;
  EXPECT_EQ(Step().loads.size(), 1u);
  EndLoad(kPassingFailure);
  EXPECT_EQ(model_.attempts[KeyOf(1)].failures, 2);
  // Other files are tried at once, and take its place.
  EXPECT_TRUE(Scan({FileVersion(1, 8)}));
  EXPECT_EQ(Step().loads.size(), 1u);
  EXPECT_TRUE(model_.attempts.empty());
  EndLoad(absl::OkStatus());
  EXPECT_TRUE(model_.attempts.empty());
  EXPECT_TRUE(model_.servables.front().Available());
}

TEST_F(ModelEventsTest, ARetryEndsWithTheBoundOrWithAnErrorThatStays) {
  times_.max_retries = 1;
  Scan({FileVersion(1)});
  for (const bool last : {false, true}) {
    EXPECT_EQ(Step().loads.size(), 1u);
    EndLoad(kPassingFailure);
    EXPECT_EQ(model_.attempts[KeyOf(1)].retry_at == TimePoint::max(), last);
    now_ += times_.retry;
  }
  Scan({FileVersion(1, 8)});
  Step();
  EndLoad(absl::InvalidArgumentError("no model"));
  EXPECT_EQ(model_.attempts[KeyOf(1, 8)].retry_at, TimePoint::max());
}

TEST_F(ModelEventsTest, AReloadIsToldApartFromWhatWasBefore) {
  Scan({FileVersion(1)});
  Step();
  EndLoad(kPassingFailure);
  Stage(&model_, model_.current->configuration.model, {});
  const Attempt& attempt = model_.attempts[KeyOf(1)];
  EXPECT_LT(attempt.last_reload, model_.reloads);
  EXPECT_EQ(Step().loads.size(), 1u) << "it is retried at once";
  EndLoad(kPassingFailure);
  EXPECT_LT(attempt.first_reload, model_.reloads);
  EXPECT_EQ(attempt.last_reload, model_.reloads);
}

TEST_F(ModelEventsTest, FailuresOfAConfigurationThatIsDroppedAreForgotten) {
  Scan({FileVersion(1)});
  Step();
  EndLoad(absl::OkStatus());
  ModelConfig other;
  other.workers = 7;
  Stage(&model_, std::make_shared<const ModelConfig>(other), {});
  (void)BeginScan(model_, now_, &*model_.staged);
  NoteScanned(&model_, model_.staged->scan_ticket, {std::vector{FileVersion(1)}}, now_, times_);
  const Work work = Step();
  ASSERT_EQ(work.loads.size(), 1u);
  NoteLoaded(&model_, work.loads[0].id, kPassingFailure, now_, times_, {});
  EXPECT_EQ(model_.attempts.size(), 1u);
  model_.staged.reset();
  Step();
  EXPECT_TRUE(model_.attempts.empty());
}

TEST_F(ModelEventsTest, AVersionThatIsGoneIsRememberedAsEnded) {
  Scan({FileVersion(2), FileVersion(1)});
  Step();
  EndLoad(kPassingFailure);
  Scan({FileVersion(1)});
  EXPECT_TRUE(model_.attempts.empty());
  ASSERT_EQ(model_.ended.size(), 1u);
  EXPECT_EQ(model_.ended[0].version, 2);
  EXPECT_EQ(model_.ended[0].error, kPassingFailure);
}

TEST_F(ModelEventsTest, APlaceIsGivenUpThoughScansGoOn) {
  times_.max_retries = 1;
  for (const bool given_up : {false, true}) {
    (void)BeginScan(model_, now_, &*model_.current);
    EXPECT_TRUE(NoteScanned(&model_, model_.current->scan_ticket, {kPassingFailure}, now_, times_));
    EXPECT_EQ(model_.current->failed_scans->retry_at == TimePoint::max(), given_up);
    EXPECT_EQ(model_.current->next_scan, now_ + times_.poll);
  }
  Scan({FileVersion(1)});
  EXPECT_FALSE(model_.current->failed_scans);
}

TEST_F(ModelEventsTest, WhatWasRefusedForMemoryIsTriedWhenItComesBack) {
  Scan({FileVersion(1)});
  Step();
  EndLoad(absl::ResourceExhaustedError("too much"));
  EXPECT_TRUE(Step().loads.empty());
  RetryRefused(&model_);
  EXPECT_EQ(Step().loads.size(), 1u);
}

TEST_F(ModelEventsTest, StagingTellsHowFarItIs) {
  Stage(&model_, std::make_shared<const ModelConfig>(), {});
  EXPECT_EQ(*ProgressOfStaged(model_, true), StagedProgress::kWaiting);
  EXPECT_EQ(*ProgressOfStaged(model_, false), StagedProgress::kReady) << "it stays as it is";
  (void)BeginScan(model_, now_, &*model_.staged);
  NoteScanned(&model_, model_.staged->scan_ticket, {std::vector{FileVersion(1)}}, now_, times_);
  Step();
  EXPECT_EQ(StagedWaitsFor(model_), "version 1 is being loaded");
  EXPECT_FALSE(WillBeAvailable(model_, 1));
  EndLoad(absl::OkStatus());
  EXPECT_EQ(*ProgressOfStaged(model_, true), StagedProgress::kReady);
  EXPECT_TRUE(WillBeAvailable(model_, 1));
  Commit(&model_);
  EXPECT_FALSE(model_.staged);
  Commit(&model_);
  EXPECT_FALSE(model_.current) << "nothing is staged: it is removed";
}

}  // namespace
}  // namespace floe::server
