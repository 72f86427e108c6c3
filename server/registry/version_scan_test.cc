#include "server/registry/version_scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace floe::server {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class VersionScan : public testing::Test {
 protected:
  VersionScan() {
    root_ = testing::TempDir() + "floe_scan_" +
            testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~VersionScan() override { fs::remove_all(root_); }

  std::string Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + "/" + path).parent_path());
    std::ofstream(root_ + "/" + path) << text;
    return root_ + "/" + path;
  }
  uint64_t Stamp(const std::string& path, size_t index = 0) {
    const auto found = ScanVersions(root_ + path);
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? found->at(index).stamp : 0;
  }
  // So that the next change is seen by the time of the directory.
  void MakeOld(const std::string& path) {
    fs::last_write_time(root_ + "/" + path,
                        fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  std::string root_;
};

TEST_F(VersionScan, Layouts) {
  Write("file.pb", "");
  Write("flat/anything.pb", "");
  Write("saved/saved_model.pb", "");
  Write("saved/saved_model.pbtxt", "");
  Write("saved/fingerprint.pb", "");
  Write("saved/keras_metadata.pb", "");
  Write("saved/batching_params.pbtxt", "");
  Write("foreign/model.onnx", "");
  Write("both/model.onnx", "");
  Write("both/model.keras", "");
  Write("versions/2/graph.pb", "");
  Write("versions/10/model.pb", "");
  Write("versions/0/m.pb", "");
  Write("versions/notes/readme.pb", "");
  Write("versions/11x/frozen.pb", "");
  const auto find = [this](const std::string& path) {
    const auto found = ScanVersions(root_ + path);
    EXPECT_TRUE(found.ok()) << found.status();
    std::string text;
    for (const FoundVersion& one : found.ok() ? *found : std::vector<FoundVersion>()) {
      EXPECT_TRUE(one.error.ok()) << one.error;
      absl::StrAppend(&text, text.empty() ? "" : ", ", one.version, " ",
                      one.file.substr(root_.size()));
    }
    return text;
  };
  EXPECT_EQ(find("/file.pb"), "1 /file.pb");
  EXPECT_EQ(find("/flat"), "1 /flat/anything.pb");
  EXPECT_EQ(find("/saved"), "1 /saved/saved_model.pb");
  EXPECT_EQ(find("/foreign"), "1 /foreign/model.onnx") << "whose loader says what to do";
  EXPECT_EQ(find("/both"), "1 /both/model.keras");
  EXPECT_EQ(find("/versions"),
            "10 /versions/10/model.pb, 2 /versions/2/graph.pb, 0 /versions/0/m.pb");
}

TEST_F(VersionScan, ErrorsNameWhatWasFound) {
  const auto error = [this](const std::string& path, absl::StatusCode code) {
    const absl::Status status = ScanVersions(root_ + path).status();
    EXPECT_EQ(status.code(), code) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(error("/none", absl::StatusCode::kNotFound),
              AllOf(HasSubstr(root_ + "/none"), HasSubstr("No such file")));
  fs::create_directories(root_ + "/empty");
  EXPECT_THAT(error("/empty", absl::StatusCode::kNotFound),
              HasSubstr("holds nothing; expected directories"));
  Write("two/a.pb", "");
  Write("two/b.pb", "");
  EXPECT_THAT(error("/two", absl::StatusCode::kInvalidArgument),
              HasSubstr("several models ('a.pb', 'b.pb')"));
  // Whatever they are called: no name is better than another.
  for (const std::string other : {"graph.pb", "saved_model.pb", "m.keras", "m.h5", "m.pbtxt"}) {
    const std::string folder = "frozen_and_" + other;
    Write(folder + "/frozen.pb", "");
    Write(absl::StrCat(folder, "/", other), "");
    EXPECT_THAT(error("/" + folder, absl::StatusCode::kInvalidArgument),
                AllOf(HasSubstr("holds several models"), HasSubstr("'" + other + "'")));
  }
  for (const char* name : {"model.keras", "model.h5"}) {
    const std::string folder = absl::StrCat("of_", name);
    const std::string file = Write(absl::StrCat(folder, "/2/", name), "");
    Write(absl::StrCat(folder, "/2/README.md"), "");
    const auto keras = ScanVersions(absl::StrCat(root_, "/", folder));
    ASSERT_TRUE(keras.ok()) << keras.status();
    EXPECT_EQ((*keras)[0].version, 2);
    EXPECT_EQ((*keras)[0].file, file);
  }
  // A bad version is one among others.
  Write("bad/1/frozen.pb", "");
  Write("bad/3/variables/x", "");
  const auto bad = ScanVersions(root_ + "/bad");
  ASSERT_TRUE(bad.ok()) << bad.status();
  ASSERT_EQ(bad->size(), 2u);
  EXPECT_EQ((*bad)[0].version, 3);
  EXPECT_EQ((*bad)[0].file, "");
  EXPECT_EQ((*bad)[0].error.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string((*bad)[0].error.message()),
              AllOf(HasSubstr("/bad/3'"), HasSubstr("'variables/'"), HasSubstr("saved_model.pb")));
  EXPECT_TRUE((*bad)[1].error.ok());
  // A path that is hidden from services says so.
  for (const std::string place : {"/home", "/root", "/run/user", "/tmp", "/var/tmp"})
    EXPECT_THAT(std::string(ScanVersions(place + "/none/such").status().message()),
                AllOf(HasSubstr("ProtectHome"), HasSubstr("BindReadOnlyPaths")))
        << place;
  unsetenv("INVOCATION_ID");  // a service's
  EXPECT_THAT(std::string(ScanVersions("/none/such").status().message()),
              Not(HasSubstr("ProtectHome")));
}

// Whatever a copy still does to a version shows in its stamp, and nothing else does.
TEST_F(VersionScan, TheStampTellsWhetherFilesChange) {
  Write("m/1/frozen.pb", "abc");
  Write("m/1/assets/words.txt", "one two");
  Write("m/2/frozen.pb", "abc");
  const uint64_t before = Stamp("/m", 1), other = Stamp("/m", 0);
  EXPECT_EQ(Stamp("/m", 1), before);
  EXPECT_NE(before, other) << "other files";
  Write("m/1/assets/words.txt", "one two three");
  const uint64_t longer = Stamp("/m", 1);
  EXPECT_NE(longer, before);
  Write("m/1/assets/more.txt", "");
  const uint64_t more = Stamp("/m", 1);
  EXPECT_NE(more, longer);
  fs::last_write_time(root_ + "/m/1/frozen.pb",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_NE(Stamp("/m", 1), more) << "the same size at another time";
  const uint64_t earlier = Stamp("/m", 1);
  fs::permissions(root_ + "/m/1/frozen.pb", fs::perms::owner_write);
  EXPECT_NE(Stamp("/m", 1), earlier) << "another mode";
  EXPECT_EQ(Stamp("/m", 0), other) << "its neighbour was left alone";
}

TEST_F(VersionScan, SaysHowLongFilesHaveBeenQuiet) {
  Write("m/1/frozen.pb", std::string(1000, 'x'));
  Write("m/1/assets/words.txt", "12345");
  // Setting the time back does not make files look older than they are.
  fs::last_write_time(root_ + "/m/1/frozen.pb",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  const auto found = ScanVersions(root_ + "/m");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_LT((*found)[0].quiet, std::chrono::minutes(30));
  EXPECT_GE((*found)[0].quiet, Duration::zero());
}

TEST_F(VersionScan, AMarkerSaysThatAVersionIsComplete) {
  Write("m/1/frozen.pb", "1");
  Write("m/2/frozen.pb", "1");
  Write("m/2/.complete", "");
  Write("flat/frozen.pb", "1");
  VersionsToScan scan;
  scan.marker = ".complete";
  const auto found = ScanVersions(root_ + "/m", scan);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->at(0).error.ok()) << found->at(0).error;
  EXPECT_EQ(found->at(0).quiet, Duration::max()) << "new as it is";
  EXPECT_THAT(found->at(1).error.ToString(),
              AllOf(HasSubstr(root_ + "/m/1'"), HasSubstr("no '.complete' yet")));
  EXPECT_NE(found->at(1).quiet, Duration::max());
  const auto flat = ScanVersions(root_ + "/flat", scan);
  ASSERT_TRUE(flat.ok()) << flat.status();
  EXPECT_THAT(flat->at(0).error.ToString(), HasSubstr("completion_marker"));
}

TEST_F(VersionScan, KnownVersionsAreNotLookedInto) {
  Write("m/1/frozen.pb", "");
  Write("m/2/readme.txt", "no model");
  VersionsToScan scan;
  scan.known = {2};
  const auto found = ScanVersions(root_ + "/m", scan);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 2u);
  EXPECT_FALSE((*found)[0].scanned);
  EXPECT_TRUE((*found)[0].error.ok());
  EXPECT_TRUE((*found)[1].scanned);
  // Nor are those that are no directories of versions.
  Write("flat/frozen.pb", "");
  scan.known = {1};
  for (const char* path : {"/flat", "/flat/frozen.pb"}) {
    const auto one = ScanVersions(root_ + path, scan);
    ASSERT_TRUE(one.ok()) << one.status();
    ASSERT_EQ(one->size(), 1u) << path;
    EXPECT_EQ((*one)[0].version, 1);
    EXPECT_FALSE((*one)[0].scanned) << path;
  }
}

TEST_F(VersionScan, OnlyWhatThePolicyWantsIsLookedInto) {
  for (const char* version : {"1", "2", "3", "4"}) Write(absl::StrCat("m/", version, "/a.pb"), "");
  VersionsToScan scan;
  const auto into = [&] {
    std::string text;
    const auto found = ScanVersions(root_ + "/m", scan);
    EXPECT_TRUE(found.ok()) << found.status();
    for (const FoundVersion& one : *found)
      absl::StrAppend(&text, one.version, one.scanned ? " looked " : " ");
    return text;
  };
  scan.policy = {VersionPolicy::Kind::kLatest, 1, {}};
  EXPECT_EQ(into(), "4 looked 3 2 1 ");
  scan.skipped = {4};
  EXPECT_EQ(into(), "4 looked 3 looked 2 1 ");
  scan.known = {3};
  EXPECT_EQ(into(), "4 looked 3 2 1 ");
  scan.labelled = {1};
  EXPECT_EQ(into(), "4 looked 3 2 1 looked ");
  scan = {{VersionPolicy::Kind::kSpecific, 1, {2, 7}}, {}, {}};
  EXPECT_EQ(into(), "4 3 2 looked 1 ");
}

TEST_F(VersionScan, LoadedFilesAreIdentified) {
  const std::string file = Write("m/1/frozen.pb", "one");
  Write("m/2/frozen.pb", "two");
  VersionsToScan scan;
  scan.known = {1, 2};
  scan.loaded_files = {{1, file}};
  const auto identity = [&](size_t index) {
    return ScanVersions(root_ + "/m", scan)->at(index).identity;
  };
  const auto before = identity(1);
  ASSERT_TRUE(before);
  EXPECT_FALSE(identity(0));
  Write("m/1/frozen.pb", "other");
  EXPECT_NE(identity(1), before);
  fs::remove(file);
  EXPECT_FALSE(identity(1));
}

TEST_F(VersionScan, WhatIsKnownToBeEmptyIsLookedIntoOnceSomethingIsPutThere) {
  fs::create_directories(root_ + "/m/1");
  fs::last_write_time(root_ + "/m/1", fs::file_time_type::clock::now() - std::chrono::hours(1));
  VersionsToScan scan;
  scan.empty = std::make_shared<EmptyVersions>();
  scan.empty->versions[1] = {*IdentifyFile(root_ + "/m/1"), {}};
  scan.empty->versions[1].found.stamp = 77;  // as no look would have it
  EXPECT_EQ(ScanVersions(root_ + "/m", scan)->at(0).stamp, 77u);
  EXPECT_EQ(ScanVersions(root_ + "/m", scan)->at(0).stamp, 77u) << "it is kept";
  Write("m/1/frozen.pb", "");
  EXPECT_TRUE(ScanVersions(root_ + "/m", scan)->at(0).error.ok());
  EXPECT_TRUE(scan.empty->versions.empty());
}

// One look finds the version that serves in the place of all that hold no model.
TEST_F(VersionScan, AThousandVersionsWithoutAModelCostOneLookEach) {
  constexpr int kEmpty = 1000;
  Write("m/1/frozen.pb", "");
  for (int version = 2; version <= kEmpty + 1; ++version)
    fs::create_directories(absl::StrCat(root_, "/m/", version));
  Write("m/300/README", "still to come");
  MakeOld("m/300");
  MakeOld("m/500");
  VersionsToScan scan;
  scan.policy = {VersionPolicy::Kind::kLatest, 1, {}};
  scan.empty = std::make_shared<EmptyVersions>();
  scan.empty->times_tell = Duration::zero();
  for (int round = 0; round < 2; ++round) {
    const auto found = ScanVersions(root_ + "/m", scan);
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(found->size(), kMostWithoutModel + 1u);
    EXPECT_EQ(scan.empty->scans, kEmpty + 1) << "by the scan of round " << round;
    EXPECT_EQ(found->front().version, kEmpty + 1);
    EXPECT_THAT(found->front().error.ToString(), HasSubstr("holds nothing"));
    EXPECT_EQ(found->back().version, 1);
    EXPECT_TRUE(found->back().error.ok());
    if (round == 0) scan.known = {1};
    if (round == 0) continue;
    EXPECT_FALSE(found->back().scanned);
  }
  // What is put into one of them is found.
  Write("m/500/frozen.pb", "");
  Write("m/300/frozen.pb", "");
  const auto found = ScanVersions(root_ + "/m", scan);
  ASSERT_TRUE(found.ok()) << found.status();
  const auto filled = std::find_if(found->begin(), found->end(),
                                   [](const FoundVersion& one) { return one.version == 500; });
  ASSERT_NE(filled, found->end());
  EXPECT_TRUE(filled->scanned);
  EXPECT_TRUE(filled->error.ok()) << filled->error;
  EXPECT_EQ(scan.empty->scans, kEmpty + 1 + 1) << "the next older one is not needed";
}

TEST_F(VersionScan, WhatHoldsNoModelIsLookedIntoAgainOnceItMayHaveOne) {
  Write("m/1/README", "");
  Write("m/2/README", "");
  fs::create_symlink(root_ + "/elsewhere", root_ + "/m/2/model.pb");
  MakeOld("m/1");
  MakeOld("m/2");
  VersionsToScan scan;
  scan.empty = std::make_shared<EmptyVersions>();
  scan.empty->times_tell = Duration::zero();
  ASSERT_TRUE(ScanVersions(root_ + "/m", scan).ok());
  EXPECT_EQ(scan.empty->scans, 2);
  Write("elsewhere", "");
  const auto linked = ScanVersions(root_ + "/m", scan);
  ASSERT_TRUE(linked.ok()) << linked.status();
  EXPECT_TRUE(linked->at(0).error.ok()) << linked->at(0).error;
  EXPECT_FALSE(linked->at(1).error.ok());
  EXPECT_EQ(scan.empty->scans, 3);
  Write("m/1/model.pb", "");
  EXPECT_TRUE(ScanVersions(root_ + "/m", scan)->at(1).error.ok());
}

}  // namespace
}  // namespace floe::server
