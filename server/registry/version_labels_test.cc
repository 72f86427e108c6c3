#include "server/registry/version_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(VersionLabels, OnlyMoveToWhatIsAvailable) {
  const auto available = [](int64_t version) { return version == 1 || version == 2; };
  const auto dropped = [](int64_t version) { return version == 4; };
  const auto check = [&](const VersionLabels& before, const VersionLabels& after, bool allow) {
    return CheckLabels("m", before, after, {available, dropped}, allow);
  };
  EXPECT_TRUE(check({}, {{"a", 1}}, false).ok());
  EXPECT_TRUE(check({{"a", 1}}, {{"a", 2}}, false).ok());
  EXPECT_TRUE(check({{"a", 3}}, {{"a", 3}}, false).ok()) << "it stays where it was";
  EXPECT_TRUE(check({{"a", 3}}, {}, false).ok());
  const absl::Status moved = check({{"a", 1}}, {{"a", 3}}, false);
  EXPECT_EQ(moved.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(moved.message()),
              AllOf(HasSubstr("'m'"), HasSubstr("'a'"), HasSubstr("version 3")));
  EXPECT_EQ(check({}, {{"a", 3}}, false).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(check({}, {{"a", 3}}, true).ok()) << "nobody uses it yet";
  EXPECT_FALSE(check({{"a", 1}}, {{"a", 3}}, true).ok()) << "somebody uses it";
  const absl::Status dropping = check({{"a", 4}}, {{"a", 4}}, false);
  EXPECT_EQ(dropping.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(dropping.message()), HasSubstr("version 4, which would be unloaded"));
  EXPECT_TRUE(check({{"a", 4}}, {{"a", 4}}, true).ok());
}

}  // namespace
}  // namespace floe::server
