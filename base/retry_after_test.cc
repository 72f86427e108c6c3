#include "base/retry_after.h"

#include <gtest/gtest.h>

#include "base/status.h"

namespace floe {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(RetryAfter, IsCarriedThroughAnnotations) {
  const absl::Status full = absl::ResourceExhaustedError("full");
  EXPECT_EQ(RetryAfter(full), std::nullopt);
  EXPECT_EQ(RetryAfter(absl::OkStatus()), std::nullopt);
  const absl::Status later = WithRetryAfter(full, microseconds(2500));
  EXPECT_EQ(later.code(), full.code());
  EXPECT_EQ(later.message(), "full");
  EXPECT_EQ(RetryAfter(later), milliseconds(3));
  EXPECT_EQ(RetryAfter(Annotate(later, "model 'm'")), milliseconds(3));
  EXPECT_EQ(RetryAfter(WithRetryAfter(full, Duration::zero())), milliseconds(1));
}

}  // namespace
}  // namespace floe
