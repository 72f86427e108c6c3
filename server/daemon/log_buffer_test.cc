#include "server/daemon/log_buffer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace floe::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TimePoint Soon() { return Clock::Steady().Now() + std::chrono::seconds(60); }

// Buffers are never freed; the memory checker finds them here.
LogBuffer* MakeBuffer(int fd, size_t bytes) {
  static auto* const all = new std::deque<LogBuffer*>;
  all->push_back(new LogBuffer(fd, bytes));
  EXPECT_TRUE(all->back()->Start().ok());
  return all->back();
}

std::string ReadUntil(int fd, const std::string& end) {
  std::string text;
  char part[4096];
  while (text.size() < end.size() || text.substr(text.size() - end.size()) != end) {
    const ssize_t size = read(fd, part, sizeof part);
    if (size <= 0) break;
    text.append(part, static_cast<size_t>(size));
  }
  return text;
}

TEST(LogBuffer, AFileThatBlocksDoesNotBlockTheCaller) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const int room = fcntl(ends[1], F_SETPIPE_SZ, 4096);
  ASSERT_GE(room, 4096);
  LogBuffer* const log = MakeBuffer(ends[1], 10'000);
  const std::string line(99, 'x');
  const int lines = 10 * (room + 10'000) / 100;
  for (int i = 0; i < lines; ++i) log->Add(line + "\n");
  EXPECT_FALSE(log->Flush(Clock::Steady().Now()));
  const int64_t dropped = log->dropped();
  EXPECT_GT(dropped, lines / 2);
  // Once somebody reads, the waiting lines come, and the number of dropped ones.
  const std::string report = absl::StrCat(dropped, " lines of the log are missing here: ");
  const std::string text = ReadUntil(ends[0], "it was not read in time\n");
  EXPECT_THAT(text, StartsWith(line + "\n" + line));
  EXPECT_THAT(text, HasSubstr(report));
  EXPECT_TRUE(log->Flush(Soon()));
  log->Add("later\n");
  EXPECT_EQ(ReadUntil(ends[0], "later\n"), "later\n") << "reported once";
}

// As logrotate has it: move the file away, then tell the one who writes.
TEST(LogBuffer, AFileIsOpenedAnew) {
  static auto* const kept = new std::deque<LogBuffer*>;
  const std::string path = testing::TempDir() + "floe_log_buffer_file";
  const std::string moved = path + ".1";
  unlink(path.c_str());
  auto made = LogBuffer::ForFile(path, nullptr);
  ASSERT_TRUE(made.ok()) << made.status();
  LogBuffer* const log = kept->emplace_back(*made);
  ASSERT_TRUE(log->Start().ok());
  const auto read = [](const std::string& file) {
    const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
    const std::string text = ReadUntil(fd, "no such end");
    close(fd);
    return text;
  };
  log->Add("one\n");
  ASSERT_TRUE(log->Flush(Soon()));
  ASSERT_EQ(rename(path.c_str(), moved.c_str()), 0);
  log->Add("two\n");
  ASSERT_TRUE(log->Flush(Soon()));
  ASSERT_TRUE(log->Reopen().ok());
  ASSERT_TRUE(log->Reopen().ok()) << "again before a line came";
  log->Add("three\n");
  ASSERT_TRUE(log->Flush(Soon()));
  EXPECT_EQ(read(moved), "one\ntwo\n");
  EXPECT_EQ(read(path), "three\n");
  const auto none = LogBuffer::ForFile(path + "/none", nullptr);
  EXPECT_THAT(none.status().ToString(), HasSubstr("floe_log_buffer_file/none' to append to it"));
}

TEST(LogBuffer, AFileOfBoundedSizeBeginsAnew) {
  static auto* const kept = new std::deque<LogBuffer*>;
  const std::string path = testing::TempDir() + "floe_log_buffer_bounded";
  unlink(path.c_str());
  unlink((path + ".1").c_str());
  LogBuffer* const log =
      kept->emplace_back(new LogBuffer(LogBuffer::File{.path = path, .most_file_bytes = 10}));
  ASSERT_TRUE(log->Start().ok());
  const auto size = [](const std::string& file) {
    struct stat info = {};
    return stat(file.c_str(), &info) == 0 ? info.st_size : -1;
  };
  for (const char* line : {"12345", "67890", "abc", "a line that is longer than the file", "z"}) {
    log->Add(line);
    ASSERT_TRUE(log->Flush(Soon()));
    if (std::string(line) == "67890") {
      EXPECT_EQ(size(path), 10);
    } else if (std::string(line) == "abc") {
      EXPECT_EQ(size(path + ".1"), 10);
    }
  }
  EXPECT_EQ(size(path), 1);
  EXPECT_EQ(size(path + ".1"), 35);
  EXPECT_EQ(log->dropped(), 0);
}

TEST(LogBuffer, AFullDiskIsCounted) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  if (full < 0) GTEST_SKIP() << "no /dev/full";
  LogBuffer* const log = MakeBuffer(full, 1000);
  log->Add("lost\n");
  EXPECT_TRUE(log->Flush(Soon()));
  EXPECT_EQ(log->dropped(), 1);
}

}  // namespace
}  // namespace floe::server
