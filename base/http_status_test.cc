#include "base/http_status.h"

#include <gtest/gtest.h>

namespace floe {
namespace {

// Those of floe's own answers that are told apart, and classes where a status is not known.
TEST(HttpStatus, ErrorsHaveCodes) {
  EXPECT_EQ(CodeOfHttp(400), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOfHttp(401), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(CodeOfHttp(404), absl::StatusCode::kNotFound);
  EXPECT_EQ(CodeOfHttp(405), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(CodeOfHttp(413), absl::StatusCode::kResourceExhausted) << "as over gRPC";
  EXPECT_EQ(CodeOfHttp(429), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(CodeOfHttp(503), absl::StatusCode::kUnavailable);
  EXPECT_EQ(CodeOfHttp(504), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(CodeOfHttp(418), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOfHttp(599), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace floe
