#include "base/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace floe {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class MappedFileTest : public testing::Test {
 protected:
  MappedFileTest()
      : folder_(fs::path(testing::TempDir()) / ("mapped-" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~MappedFileTest() override { fs::remove_all(folder_); }

  std::string PathOf(const std::string& name) const { return (folder_ / name).string(); }
  std::string Write(const std::string& name, const std::string& content) const {
    std::ofstream(PathOf(name), std::ios::binary) << content;
    return PathOf(name);
  }

  const fs::path folder_;
};

TEST_F(MappedFileTest, ShowsTheBytesAsLongAsTheObjectLives) {
  const std::string path = Write("file", std::string("a\0b", 3));
  const auto file = MappedFile::Open(path, 3);
  ASSERT_TRUE(file.ok()) << file.status();
  // Another file in its place changes nothing for who has mapped the old one.
  fs::rename(Write("other", "xyz"), path);
  EXPECT_EQ(std::string((*file)->data(), (*file)->size()), std::string("a\0b", 3));
  fs::remove(path);
  EXPECT_EQ((*file)->data()[2], 'b');
}

TEST_F(MappedFileTest, AnEmptyFileHasNoMemory) {
  const auto file = MappedFile::Open(Write("empty", ""), 0);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->data(), nullptr);
  EXPECT_EQ((*file)->size(), 0u);
}

TEST_F(MappedFileTest, ErrorsNameThePath) {
  const auto absent = MappedFile::Open(PathOf("absent"), 10);
  EXPECT_EQ(absent.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(absent.status().message()), HasSubstr(PathOf("absent")));
  const auto large = MappedFile::Open(Write("large", "12345"), 4);
  EXPECT_EQ(large.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(large.status().message()), HasSubstr("has 5 bytes, more than the limit"));
}

TEST_F(MappedFileTest, OnlyRegularFiles) {
  EXPECT_EQ(MappedFile::Open(folder_.string(), 10).status().code(),
            absl::StatusCode::kInvalidArgument);
  // Nobody writes to this pipe: who waited for it would wait for ever.
  ASSERT_EQ(::mkfifo(PathOf("pipe").c_str(), 0600), 0);
  const auto pipe = MappedFile::Open(PathOf("pipe"), 10);
  EXPECT_EQ(pipe.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(pipe.status().message()), HasSubstr("is not a regular file"));
}

}  // namespace
}  // namespace floe
