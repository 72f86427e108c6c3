#include "base/file_identity.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace floe {
namespace {

namespace fs = std::filesystem;

TEST(FileIdentity, TellsWritingReplacingAndRemovingApartFromReading) {
  const std::string path = testing::TempDir() + "floe_identity";
  std::ofstream(path) << "one";
  const auto first = IdentifyFile(path);
  ASSERT_TRUE(first.ok()) << first.status();
  std::string text;
  std::ifstream(path) >> text;
  EXPECT_EQ(*IdentifyFile(path), *first);

  std::ofstream(path, std::ios::app) << "!";
  const auto longer = IdentifyFile(path);
  EXPECT_NE(*longer, *first);
  EXPECT_EQ(longer->inode, first->inode);

  // The same bytes at the same time under the same name, and another file.
  std::ofstream(path + ".new") << "one!";
  const timespec times[2] = {
      {0, 0}, {longer->modified_ns / 1'000'000'000, longer->modified_ns % 1'000'000'000}};
  ASSERT_EQ(utimensat(AT_FDCWD, (path + ".new").c_str(), times, 0), 0);
  fs::rename(path + ".new", path);
  EXPECT_NE(*IdentifyFile(path), *longer);

  fs::remove(path);
  EXPECT_EQ(IdentifyFile(path).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace floe
