#include "model/import/keras/hdf5_parser.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/child_process.h"
#include "base/clock.h"
#include "base/deflate_limits.h"
#include "base/owned_fd.h"
#include "base/status.h"

namespace floe::keras {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMiB = int64_t{1} << 20;

// Of data that a file has, or that is made of it. A small part of what a slow machine does.
constexpr int64_t kBytesPerCpuSecond = 32 * kMiB;
constexpr int64_t kLeastCpuSeconds = 3;
constexpr int64_t kLeastOwnBytes = 32 * kMiB, kMostOwnBytes = 96 * kMiB;
constexpr int64_t kLibraryAddresses = 256 * kMiB;  // code and tables, mapped from files

ChildLimits LimitsFor(int64_t file_bytes, int64_t filled, int64_t scratch) {
  const int64_t own =
      std::min(kMostOwnBytes, kLeastOwnBytes + std::min(file_bytes, kMostOwnBytes) / 2);
  return {.cpu_seconds =
              kLeastCpuSeconds + file_bytes / kBytesPerCpuSecond + filled / kBytesPerCpuSecond,
          .data_bytes = own + scratch,
          .address_bytes = own + scratch + filled + kLibraryAddresses};
}

// What the whole file may come to, inflated.
ChildLimits MostFor(int64_t file_bytes) {
  int64_t inflated = 0;
  if (__builtin_mul_overflow(file_bytes, 2 * kMaxDeflateRatio, &inflated)) inflated = INT64_MAX / 8;
  inflated = std::min(inflated + kDeflateSlackBytes, INT64_MAX / 8);
  return LimitsFor(file_bytes, inflated, inflated);
}

absl::StatusOr<std::string> FindProgram() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error)
    return absl::FailedPreconditionError(
        absl::StrCat("HDF5 files need /proc: /proc/self/exe cannot be read, ", error.message()));
  const fs::path here = self.parent_path();
  const fs::path installed = here.parent_path() / "libexec" / "floe" / "floe-hdf5";
  for (const fs::path& path : {here / "floe-hdf5", installed})
    if (fs::exists(path, error)) return path.string();
  return absl::FailedPreconditionError(absl::StrCat(
      "HDF5 files need the program floe-hdf5, which is installed with floed: it is neither beside ",
      self.filename().string(), " nor at ", installed.string()));
}

class Process : public Hdf5Parser {
 public:
  static absl::StatusOr<std::unique_ptr<Hdf5Parser>> Start(int64_t file_bytes) {
    FLOE_ASSIGN_OR_RETURN(const std::string program, FindProgram());
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      return CannotStart(absl::ErrnoToStatus(errno, "socketpair"));
    OwnedFd ours(ends[0]);
    const OwnedFd theirs(ends[1]);
    const OwnedFd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
    const int null = nothing.get();
    const auto pid = SpawnChild({program}, {null, null, null, theirs.get()}, ProcessGroup::kOurs);
    if (!pid.ok()) return CannotStart(pid.status());
    auto process = std::unique_ptr<Process>(new Process(*pid, std::move(ours), file_bytes));
    FLOE_RETURN_IF_ERROR(process->Allow(0, 0));
    return process;
  }

  int socket() const override { return socket_.get(); }
  int64_t own_bytes() const override { return LimitsFor(file_bytes_, 0, 0).data_bytes; }

  absl::Status Allow(int64_t filled, int64_t scratch) override {
    limits_ = LimitsFor(file_bytes_, filled, scratch);
    return Annotate(child_.Limit(limits_, MostFor(file_bytes_)), "limits of the HDF5 parser");
  }

  absl::Status WhyItEnded() override {
    if (child_.pid() < 0) return Ended("before");
    int how = SIGKILL;
    const TimePoint end = Clock::Steady().Now() + std::chrono::seconds(1);
    bool over = child_.Ended(&how);
    for (; !over && Clock::Steady().Now() < end; over = child_.Ended(&how))
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    if (!over) {
      child_.Kill();
      return Ended("was silent, and was ended");
    }
    if (!WIFSIGNALED(how)) return Ended(absl::StrCat("ended with status ", WEXITSTATUS(how)));
    if (WTERMSIG(how) == SIGXCPU)
      return Ended(absl::StrCat("was ended by its limit of ", limits_.cpu_seconds, " CPU seconds"));
    const std::string text = absl::StrCat("was ended by ", SignalName(WTERMSIG(how)));
    if (WTERMSIG(how) != SIGKILL) return Ended(text);
    return absl::UnavailableError(absl::StrCat(
        "the HDF5 parser ", text, "; where memory is short the system ends processes so"));
  }

 private:
  Process(pid_t pid, OwnedFd socket, int64_t file_bytes)
      : child_(pid), socket_(std::move(socket)), file_bytes_(file_bytes) {}

  static absl::Status CannotStart(const absl::Status& error) {
    return absl::UnavailableError(absl::StrCat("the HDF5 parser cannot be started (",
                                               std::string(error.message()),
                                               "); free what is short"));
  }
  static absl::Status Ended(const std::string& how) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the HDF5 parser ", how, ": the file is damaged, or made to harm; save the model again"));
  }

  ChildProcess child_;
  const OwnedFd socket_;
  const int64_t file_bytes_;
  ChildLimits limits_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Hdf5Parser>> StartHdf5Process(int64_t file_bytes) {
  return Process::Start(file_bytes);
}

StartHdf5Parser& Hdf5ParserStarter() {
  static StartHdf5Parser starter = StartHdf5Process;
  return starter;
}

}  // namespace floe::keras
