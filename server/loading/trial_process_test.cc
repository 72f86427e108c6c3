#include "server/loading/trial_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/loading/load_errors.h"

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// In the process.
void DoAsAsked() {
  const auto task = BeginTrial();
  if (!task.ok()) _exit(9);
  TrialBoard* const board = task->board;
  const std::string& what = task->request;
  board->note.Enter("warm-up");
  board->note.Do("running", "layer/conv", "Conv2D");
  if (what == "good") EndTrial(FileIdentity{1, 2, 3, 4, 5}, board);
  if (what == "bad") EndTrial(absl::InvalidArgumentError("node 'x' is wrong"), board);
  if (what == "final") EndTrial(Final(absl::ResourceExhaustedError("never")), board);
  if (what == "crash") raise(SIGILL);
  if (what == "throw") throw std::bad_alloc();
  if (what == "hang")
    for (;;) pause();
  if (what == "core") {
    rlimit core;
    getrlimit(RLIMIT_CORE, &core);
    EndTrial(absl::UnknownError(absl::StrCat(core.rlim_cur, " ", getpgid(0) == getpid())), board);
  }
  if (what == "nice")
    EndTrial(absl::UnknownError(absl::StrCat(getpriority(PRIO_PROCESS, 0))), board);
  if (what == "files") {
    std::vector<std::string> files;
    for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd"))
      files.push_back(absl::StrCat(file.path().filename().string(), " ",
                                   std::filesystem::read_symlink(file.path()).string()));
    EndTrial(absl::UnknownError(absl::StrJoin(files, " ")), board);
  }
  if (what == "take") {  // more than it may
    LimitTrialMemory(int64_t{64} << 20, 1, board);
    char* volatile memory = new (std::nothrow) char[size_t{4} << 30];
    EndTrial(absl::Status(memory == nullptr ? absl::StatusCode::kResourceExhausted
                                            : absl::StatusCode::kUnknown,
                          "4 GiB"),
             board);
  }
  if (what == "grow") {  // as far as nobody minds
    LimitTrialMemory(0, 1, board);
    constexpr size_t kBlock = size_t{1} << 20;
    for (std::vector<char*> kept;;) {
      kept.push_back(new char[kBlock]);
      std::memset(kept.back(), 1, kBlock);
    }
  }
  EndTrial(absl::InternalError(what), board);
}

// By exec the process is this program, which runs this one test and no other.
TEST(TrialProcessChild, DISABLED_DoesAsItIsAsked) { DoAsAsked(); }

// Before any thread exists.
char g_title[16];
TrialStarter* const g_starter = TrialStarter::Fork(absl::MakeSpan(g_title), DoAsAsked)->release();

// The process is started by exec (false) or by fork.
class TrialProcess : public testing::TestWithParam<bool> {
 protected:
  absl::StatusOr<FileIdentity> Try(const std::string& what, const TrialLimits& limits = {}) {
    spdlog::set_level(spdlog::level::off);
    if (GetParam())
      return RunTrialProcess([](const TrialFiles& files) { return g_starter->Start(files); }, what,
                             limits);
    return RunTrialProcess(ByExec({"/proc/self/exe", "--gtest_also_run_disabled_tests",
                                   "--gtest_filter=TrialProcessChild.DISABLED_DoesAsItIsAsked"}),
                           what, limits);
  }
};
INSTANTIATE_TEST_SUITE_P(ByExecAndFork, TrialProcess, testing::Bool());

