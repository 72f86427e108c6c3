#include "base/file_beneath.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

namespace floe {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class FileBeneathTest : public testing::Test {
 protected:
  FileBeneathTest()
      : root_(fs::path(testing::TempDir()) / ("beneath-" + std::to_string(getpid()))),
        inside_(root_ / "inside") {
    fs::create_directories(inside_ / "deeper");
    std::ofstream(inside_ / "deeper" / "file") << "inside";
    std::ofstream(root_ / "secret") << "outside";
    fs::create_symlink("../secret", inside_ / "out");
    fs::create_symlink(root_ / "inside/deeper/file", inside_ / "absolute");
    fs::create_symlink("..", inside_ / "up");
    fs::create_symlink("deeper/file", inside_ / "in");
  }
  ~FileBeneathTest() override { fs::remove_all(root_); }

  absl::StatusOr<std::string> Read(const std::string& path, int64_t max_bytes = 100) const {
    return ReadFileBeneath(inside_.string(), path, max_bytes);
  }
  std::string Error(const std::string& path) const {
    return std::string(Read(path).status().message());
  }

  const fs::path root_, inside_;
};

TEST_F(FileBeneathTest, ReadsWhatLiesBeneath) {
  EXPECT_EQ(*Read("deeper/file"), "inside");
  EXPECT_EQ(*Read("./deeper//file"), "inside");
  EXPECT_EQ(*Read("deeper/../deeper/file"), "inside");
  EXPECT_EQ(*Read("in"), "inside");
}

TEST_F(FileBeneathTest, NothingLeadsOut) {
  for (const char* path : {"../secret", "deeper/../../secret", "out", "up/secret", "absolute"})
    EXPECT_THAT(Error(path), HasSubstr("leads out of its directory")) << path;
  EXPECT_THAT(Error((root_ / "secret").string()), HasSubstr("not a relative path"));
  EXPECT_THAT(Error(""), HasSubstr("not a relative path"));
  EXPECT_THAT(Error(std::string("in\0out", 6)), HasSubstr("not a relative path"));
}

TEST_F(FileBeneathTest, OnlyRegularFilesUpToTheLimit) {
  EXPECT_THAT(Error("deeper"), HasSubstr("not a regular file"));
  ASSERT_EQ(mkfifo((inside_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(Error("pipe"), HasSubstr("not a regular file"));
  EXPECT_TRUE(absl::IsNotFound(Read("missing").status()));
  EXPECT_EQ(*Read("in", 6), "inside");
  EXPECT_THAT(std::string(Read("in", 5).status().message()),
              HasSubstr("has 6 bytes, more than the limit of 5"));
}

TEST_F(FileBeneathTest, StepByStepFollowsNoLinksAtAll) {
  const int directory = open(inside_.c_str(), O_PATH | O_DIRECTORY);
  ASSERT_GE(directory, 0);
  for (const char* path : {"deeper/file", "./deeper//file"}) {
    const int fd = internal::OpenBeneathStepwise(directory, path);
    EXPECT_GE(fd, 0) << path;
    close(fd);
  }
  for (const char* path : {"../secret", "deeper/../deeper/file", "out", "in", "absolute", ".."})
    EXPECT_EQ(internal::OpenBeneathStepwise(directory, path), -EXDEV) << path;
  EXPECT_LT(internal::OpenBeneathStepwise(directory, "up/secret"), 0);
  EXPECT_EQ(internal::OpenBeneathStepwise(directory, "missing"), -ENOENT);
  close(directory);
}

TEST(DirectoryOf, IsWhatTheFileLiesIn) {
  EXPECT_EQ(DirectoryOf("graph.pb"), ".");
  EXPECT_EQ(DirectoryOf("/graph.pb"), "/");
  EXPECT_EQ(DirectoryOf("a/b/graph.pb"), "a/b");
}

}  // namespace
}  // namespace floe
