#include "base/mapped_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace floe {
namespace {

MappedFile::Guard guards[1024];
struct sigaction before;  // whoever handled SIGBUS until now
size_t page_bytes;

// Async-signal-safe: mmap is a system call, and nothing else is called.
bool Forgive(char* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  for (MappedFile::Guard& guard : guards) {
    if (at < guard.begin.load() || at >= guard.end.load()) continue;
    // Told before the page can be read by others, who ask afterwards.
    guard.damaged.store(true);
    return ::mmap(address - at % page_bytes, page_bytes, PROT_READ,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
  }
  return false;
}

void OnBusError(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  if (Forgive(static_cast<char*>(info->si_addr))) {
    errno = error;
    return;
  }
  if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr)
    return before.sa_sigaction(signal, info, context);
  // The same instruction faults again, as if nobody had looked.
  ::sigaction(SIGBUS, &before, nullptr);
}

void TakeBusErrors() {
  static const bool taken = [] {
    page_bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action = {};
    action.sa_sigaction = OnBusError;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    return ::sigaction(SIGBUS, &action, &before) == 0;
  }();
  (void)taken;
}

MappedFile::Guard* GuardOf(const char* data, size_t size) {
  TakeBusErrors();
  const auto begin = reinterpret_cast<uintptr_t>(data);
  for (MappedFile::Guard& guard : guards) {
    uintptr_t free = 0;
    if (!guard.begin.compare_exchange_strong(free, begin)) continue;
    guard.damaged.store(false);
    guard.end.store(begin + size);  // from here on it counts
    return &guard;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path,
                                                                   int64_t max_bytes) {
  // Not blocking: a pipe would keep its opener waiting for a writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  struct stat info;
  std::shared_ptr<MappedFile> file(new MappedFile());
  absl::Status status;
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    status = absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file"));
  } else if (info.st_size > max_bytes) {
    status = absl::InvalidArgumentError(
        absl::StrCat(path, " has ", info.st_size, " bytes, more than the limit of ", max_bytes));
  } else if (info.st_size > 0) {
    void* data = ::mmap(nullptr, info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
      status = absl::ErrnoToStatus(errno, absl::StrCat("cannot map ", path));
    } else {
      file->data_ = static_cast<const char*>(data);
      file->size_ = info.st_size;
      file->guard_ = GuardOf(file->data_, file->size_);
    }
  }
  ::close(fd);
  if (!status.ok()) return status;
  file->identity_ = IdentityOf(info);
  return file;
}

MappedFile::~MappedFile() {
  if (guard_ != nullptr) {  // before the addresses may be another's
    guard_->end.store(0);
    guard_->begin.store(0);
  }
  if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
}

}  // namespace floe
