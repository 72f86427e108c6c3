#include "base/child_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/owned_fd.h"

namespace floe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr ChildLimits kRoomy{
    .cpu_seconds = 60, .data_bytes = int64_t{1} << 30, .address_bytes = int64_t{1} << 32};

// A shell that waits for a line, so that it has its limits before it begins, and then does this.
class Shell {
 public:
  explicit Shell(const std::string& script) {
    int in[2], out[2];
    EXPECT_EQ(::pipe2(in, O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(out, O_CLOEXEC), 0);
    const OwnedFd input(in[0]), output(out[1]);
    begin_ = OwnedFd(in[1]);
    words_ = OwnedFd(out[0]);
    const auto pid = SpawnChild({"/bin/sh", "-c", absl::StrCat("read line; ", script)},
                                {input.get(), output.get(), output.get()}, ProcessGroup::kOwn);
    EXPECT_TRUE(pid.ok()) << pid.status();
    child_ = std::make_unique<ChildProcess>(pid.value_or(-1));
  }

  ChildProcess& child() { return *child_; }

  // What it says until its end; how it ended is in `how`.
  std::string Run(int* how) {
    EXPECT_EQ(::write(begin_.get(), "\n", 1), 1);
    std::string said;
    char text[256];
    for (ssize_t got; (got = ::read(words_.get(), text, sizeof(text))) > 0;) said.append(text, got);
    while (!child_->Ended(how)) std::this_thread::yield();
    return said;
  }

 private:
  OwnedFd begin_, words_;
  std::unique_ptr<ChildProcess> child_;
};

TEST(ChildProcess, SecondsOfCpuEndAnEndlessOne) {
  Shell shell("while :; do :; done");
  ASSERT_TRUE(shell.child().Limit({1, kRoomy.data_bytes, kRoomy.address_bytes}, kRoomy).ok());
  int how = 0;
  shell.Run(&how);
  ASSERT_TRUE(WIFSIGNALED(how));
  EXPECT_EQ(WTERMSIG(how), SIGXCPU);
}

#ifndef FLOE_SANITIZED  // memory is not limited there
TEST(ChildProcess, MemoryThatItMayNotTakeCannotBeHad) {
  const std::string take = "exec head -c 300000000 /dev/zero | tail -c 250000000 >/dev/null";
  int how = 0;
  Shell free(take);
  ASSERT_TRUE(free.child().Limit(kRoomy, kRoomy).ok());
  EXPECT_EQ(free.Run(&how), "");
  EXPECT_EQ(how, 0);
  Shell limited(take);
  ASSERT_TRUE(limited.child().Limit({60, int64_t{64} << 20, int64_t{1} << 32}, kRoomy).ok());
  EXPECT_THAT(limited.Run(&how), HasSubstr("memory"));
  EXPECT_NE(how, 0);
}
#endif

TEST(ChildProcess, ItInheritsNoFilesAndWritesNone) {
  const OwnedFd mine(::open("/dev/zero", O_RDONLY));  // without O_CLOEXEC
  Shell shell("ls -l /proc/$$/fd; ulimit -c; ulimit -f");
  ASSERT_TRUE(shell.child().Limit(kRoomy, kRoomy).ok());
  int how = 0;
  const std::string said = shell.Run(&how);
  EXPECT_THAT(said, HasSubstr("pipe:"));
  EXPECT_THAT(said, Not(HasSubstr("/dev/zero")));
  EXPECT_THAT(said, HasSubstr("\n0\n0\n"));
}

TEST(ChildProcess, LimitsRiseAndEndWhereMostIs) {
  Shell shell("ulimit -t; ulimit -H -t");
  ASSERT_TRUE(shell.child().Limit({1, 1 << 30, int64_t{1} << 32}, kRoomy).ok());
  ASSERT_TRUE(shell.child().Limit({7, 1 << 30, int64_t{1} << 32}, kRoomy).ok());
  int how = 0;
  EXPECT_EQ(shell.Run(&how), "7\n62\n");
}

TEST(ChildProcess, ItEndsWithItsOwnerAndWithWhatItStarted) {
  pid_t group = -1;
  {
    Shell shell("sleep 1000 & wait");
    group = shell.child().pid();
    EXPECT_EQ(::kill(-group, 0), 0);
  }
  EXPECT_EQ(::kill(-group, 0), -1);
}

TEST(ChildProcess, SignalsHaveNames) {
  EXPECT_EQ(SignalName(SIGSEGV), "SIGSEGV");
  EXPECT_EQ(SignalName(99), "signal 99");
}

TEST(ChildProcess, AProgramThatIsNotThere) {
  EXPECT_THAT(std::string(SpawnChild({"/not/there"}, {}, ProcessGroup::kOurs).status().message()),
              HasSubstr("/not/there"));
}

}  // namespace
}  // namespace floe
