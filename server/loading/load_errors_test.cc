#include "server/loading/load_errors.h"

#include <gtest/gtest.h>

namespace floe::server {
namespace {

TEST(LoadErrors, OnlyPassingErrorsAreTriedAgain) {
  EXPECT_TRUE(MayRetry(absl::UnavailableError("the disk is gone")));
  EXPECT_TRUE(MayRetry(absl::ResourceExhaustedError("memory is short")));
  EXPECT_TRUE(MayRetry(absl::NotFoundError("no such file")));
  EXPECT_TRUE(MayRetry(absl::PermissionDeniedError("not ours to read")));
  EXPECT_FALSE(MayRetry(absl::InvalidArgumentError("no model")));
  EXPECT_FALSE(MayRetry(absl::UnimplementedError("no such op")));
  EXPECT_FALSE(MayRetry(absl::FailedPreconditionError("")));
  EXPECT_FALSE(MayRetry(Final(absl::ResourceExhaustedError("never fits"))));
}

}  // namespace
}  // namespace floe::server
