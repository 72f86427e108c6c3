#include "server/registry/desired.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace floe::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kRevision = 1;

// A configuration that wants the latest version; complete versions 3, 2 and 1 were found.
class DesiredTest : public testing::Test {
 protected:
  DesiredTest() {
    Want({});
    found_.scanned = found_.fresh = true;
    for (const int64_t version : {3, 2, 1})
      found_.versions.push_back({{.version = version, .file = "f", .stamp = 7}, {}, true});
  }
  void Want(const ModelConfig& config) {
    configuration_ = {std::make_shared<const ModelConfig>(config), {}, kRevision};
  }
  void Fail(int64_t version, uint64_t stamp = 7, const std::string& file = "f") {
    attempts_[{kRevision, version, file, stamp}].failures = 1;
  }
  Desired Now() const { return DesiredOf(configuration_, found_, attempts_); }
  static std::vector<int64_t> Versions(const Desired& desired) {
    std::vector<int64_t> versions;
    for (const DesiredVersion& one : desired.versions) versions.push_back(one.key.version);
    return versions;
  }
  static Servable Loaded(int64_t version, int64_t revision = kRevision) {
    Servable one;
    one.key = {revision, version, "f", 7};
    return one;
  }

  Configuration configuration_;
  Found found_;
  Attempts attempts_;
};

TEST_F(DesiredTest, TheLatestCompleteVersionIsDesired) {
  EXPECT_THAT(Versions(Now()), ElementsAre(3));
  EXPECT_THAT(Now().incomplete, IsEmpty());
  found_.versions[0].settled = false;
  EXPECT_THAT(Versions(Now()), ElementsAre(2));
  EXPECT_THAT(Now().incomplete, ElementsAre(3));
}

TEST_F(DesiredTest, AnOlderVersionStandsInForOneThatFails) {
  Fail(3);
  EXPECT_THAT(Versions(Now()), ElementsAre(3, 2));
  EXPECT_TRUE(Now().Find(3)->failed);
  EXPECT_FALSE(Now().Find(2)->failed);
  configuration_.staged = true;
  EXPECT_THAT(Versions(Now()), ElementsAre(3)) << "a reload has to say that it fails";
  EXPECT_TRUE(Now().Find(3)->failed);
}

TEST_F(DesiredTest, AFailureIsOfItsFilesAndItsConfiguration) {
  Fail(3, /*stamp=*/8);
  EXPECT_THAT(Versions(Now()), ElementsAre(3));
  EXPECT_FALSE(Now().Find(3)->failed);
  attempts_.clear();
  attempts_[{kRevision + 1, 3, "f", 7}].failures = 1;
  EXPECT_FALSE(Now().Find(3)->failed);
}

TEST_F(DesiredTest, ASpecificVersionThatIsGoneIsAnErrorAndNoReasonToKeep) {
  ModelConfig config;
  config.base_path = "/m";
  config.versions = {VersionPolicy::Kind::kSpecific, 1, {2, 9}};
  Want(config);
  const Desired desired = Now();
  EXPECT_THAT(Versions(desired), ElementsAre(9, 2));
  EXPECT_FALSE(desired.Find(9)->found);
  EXPECT_THAT(std::string(desired.Find(9)->error.message()), HasSubstr("it holds 3, 2, 1"));
  EXPECT_FALSE(desired.Wants(Loaded(9)));
  EXPECT_TRUE(desired.Wants(Loaded(2)));
  EXPECT_FALSE(desired.Wants(Loaded(2, kRevision + 1)));
  found_.fresh = false;  // the last scan failed: it may be there
  EXPECT_THAT(Versions(Now()), ElementsAre(2));
}

TEST_F(DesiredTest, FilesThatWereNotScannedHaveToBe) {
  found_.versions[0].files = {.version = 3, .scanned = false};
  EXPECT_FALSE(Now().Find(3)->scanned);
  found_ = Found{.versions = {{{.version = 3, .file = "f"}, {}, true}}};
  EXPECT_FALSE(Now().Find(3)->scanned) << "what another configuration found";
}

}  // namespace
}  // namespace floe::server
