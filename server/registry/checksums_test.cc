#include "server/registry/checksums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace floe::server {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// FIPS 180-2, appendix B.1 and the empty message.
constexpr char kSumOfAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr char kSumOfNothing[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

class Checksums : public testing::Test {
 protected:
  Checksums() {
    root_ = testing::TempDir() + "floe_checksums_" +
            testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(root_);
    fs::create_directories(root_ + "/assets");
    Write("abc", "abc");
    Write("assets/nothing", "");
  }
  ~Checksums() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::ofstream(root_ + "/" + path) << text;
  }
  absl::StatusOr<int> Check(const std::string& sums, const std::string& only = "") {
    Write(kChecksumsFile, sums);
    return CheckChecksums(root_, only.empty() ? "model" : only, !only.empty(), nullptr);
  }
  std::string root_;
};

TEST_F(Checksums, GoodOnesAreCounted) {
  EXPECT_EQ(CheckChecksums(root_, "model", false, nullptr).value(), 0) << "there is no such file";
  const std::string abc = kSumOfAbc, nothing = kSumOfNothing;
  EXPECT_EQ(Check(abc + "  abc\n" + nothing + " *assets/nothing\n").value(), 2);
  EXPECT_EQ(Check("# a note\r\n\n" + abc + "  ./abc\r\n").value(), 1);
  EXPECT_EQ(Check("BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD  abc").value(),
            1);
  EXPECT_EQ(Check(nothing + "  SHA256SUMS\n").value(), 0) << "no file can hold its own sum";
  EXPECT_EQ(Check(nothing + "  abc\n" + nothing + "  assets/nothing\n", "assets/nothing").value(),
            1);
}

TEST_F(Checksums, WhatDiffersIsNamed) {
  const std::string abc = kSumOfAbc, nothing = kSumOfNothing;
  const auto error = [this](const std::string& sums) {
    const absl::Status status = Check(sums).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << sums;
    return std::string(status.message());
  };
  EXPECT_THAT(error(nothing + "  abc\n"),
              AllOf(HasSubstr("'abc' has the SHA-256 " + abc), HasSubstr("not " + nothing)));
  EXPECT_THAT(error(abc + "  missing\n"), HasSubstr("'missing', which is not there"));
  EXPECT_THAT(error(abc + "  ../outside\n"), HasSubstr("leads out"));
  EXPECT_THAT(error(abc + "  /etc/passwd\n"), HasSubstr("not a relative path"));
  EXPECT_THAT(error(abc + "  assets\n"), HasSubstr("not a regular file"));
  for (const std::string& line :
       {std::string("abc"), abc, abc + " abc", abc.substr(1) + "   abc", "x" + abc + "  abc"})
    EXPECT_THAT(error("#\n" + line + "\n"), HasSubstr("SHA256SUMS:2: expected 64")) << line;
}

TEST_F(Checksums, TheModelsFileAloneMayBeALinkOutOfItsDirectory) {
  const std::string abc = kSumOfAbc, nothing = kSumOfNothing;
  const std::string store = root_ + "_store";
  std::ofstream(store) << "abc";
  fs::create_symlink(store, root_ + "/model");
  fs::create_symlink(store, root_ + "/other");
  EXPECT_EQ(Check(abc + "  model\n").value(), 1);
  EXPECT_EQ(Check(abc + "  ./model\n", "model").value(), 1);
  EXPECT_THAT(Check(nothing + "  model\n").status().ToString(), HasSubstr("'model' has the SHA"));
  EXPECT_THAT(Check(abc + "  other\n").status().ToString(), HasSubstr("leads out"));
  EXPECT_THAT(Check(abc + "  ../" + fs::path(store).filename().string()).status().ToString(),
              HasSubstr("leads out"));
  fs::remove(store);
  EXPECT_FALSE(Check(abc + "  model\n").ok());
}

TEST_F(Checksums, FilesOfManyBlocksAndAnEndInTheMiddle) {
  // The sum is coreutils' sha256sum's.
  Write("a", std::string(3'000'000, 'a'));
  const std::string sum = "2a152c894398719c0570f83fac34ac03a0f6e8e474b995c2403aa5434f7b9dd4";
  EXPECT_EQ(Check(sum + "  a\n").value(), 1);
  CancelToken cancel;
  cancel.Cancel();
  EXPECT_EQ(CheckChecksums(root_, "model", false, &cancel).status().code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace floe::server
