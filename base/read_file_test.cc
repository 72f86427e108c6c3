#include "base/read_file.h"

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

class ReadFileTest : public testing::Test {
 protected:
  ReadFileTest() : folder_(fs::path(testing::TempDir()) / ("read-" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~ReadFileTest() override { fs::remove_all(folder_); }

  std::string PathOf(const std::string& name) const { return (folder_ / name).string(); }
  std::string Write(const std::string& name, const std::string& content) const {
    std::ofstream(PathOf(name), std::ios::binary) << content;
    return PathOf(name);
  }

  const fs::path folder_;
};

TEST_F(ReadFileTest, GivesAllBytesAndTheIdentity) {
  const std::string path = Write("file", std::string("a\0b", 3));
  const auto file = ReadFile(path, 3);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->view(), std::string("a\0b", 3));
  EXPECT_EQ(file->identity, *IdentifyFile(path));
}

TEST_F(ReadFileTest, AnEmptyFileHasNoBytes) {
  const auto file = ReadFile(Write("empty", ""), 0);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->view(), "");
}

TEST_F(ReadFileTest, ReadsAtAnyPlace) {
  const std::string path = Write("file", "0123456789");
  auto file = InputFile::Open(path, 100);
  ASSERT_TRUE(file.ok()) << file.status();
  std::string bytes(3, ' ');
  ASSERT_TRUE(file->ReadAt(6, bytes.data(), 3).ok());
  EXPECT_EQ(bytes, "678");
  EXPECT_EQ(*file->Read(bytes.data(), 3), 3u);
  EXPECT_EQ(bytes, "012");
  fs::resize_file(path, 7);
  const absl::Status cut = file->ReadAt(6, bytes.data(), 3);
  EXPECT_EQ(cut.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(std::string(cut.message()), path + " was cut short while it was read");
}

TEST_F(ReadFileTest, ErrorsNameThePath) {
  const auto absent = ReadFile(PathOf("absent"), 10);
  EXPECT_EQ(absent.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(absent.status().message()), HasSubstr(PathOf("absent")));
  const auto large = ReadFile(Write("large", "12345"), 4);
  EXPECT_EQ(large.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(large.status().message()), HasSubstr("has 5 bytes, more than the limit"));
}

TEST_F(ReadFileTest, OnlyRegularFiles) {
  EXPECT_EQ(ReadFile(folder_.string(), 10).status().code(), absl::StatusCode::kInvalidArgument);
  // Nobody writes to this pipe: who waited for it would wait for ever.
  ASSERT_EQ(::mkfifo(PathOf("pipe").c_str(), 0600), 0);
  const auto pipe = ReadFile(PathOf("pipe"), 10);
  EXPECT_EQ(pipe.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(pipe.status().message()), HasSubstr("is not a regular file"));
}

}  // namespace
}  // namespace floe
