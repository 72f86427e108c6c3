#include "server/batching/bucket_book.h"

#include <gtest/gtest.h>

#include <array>

namespace floe::server {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr size_t kKeys = 3 * BucketBook::kMaxKinds;

class BucketBookTest : public testing::Test {
 protected:
  BucketBook::Kind& Of(size_t kind) {
    Task task;
    task.key = &keys_[kind];
    return book_.Of(task);
  }
  std::array<char, kKeys> keys_{};
  BucketBook book_;
};

TEST_F(BucketBookTest, TheKindNotSeenForLongestMakesRoom) {
  EXPECT_EQ(book_.Find(&keys_[0]), nullptr);
  for (size_t kind = 0; kind < BucketBook::kMaxKinds; ++kind) Of(kind);
  EXPECT_EQ(book_.Find(&keys_[0]), &Of(0));  // which counts as seeing it
  Of(BucketBook::kMaxKinds);
  EXPECT_NE(book_.Find(&keys_[0]), nullptr);
  EXPECT_EQ(book_.Find(&keys_[1]), nullptr);
  EXPECT_NE(book_.Find(&keys_[BucketBook::kMaxKinds]), nullptr);
}

TEST_F(BucketBookTest, AKindThatComesBackBeginsAnew) {
  Of(0).Learn(Duration::zero(), 1, milliseconds(5));
  for (size_t kind = 1; kind < kKeys; ++kind) Of(kind);
  EXPECT_EQ(Of(0).Expect(Duration::zero(), 1), Duration::zero());
  EXPECT_EQ(Of(0).usual_run(), Duration::zero());
}

TEST(Kind, WithoutAMeasurementRowsAreLearnt) {
  BucketBook::Kind kind;
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

TEST(Kind, AMeasurementIsScaledByHowMuchSlowerRunsAreOfLate) {
  BucketBook::Kind kind;
  EXPECT_EQ(kind.Expect(milliseconds(10), 8), milliseconds(10));
  kind.Learn(milliseconds(10), 8, milliseconds(20));
  EXPECT_EQ(kind.Expect(milliseconds(10), 8), milliseconds(11));
  EXPECT_EQ(kind.Expect(milliseconds(1000), 1), milliseconds(1100)) << "of any number of rows";
  for (int i = 0; i < 200; ++i) kind.Learn(milliseconds(10), 8, milliseconds(20));
  EXPECT_NEAR(static_cast<double>(kind.Expect(milliseconds(10), 8).count()), 20e6, 1e3);
}

// One run during which the machine was away makes the next ones at most twice as hopeless; fast
// ones make them at most ten times as hopeful as the measurement.
TEST(Kind, OneOddRunMovesLittle) {
  BucketBook::Kind kind;
  kind.Learn(milliseconds(1), 1, milliseconds(1));
  kind.Learn(milliseconds(1), 1, std::chrono::seconds(100));
  EXPECT_EQ(kind.Expect(milliseconds(1), 1), microseconds(1900));
  EXPECT_EQ(kind.usual_run(), microseconds(1900));
  for (int i = 0; i < 1000; ++i) kind.Learn(milliseconds(1), 1, Duration(1));
  EXPECT_EQ(kind.Expect(milliseconds(1), 1), microseconds(100));
}

}  // namespace
}  // namespace floe::server
