#include "server/daemon/log_buffer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
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
