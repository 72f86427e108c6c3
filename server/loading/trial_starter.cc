// A trial is forked twice. The process between ends at once, so that the trial becomes a child of
// the process that serves, which waits for it.
#include "server/loading/trial_starter.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "base/child_process.h"

namespace floe::server {
namespace {

// What the starter is asked for, beside the three files, and what it answers.
struct Order {
  int nice = 0;
};
struct Answer {
  pid_t pid = -1;
  int error = 0;
};

using Files = std::array<int, 3>;

// For ps and its like: the process's name, and its command line.
void SetTitle(absl::Span<char> title, const char* name) {
  (void)::prctl(PR_SET_NAME, name);
  std::fill(title.begin(), title.end(), '\0');
  const size_t size = std::strlen(name);
  if (size < title.size()) std::copy_n(name, size, title.begin());
}

void SetSignals(void (*handler)(int), std::initializer_list<int> signals) {
  for (const int number : signals) (void)::signal(number, handler);
}

// A message with files, as unix(7) describes it.
union FilesMessage {
  char bytes[CMSG_SPACE(sizeof(Files))];
  cmsghdr header;
};

template <typename T>
msghdr MessageOf(T* content, iovec* part) {
  *part = {content, sizeof(T)};
  msghdr message{};
  message.msg_iov = part;
  message.msg_iovlen = 1;
  return message;
}

bool SendOrder(int socket, Order order, const Files& files) {
  iovec part;
  msghdr message = MessageOf(&order, &part);
  FilesMessage sent{};
  message.msg_control = sent.bytes;
  message.msg_controllen = sizeof(sent.bytes);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(Files));
  std::memcpy(CMSG_DATA(header), files.data(), sizeof(Files));
  ssize_t result;
  do result = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  while (result < 0 && errno == EINTR);
  return result == sizeof(Order);
}

bool ReceiveOrder(int socket, Order* order, Files* files) {
  iovec part;
  msghdr message = MessageOf(order, &part);
  FilesMessage got{};
  message.msg_control = got.bytes;
  message.msg_controllen = sizeof(got.bytes);
  ssize_t result;
  do result = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (result < 0 && errno == EINTR);
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (result != sizeof(Order) || header == nullptr || header->cmsg_type != SCM_RIGHTS ||
      header->cmsg_len != CMSG_LEN(sizeof(Files)))
    return false;
  std::memcpy(files->data(), CMSG_DATA(header), sizeof(Files));
  return true;
}

// What the starter was forked with.
struct TrialProgram {
  absl::Span<char> title;
  void (*run)();
};

// In the trial: takes its files and waits until its parent is the process that serves.
[[noreturn]] void RunTrialIn(const Order& order, const Files& files, pid_t between,
                             const TrialProgram& program) {
  SetTitle(program.title, "floed-trial");
  SetSignals(SIG_DFL, {SIGINT, SIGTERM, SIGHUP});
  sigset_t none;
  sigemptyset(&none);
  (void)::sigprocmask(SIG_SETMASK, &none, nullptr);
  (void)::setpgid(0, 0);
  (void)::setpriority(PRIO_PROCESS, 0, order.nice);
  // First out of the way of the numbers that they get.
  Files high;
  for (size_t i = 0; i < files.size(); ++i) high[i] = ::fcntl(files[i], F_DUPFD, kTrialBoard + 1);
  (void)::dup2(high[0], STDIN_FILENO);
  (void)::dup2(high[1], STDOUT_FILENO);
  (void)::dup2(high[1], STDERR_FILENO);
  (void)::dup2(high[2], kTrialBoard);
  (void)::close_range(kTrialBoard + 1, ~0U, 0);
  while (::getppid() == between) (void)::sched_yield();
  program.run();
  ::_exit(0);
}

// In the starter. `given` is memory that it shares with the process between.
Answer ForkTrial(const Order& order, const Files& files, const TrialProgram& program,
                 pid_t* given) {
  *given = -1;
  const pid_t between = ::fork();
  if (between < 0) return {-1, errno};
  if (between == 0) {
    const pid_t self = ::getpid();
    const pid_t trial = ::fork();
    if (trial == 0) RunTrialIn(order, files, self, program);
    *given = trial;
    ::_exit(trial < 0 ? errno : 0);
  }
  int how = 0;
  while (::waitpid(between, &how, 0) < 0 && errno == EINTR) {
  }
  if (*given >= 0) return {*given, 0};
  return {-1, WIFEXITED(how) ? WEXITSTATUS(how) : EAGAIN};
}

// The starter: until the process that serves has closed its end of the socket.
[[noreturn]] void ServeOrders(int socket, const TrialProgram& program) {
  SetTitle(program.title, "trial-starter");
  (void)::setpgid(0, 0);  // keys of a terminal are for the process that serves
  SetSignals(SIG_IGN, {SIGINT, SIGTERM, SIGHUP});
  (void)::dup2(socket, kTrialBoard);
  (void)::close_range(kTrialBoard + 1, ~0U, 0);
  void* const shared =
      ::mmap(nullptr, sizeof(pid_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) ::_exit(1);
  Order order;
  Files files;
  while (ReceiveOrder(kTrialBoard, &order, &files)) {
    const Answer answer = ForkTrial(order, files, program, static_cast<pid_t*>(shared));
    for (const int file : files) ::close(file);
    if (::send(kTrialBoard, &answer, sizeof(answer), MSG_NOSIGNAL) != sizeof(answer)) break;
  }
  ::_exit(0);
}

}  // namespace

StartTrial ByExec(std::vector<std::string> command) {
  static_assert(kTrialBoard == 3);
  return [command = std::move(command)](const TrialFiles& files) {
    return SpawnChild(command, {files.input, files.output, files.output, files.board},
                      ProcessGroup::kOwn);
  };
}

absl::StatusOr<std::unique_ptr<TrialStarter>> TrialStarter::Fork(absl::Span<char> title,
                                                                 void (*run)()) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return absl::ErrnoToStatus(errno, "socketpair");
  (void)::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(ends[0]);
    ServeOrders(ends[1], {title, run});
  }
  const int error = errno;
  ::close(ends[1]);
  if (pid < 0) {
    ::close(ends[0]);
    return absl::ErrnoToStatus(error, "fork");
  }
  return std::unique_ptr<TrialStarter>(new TrialStarter(pid, ends[0]));
}

TrialStarter::~TrialStarter() {
  MutexLock lock(mutex_);
  ::close(socket_);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

absl::StatusOr<pid_t> TrialStarter::Start(const TrialFiles& files) {
  errno = 0;
  const int nice = ::getpriority(PRIO_PROCESS, 0);  // of this thread
  MutexLock lock(mutex_);
  Answer answer;
  if (!SendOrder(socket_, {nice}, {files.input, files.output, files.board}) ||
      ::recv(socket_, &answer, sizeof(answer), 0) != sizeof(answer))
    return absl::UnavailableError("the process that starts trial loads has ended");
  if (answer.pid < 0) return absl::ErrnoToStatus(answer.error, "fork");
  return answer.pid;
}

}  // namespace floe::server
