// Both sides of a trial load. One starts the process and watches its memory, time and end; the
// other takes the request, limits memory and reports the outcome on shared memory.
#include "server/loading/trial_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/child_process.h"
#include "base/owned_fd.h"
#include "base/status.h"
#include "server/loading/load_errors.h"

namespace floe::server {
namespace {

static_assert(std::is_trivially_destructible_v<TrialBoard>);

// Of the sanitizers' own memory nothing is known.
#ifdef FLOE_SANITIZED
constexpr bool kMemoryIsKnown = false;
#else
constexpr bool kMemoryIsKnown = true;
#endif

// Numbers of /proc/PID/statm, in bytes.
struct MemoryOf {
  int64_t own = 0;   // resident, and of no file
  int64_t data = 0;  // as RLIMIT_DATA counts
};
std::optional<MemoryOf> MemoryOfProcess(const std::string& pid) {
  const OwnedFd file(::open(absl::StrCat("/proc/", pid, "/statm").c_str(), O_RDONLY | O_CLOEXEC));
  char text[256] = {};
  if (file.get() < 0 || ::read(file.get(), text, sizeof(text) - 1) <= 0) return std::nullopt;
  int64_t size = 0, resident = 0, shared = 0, code = 0, library = 0, data = 0;
  if (std::sscanf(text, "%ld %ld %ld %ld %ld %ld", &size, &resident, &shared, &code, &library,
                  &data) != 6)
    return std::nullopt;
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  return MemoryOf{(resident - shared) * page, data * page};
}

// Memory that processes share by its file.
absl::StatusOr<OwnedFd> SharedMemory(const char* name) {
  OwnedFd file(::memfd_create(name, MFD_CLOEXEC));
  if (file.get() < 0) return absl::ErrnoToStatus(errno, "memfd_create");
  return file;
}

absl::StatusOr<OwnedFd> FileOf(const std::string& text) {
  FLOE_ASSIGN_OR_RETURN(OwnedFd file, SharedMemory("floe-trial"));
  for (size_t done = 0; done < text.size();) {
    const ssize_t wrote = ::write(file.get(), text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return absl::ErrnoToStatus(errno, "write");
    done += static_cast<size_t>(wrote);
  }
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return absl::ErrnoToStatus(errno, "lseek");
  return file;
}

absl::StatusOr<TrialBoard*> MapBoard(int fd) {
  void* const at = ::mmap(nullptr, sizeof(TrialBoard), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return absl::ErrnoToStatus(errno, "mmap");
  return static_cast<TrialBoard*>(at);
}

// The board, made and mapped here.
class OwnBoard {
 public:
  static absl::StatusOr<OwnBoard> Make() {
    OwnBoard own;
    FLOE_ASSIGN_OR_RETURN(own.file_, SharedMemory("floe-board"));
    if (::ftruncate(own.file_.get(), sizeof(TrialBoard)) != 0)
      return absl::ErrnoToStatus(errno, "ftruncate");
    FLOE_ASSIGN_OR_RETURN(own.board_, MapBoard(own.file_.get()));
    new (own.board_) TrialBoard;
    own.board_->parent = ::getpid();
    return own;
  }
  OwnBoard(OwnBoard&& other) noexcept
      : file_(std::move(other.file_)), board_(std::exchange(other.board_, nullptr)) {}
  OwnBoard& operator=(OwnBoard&&) = delete;
  ~OwnBoard() {
    if (board_ != nullptr) ::munmap(board_, sizeof(TrialBoard));
  }
  int file() const { return file_.get(); }
  const TrialBoard& operator*() const { return *board_; }
  const TrialBoard* operator->() const { return board_; }

 private:
  OwnBoard() = default;
  OwnedFd file_;
  TrialBoard* board_ = nullptr;
};

// A process that was started here, and what it says.
class Process {
 public:
  static absl::StatusOr<Process> Start(const StartTrial& start, const std::string& request,
                                       int board) {
    FLOE_ASSIGN_OR_RETURN(const OwnedFd input, FileOf(request));
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe2");
    OwnedFd words(ends[0]);
    const OwnedFd output(ends[1]);
    (void)::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    FLOE_ASSIGN_OR_RETURN(const pid_t pid, start({input.get(), output.get(), board}));
    return Process(pid, std::move(words));
  }

  ChildProcess& child() { return child_; }

  // Reads what it said, for so long, or until it says no more.
  void Listen(Duration longest) {
    const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(longest).count();
    pollfd ready{words_.get(), POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(std::max<int64_t>(1, millis))) <= 0) return;
    char text[4096];
    const ssize_t got = ::read(words_.get(), text, sizeof(text));
    if (got > 0) {
      said_.append(text, static_cast<size_t>(got));
      if (said_.size() > kMostWords) said_.erase(0, said_.size() - kMostWords);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      words_.Close();  // poll skips it
    }
  }
  const std::string& said() const { return said_; }
  bool silent() const { return words_.get() < 0; }  // it has ended, or nearly so

  void Kill() {
    child_.Kill();
    Listen(std::chrono::milliseconds(1));  // its last words
  }

 private:
  static constexpr size_t kMostWords = 2000;

  Process(pid_t pid, OwnedFd words) : child_(pid), words_(std::move(words)) {}
  ChildProcess child_;
  OwnedFd words_;
  std::string said_;  // the end of it
};

std::string During(const TrialBoard& board) {
  const std::string doing = board.note.Describe();
  return absl::StrCat(" during ", doing.empty() ? "its start" : doing);
}

absl::StatusOr<FileIdentity> Outcome(const TrialBoard& board) {
  if (board.code == 0) return board.identity;
  const size_t size = std::min<size_t>(board.message_size, TrialBoard::kMostMessage);
  const absl::Status status(static_cast<absl::StatusCode>(board.code),
                            std::string(board.message, size));
  return board.final ? Final(status) : status;
}

absl::StatusOr<FileIdentity> OutcomeOf(int how, const TrialBoard& board) {
  if (WIFSIGNALED(how)) {
    const int signal = WTERMSIG(how);
    const std::string text =
        absl::StrCat("the trial load was ended by ", SignalName(signal), During(board));
    if (signal != SIGKILL) return absl::InternalError(text);
    return absl::UnavailableError(
        absl::StrCat(text, "; where memory is short the system ends processes so"));
  }
  if (board.ended.load(std::memory_order_acquire)) return Outcome(board);
  return absl::InternalError(
      absl::StrCat("the trial load ended with status ", WEXITSTATUS(how), During(board)));
}

// Until the process has ended, or is to be ended.
class Watch {
 public:
  Watch(Process* process, const TrialBoard& board, const TrialLimits& limits)
      : process_(*process), board_(board), limits_(limits), start_(Clock::Steady().Now()) {}

  absl::StatusOr<FileIdentity> Wait() {
    Duration pause = std::chrono::milliseconds(1);
    for (;;) {
      process_.Listen(pause);
      int how = 0;
      if (process_.child().Ended(&how)) return OutcomeOf(how, board_);
      if (absl::Status over = Check(); !over.ok()) {
        process_.Kill();
        return over;
      }
      constexpr Duration kShort = std::chrono::milliseconds(1);
      pause = process_.silent() ? kShort : std::min<Duration>(2 * pause, 20 * kShort);
    }
  }

 private:
  absl::Status Check() {
    const Duration taken = Clock::Steady().Now() - start_;
    if (limits_.cancel != nullptr && limits_.cancel->cancelled())
      return absl::CancelledError("the load was given up");
    if (taken >= limits_.longest)
      return absl::DeadlineExceededError(
          absl::StrCat("the trial load took longer than max_load_seconds (",
                       Seconds(limits_.longest), " s): it was ended", During(board_)));
    if (limits_.report && taken >= next_tell_) {
      next_tell_ = taken + std::chrono::seconds(1);
      limits_.report(board_.note.Describe());
    }
    return Charge();
  }

  absl::Status Charge() const {
    const int64_t before = board_.bytes_before.load(std::memory_order_acquire);
    if (!kMemoryIsKnown || !limits_.charge || before < 0) return absl::OkStatus();
    const auto now = MemoryOfProcess(absl::StrCat(process_.child().pid()));
    if (!now) return absl::OkStatus();
    const absl::Status charged = limits_.charge(std::max<int64_t>(0, now->own - before));
    return Annotate(charged, absl::StrCat("the trial load was ended", During(board_)));
  }

  Process& process_;
  const TrialBoard& board_;
  const TrialLimits& limits_;
  const TimePoint start_;
  Duration next_tell_ = Duration::zero();
};

absl::Status CannotStart(const absl::Status& error) {
  return absl::UnavailableError(absl::StrCat("the process of the trial load cannot be started (",
                                             std::string(error.message()),
                                             "); free what is short, or set trial_load: never"));
}

}  // namespace

absl::StatusOr<FileIdentity> RunTrialProcess(const StartTrial& start, const std::string& request,
                                             const TrialLimits& limits) {
  auto board = OwnBoard::Make();
  if (!board.ok()) return CannotStart(board.status());
  auto process = Process::Start(start, request, board->file());
  if (!process.ok()) return CannotStart(process.status());
  absl::StatusOr<FileIdentity> outcome = Watch(&*process, **board, limits).Wait();
  const bool reported = (*board)->ended.load(std::memory_order_acquire);
  if (!outcome.ok() && !reported && !process->said().empty())
    spdlog::warn("a trial load ended with these words: {}", process->said());
  return outcome;
}

absl::StatusOr<TrialTask> BeginTrial() {
  TrialTask task;
  FLOE_ASSIGN_OR_RETURN(task.board, MapBoard(kTrialBoard));
  WorkNote::Keep(&task.board->note);
  char text[65536];
  for (ssize_t got = 0; (got = ::read(STDIN_FILENO, text, sizeof(text))) != 0;) {
    if (got < 0 && errno != EINTR) return absl::ErrnoToStatus(errno, "read");
    if (got > 0) task.request.append(text, static_cast<size_t>(got));
  }
  (void)::prctl(PR_SET_NAME, "floed-trial");
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != task.board->parent) return absl::CancelledError("the parent has ended");
  // No core file, and with this number none goes to a program either (core_pattern).
  const rlimit no_core{1, 1};
  (void)::setrlimit(RLIMIT_CORE, &no_core);
  return task;
}

void LimitTrialMemory(int64_t bytes, int64_t threads, TrialBoard* board) {
  const auto now = MemoryOfProcess("self");
  if (!now) return;
  board->bytes_before.store(now->own, std::memory_order_release);
  if (!kMemoryIsKnown || bytes <= 0) return;
  // Allocators and stacks take addresses that they never use.
  const int64_t unused = (int64_t{1} << 30) + (threads + 32) * (int64_t{16} << 20);
  rlimit data;
  if (::getrlimit(RLIMIT_DATA, &data) != 0) return;
  data.rlim_cur = std::min<rlim_t>(static_cast<rlim_t>(now->data + bytes + unused), data.rlim_max);
  (void)::setrlimit(RLIMIT_DATA, &data);
}

void EndTrial(const absl::StatusOr<FileIdentity>& outcome, TrialBoard* board) {
  const absl::Status& status = outcome.status();
  if (outcome.ok()) board->identity = *outcome;
  std::string message(status.message());
  // Where memory ran out nobody knew the node any more.
  if (absl::IsResourceExhausted(status) && message.find("node '") == std::string::npos)
    absl::StrAppend(&message, ",", During(*board));
  board->code = static_cast<int32_t>(status.code());
  board->final = !MayRetry(status) && MayRetry(absl::Status(status.code(), ""));
  board->message_size = static_cast<uint32_t>(std::min(message.size(), TrialBoard::kMostMessage));
  std::memcpy(board->message, message.data(), board->message_size);
  board->ended.store(true, std::memory_order_release);
  ::_exit(0);
}

}  // namespace floe::server
