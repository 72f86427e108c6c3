#include "server/registry/version_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace floe::server {
namespace {

using ::testing::ElementsAre;

VersionPolicy Latest(int64_t n) {
  VersionPolicy policy;
  policy.latest = n;
  return policy;
}

TEST(VersionPolicyTest, Latest) {
  EXPECT_THAT(WantedVersions(Latest(1), {9, 4, 2}, {}), ElementsAre(9));
  EXPECT_THAT(WantedVersions(Latest(2), {9, 4, 2}, {}), ElementsAre(9, 4));
  EXPECT_THAT(WantedVersions(Latest(5), {9, 4, 2}, {}), ElementsAre(9, 4, 2));
  EXPECT_THAT(WantedVersions(Latest(1), {}, {}), ElementsAre());
}

TEST(VersionPolicyTest, ABadVersionTakesNothingAway) {
  EXPECT_THAT(WantedVersions(Latest(1), {9, 4, 2}, {9}), ElementsAre(9, 4));
  EXPECT_THAT(WantedVersions(Latest(2), {9, 4, 2}, {4}), ElementsAre(9, 4, 2));
  EXPECT_THAT(WantedVersions(Latest(1), {9, 4}, {9, 4}), ElementsAre(9, 4));
}

TEST(VersionPolicyTest, VersionsThatLabelsNameAreWantedToo) {
  EXPECT_THAT(WantedVersions(Latest(1), {9, 4, 2}, {}, {2, 7}), ElementsAre(9, 2));
  EXPECT_THAT(WantedVersions(Latest(1), {9, 4, 2}, {9}, {9, 4}), ElementsAre(9, 4));
  EXPECT_THAT(WantedVersions(Latest(2), {9, 4, 2}, {2}, {2}), ElementsAre(9, 4, 2));
  VersionPolicy specific;
  specific.kind = VersionPolicy::Kind::kSpecific;
  specific.specific = {9};
  EXPECT_THAT(WantedVersions(specific, {9, 4, 2}, {}, {2}), ElementsAre(9));
}

TEST(VersionPolicyTest, AllAndSpecific) {
  VersionPolicy policy;
  policy.kind = VersionPolicy::Kind::kAll;
  EXPECT_THAT(WantedVersions(policy, {9, 4, 2}, {9}), ElementsAre(9, 4, 2));
  policy.kind = VersionPolicy::Kind::kSpecific;
  policy.specific = {2, 7, 2};
  EXPECT_THAT(WantedVersions(policy, {9, 4, 2}, {2}), ElementsAre(7, 2));
}

}  // namespace
}  // namespace floe::server
