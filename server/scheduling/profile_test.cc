#include "server/scheduling/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "absl/strings/str_cat.h"

namespace floe::server {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr size_t kProfileKeys = 3 * kCostProfiles;

// Names a request's kind by its key's place among the test's keys; nothing is run.
class Names : public Executor {
 public:
  int slots() const override { return 0; }
  absl::StatusOr<Binding> Bind(const Inference&) override { return Binding(); }
  std::string Describe(const Bound& bound) const override {
    return absl::StrCat("kind ", static_cast<const char*>(bound.binding.key) - keys.data());
  }
  absl::Status Run(int, absl::Span<const Bound* const>, const RunLimits&) override {
    return absl::OkStatus();
  }
  void Outputs(int, const Bound&, int64_t, TensorViews*) override {}

  std::array<char, kProfileKeys> keys{};
};

class CostProfilesTest : public testing::Test {
 protected:
  CostProfile& Of(size_t kind) {
    Bound bound;
    bound.binding.key = &names_.keys[kind];
    return profiles_.Of(bound, names_);
  }
  // One batch more of that kind.
  void Count(size_t kind, uint64_t rows) { Of(kind).counts.Add({1, 2, rows, 1, {}}); }
  // "kind 3: 1 batches, 7 rows; ...".
  std::string Counted() const {
    std::string text;
    for (const ProfileStats& kind : profiles_.Stats())
      absl::StrAppend(&text, text.empty() ? "" : "; ", kind.name, ": ", kind.batches.batches,
                      " batches, ", kind.batches.rows, " rows");
    return text;
  }
  Names names_;
  CostProfiles profiles_;
};

TEST_F(CostProfilesTest, CountsBatchesByKey) {
  EXPECT_EQ(Counted(), "");
  Of(2);
  EXPECT_EQ(Counted(), "") << "seen, but no batch yet";
  Count(1, 7);
  Count(2, 1);
  Count(1, 3);
  EXPECT_EQ(Counted(), "kind 2: 1 batches, 1 rows; kind 1: 2 batches, 10 rows");
  EXPECT_EQ(profiles_.Find(&names_.keys[1]), &Of(1));
  EXPECT_EQ(profiles_.Find(&names_.keys[9]), nullptr);
}

TEST_F(CostProfilesTest, TheOneNotUsedForLongestGoesToTheOthers) {
  constexpr size_t kOwn = kCostProfiles;
  for (size_t kind = 0; kind < kOwn; ++kind) Count(kind, 100 + kind);
  EXPECT_EQ(profiles_.Stats().size(), kOwn);
  EXPECT_EQ(profiles_.Stats()[0].name, "kind 0") << "none of the others";
  ASSERT_NE(profiles_.Find(&names_.keys[0]), nullptr);  // which counts as seeing it
  Count(kOwn, 1);
  EXPECT_NE(profiles_.Find(&names_.keys[0]), nullptr);
  EXPECT_EQ(profiles_.Find(&names_.keys[1]), nullptr);
  auto kinds = profiles_.Stats();
  ASSERT_EQ(kinds.size(), kOwn + 1);
  EXPECT_EQ(kinds.back().name, "(others)");
  EXPECT_EQ(kinds.back().batches.rows, 101u);
  EXPECT_EQ(kinds.back().batches.requests, 2u);
  for (size_t kind = kOwn + 1; kind < kProfileKeys; ++kind) Count(kind, 1);
  kinds = profiles_.Stats();
  ASSERT_EQ(kinds.size(), kOwn + 1) << "however many kinds there are";
  uint64_t batches = 0;
  for (const ProfileStats& one : kinds) batches += one.batches.batches;
  EXPECT_EQ(batches, kProfileKeys) << "none is lost";
  EXPECT_NE(profiles_.Find(&names_.keys[kProfileKeys - 1]), nullptr);
}

TEST_F(CostProfilesTest, OneThatComesBackBeginsAnew) {
  Of(0).Learn(Duration::zero(), 1, milliseconds(5));
  for (size_t kind = 1; kind < kProfileKeys; ++kind) Of(kind);
  EXPECT_EQ(Of(0).Expect(Duration::zero(), 1), Duration::zero());
  EXPECT_EQ(Of(0).usual_run(), Duration::zero());
}

// The estimate of a shape that had to be guessed says nothing of the runs of others.
TEST_F(CostProfilesTest, OnlyRunsOfTheEstimatedShapesAreComparedWithIt) {
  for (const bool estimated : {false, true}) {
    Bound bound;
    bound.binding.key = &names_.keys[estimated ? 1 : 0];
    bound.binding.estimated = estimated;
    CostProfile& profile = profiles_.Of(bound, names_);
    profile.counts.Add({1, 1, 1, 1, {}});
    for (int i = 0; i < 200; ++i) profile.Learn(milliseconds(10), 1, milliseconds(30));
    EXPECT_GT(profile.Expect(milliseconds(10), 1), milliseconds(29)) << "both are corrected";
  }
  const auto stats = profiles_.Stats();
  ASSERT_EQ(stats.size(), 2u);
  EXPECT_EQ(stats[0].slower, 0);
  EXPECT_NEAR(stats[1].slower, 3, 0.01);
}

TEST(CostProfile, WithoutAMeasurementRowsAreLearnt) {
  CostProfile kind;
  EXPECT_EQ(kind.Expect(Duration::zero(), 8), Duration::zero()) << "not known";
  kind.Learn(Duration::zero(), 4, microseconds(400));
  EXPECT_EQ(kind.Expect(Duration::zero(), 8), microseconds(800));
  EXPECT_EQ(kind.Expect(Duration::zero(), 0), microseconds(100)) << "an empty one counts as a row";
  EXPECT_EQ(kind.usual_run(), microseconds(400));
  // A tenth of the way to what was seen: 200 us a row, and a run of 800 us.
  kind.Learn(Duration::zero(), 4, microseconds(800));
  EXPECT_EQ(kind.Expect(Duration::zero(), 1), microseconds(110));
  EXPECT_EQ(kind.usual_run(), microseconds(440));
}

TEST(CostProfile, AMeasurementIsScaledByHowMuchSlowerRunsAreOfLate) {
  CostProfile kind;
  EXPECT_EQ(kind.Expect(milliseconds(10), 8), milliseconds(10));
  kind.Learn(milliseconds(10), 8, milliseconds(20));
  EXPECT_EQ(kind.Expect(milliseconds(10), 8), milliseconds(11));
  EXPECT_EQ(kind.Expect(milliseconds(1000), 1), milliseconds(1100)) << "of any number of rows";
  for (int i = 0; i < 200; ++i) kind.Learn(milliseconds(10), 8, milliseconds(20));
  EXPECT_NEAR(static_cast<double>(kind.Expect(milliseconds(10), 8).count()), 20e6, 1e3);
}

// One run during which the machine was away makes the next ones at most twice as hopeless; fast
// ones make them at most ten times as hopeful as the measurement.
TEST(CostProfile, OneOddRunMovesLittle) {
  CostProfile kind;
  kind.Learn(milliseconds(1), 1, milliseconds(1));
  kind.Learn(milliseconds(1), 1, std::chrono::seconds(100));
  EXPECT_EQ(kind.Expect(milliseconds(1), 1), microseconds(1900));
  EXPECT_EQ(kind.usual_run(), microseconds(1900));
  for (int i = 0; i < 1000; ++i) kind.Learn(milliseconds(1), 1, Duration(1));
  EXPECT_EQ(kind.Expect(milliseconds(1), 1), microseconds(100));
}

}  // namespace
}  // namespace floe::server
