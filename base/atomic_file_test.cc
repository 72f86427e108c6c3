#include "base/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace floe {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / "floe_atomic_file_test";
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  int Files() const { return static_cast<int>(std::distance(fs::directory_iterator(folder_), {})); }
  std::string Read(const fs::path& path) const {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  fs::path folder_;
};

TEST_F(AtomicFileTest, TheOldFileStaysUntilCommit) {
  const fs::path path = folder_ / "model";
  std::ofstream(path) << "old";
  auto file = AtomicFile::Create(path.string());
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->Write("new ", 4).ok());
  ASSERT_TRUE(file->Write("file", 4).ok());
  EXPECT_EQ(Read(path), "old");
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(Read(path), "new file");
  EXPECT_EQ(Files(), 1);
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0600, 0600u);
}

TEST_F(AtomicFileTest, NothingStaysWithoutCommit) {
  {
    auto file = AtomicFile::Create((folder_ / "model").string());
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE(file->Write("part", 4).ok());
    EXPECT_EQ(Files(), 1);
  }
  EXPECT_EQ(Files(), 0);
}

TEST_F(AtomicFileTest, ErrorsNameThePath) {
  const std::string path = (folder_ / "missing" / "model").string();
  const auto file = AtomicFile::Create(path);
  ASSERT_TRUE(absl::IsNotFound(file.status())) << file.status();
  EXPECT_NE(std::string(file.status().message()).find(path), std::string::npos);
}

}  // namespace
}  // namespace floe
