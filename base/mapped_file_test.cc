#include "base/mapped_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
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

TEST_F(MappedFileTest, AFileThatIsCutShortReadsAsZerosAndSaysSo) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const std::string path = Write("file", std::string(3 * page, 'x'));
  const std::string whole = Write("whole", std::string(3 * page, 'y'));
  const auto cut = MappedFile::Open(path, 1 << 20), other = MappedFile::Open(whole, 1 << 20);
  ASSERT_TRUE(cut.ok() && other.ok()) << cut.status() << other.status();
  EXPECT_EQ((*cut)->data()[2 * page], 'x') << "it has been read";
  fs::resize_file(path, page);
  EXPECT_EQ((*cut)->data()[page - 1], 'x');
  EXPECT_FALSE((*cut)->damaged()) << "nobody has read what is gone";
  EXPECT_EQ((*cut)->data()[2 * page], 0);
  EXPECT_TRUE((*cut)->damaged());
  EXPECT_EQ((*cut)->data()[page], 0) << "each page by itself";
  EXPECT_EQ((*cut)->data()[0], 'x');
  EXPECT_EQ((*other)->data()[2 * page], 'y');
  EXPECT_FALSE((*other)->damaged());
}

TEST_F(MappedFileTest, ManyFilesOneAfterTheOtherAreGuarded) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const std::string whole = Write("whole", std::string(page, 'x'));
  for (int i = 0; i < 3000; ++i) {
    const auto file = MappedFile::Open(whole, 1 << 20);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_FALSE((*file)->damaged());
    if (i % 1000 != 999) continue;
    const auto cut = MappedFile::Open(Write("cut", std::string(page, 'x')), 1 << 20);
    ASSERT_TRUE(cut.ok()) << cut.status();
    fs::resize_file(PathOf("cut"), 0);
    EXPECT_EQ((*cut)->data()[0], 0);
    EXPECT_TRUE((*cut)->damaged());
  }
}

TEST(MappedFileDeathTest, OtherBusErrorsEndTheProcessAsEver) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto fault = [] {
    signal(SIGBUS, SIG_DFL);  // not a sanitizer's
    const std::string path = testing::TempDir() + "/floe-bus-error";
    std::ofstream(path) << "x";
    const auto guarded = MappedFile::Open(path, 1 << 20);
    const int fd = open(path.c_str(), O_RDONLY);
    const auto* data =
        static_cast<const volatile char*>(mmap(nullptr, 1, PROT_READ, MAP_SHARED, fd, 0));
    fs::resize_file(path, 0);
    (void)data[0];
  };
  EXPECT_EXIT(fault(), testing::KilledBySignal(SIGBUS), "");
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