TEST_P(TrialProcess, WhatEndsWellOrInAnErrorIsHandedOver) {
  const auto good = Try("good");
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_EQ(*good, (FileIdentity{1, 2, 3, 4, 5}));
  EXPECT_EQ(Try("bad").status(), absl::InvalidArgumentError("node 'x' is wrong"));
  const absl::Status final = Try("final").status();
  EXPECT_EQ(final.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(MayRetry(final));
  EXPECT_EQ(final.message(), "never, during warm-up, running node 'layer/conv' (Conv2D)");
  const std::string large(1 << 20, 'x');
  EXPECT_EQ(Try(large).status().message().size(), TrialBoard::kMostMessage);
}

TEST_P(TrialProcess, ASignalIsAnErrorThatNamesTheNode) {
  const absl::Status crashed = Try("crash").status();
  EXPECT_EQ(crashed.code(), absl::StatusCode::kInternal);
  EXPECT_FALSE(MayRetry(crashed));
#if !defined(__SANITIZE_ADDRESS__)
  EXPECT_THAT(std::string(crashed.message()),
              HasSubstr("ended by SIGILL during warm-up, running node 'layer/conv' (Conv2D)"));
#endif
  EXPECT_EQ(Try("throw").status().code(), absl::StatusCode::kInternal);
}

TEST(TrialProcessByExec, SigkillMayPass) {
  TrialLimits limits;
  const absl::Status killed =
      RunTrialProcess(ByExec({"/bin/sh", "-c", "kill -KILL $$"}), "", limits).status();
  EXPECT_EQ(killed.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(MayRetry(killed));
  EXPECT_THAT(std::string(killed.message()),
              AllOf(HasSubstr("SIGKILL during its start"), HasSubstr("memory is short")));
}

TEST_P(TrialProcess, OneThatHangsIsEnded) {
  TrialLimits limits;
  limits.longest = std::chrono::seconds(5);
  std::string doing;
  limits.report = [&doing](const std::string& text) { doing = text; };
  const absl::Status late = Try("hang", limits).status();
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(late.message()),
              AllOf(HasSubstr("longer than max_load_seconds (5 s)"),
                    HasSubstr("during warm-up, running node 'layer/conv' (Conv2D)")));
  EXPECT_EQ(doing, "warm-up, running node 'layer/conv' (Conv2D)");
}

TEST_P(TrialProcess, OneThatNobodyWantsIsEnded) {
  TrialLimits limits;
  CancelToken cancel;
  limits.cancel = &cancel;
  limits.report = [&cancel](const std::string&) { cancel.Cancel(); };
  EXPECT_EQ(Try("hang", limits).status().code(), absl::StatusCode::kCancelled);
}

TEST_P(TrialProcess, ItLeavesNoCoreAndHasAGroupOfItsOwn) {
  const std::string said(Try("core").status().message());
  EXPECT_THAT(said, testing::AnyOf("1 1", "0 1"));
}

TEST_P(TrialProcess, ItInheritsNoFiles) {
  const int mine = open("/dev/zero", O_RDONLY);  // for others to inherit
  const std::string files(Try("files").status().message());
  close(mine);
  EXPECT_THAT(files, AllOf(HasSubstr("0 /memfd:floe-trial"), HasSubstr("3 /memfd:floe-board")));
  EXPECT_THAT(files, testing::Not(HasSubstr("/dev/zero")));
}

TEST_P(TrialProcess, ItIsAsNiceAsTheThreadThatStartsIt) {
  std::string nice;
  std::thread([&] {
    setpriority(PRIO_PROCESS, 0, 7);  // of this thread
    nice = std::string(Try("nice").status().message());
  }).join();
  EXPECT_EQ(nice, "7");
}

TEST(TrialStarterTest, OneThatHasEndedIsAnError) {
  // Forked from a process of several threads, it may only end.
  auto starter = *TrialStarter::Fork({}, [] {});
  kill(starter->pid(), SIGKILL);
  EXPECT_EQ(starter->Start({0, 1, 2}).status().code(), absl::StatusCode::kUnavailable);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#ifndef FLOE_SANITIZED  // their own memory would be counted
TEST_P(TrialProcess, MemoryThatItMayNotTakeCannotBeHad) {
  EXPECT_EQ(Try("take").status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_P(TrialProcess, MemoryIsChargedAsItGrows) {
  TrialLimits limits;
  std::vector<int64_t> charged;
  limits.charge = [&charged](int64_t bytes) {
    charged.push_back(bytes);
    return bytes < (64 << 20) ? absl::OkStatus() : absl::ResourceExhaustedError("no more");
  };
  const absl::Status over = Try("grow", limits).status();
  EXPECT_EQ(over.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(over.message()),
              AllOf(HasSubstr("was ended during warm-up, running node"), HasSubstr("no more")));
  EXPECT_GE(charged.back(), 64 << 20);
}
#endif
#endif

TEST(TrialProcessByExec, WithoutAProcessTheReasonIsSaid) {
  const absl::Status none = RunTrialProcess(ByExec({"/nonexistent/floed"}), "", {}).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(none.message()),
              AllOf(HasSubstr("cannot be started"), HasSubstr("trial_load: never")));
}

}  // namespace
}  // namespace floe::server
