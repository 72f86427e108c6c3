#include "base/file_beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace floe {
namespace {

// Closes with its scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { Reset(-1); }
  int get() const { return fd_; }
  void Reset(int fd) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_;
};

// O_NONBLOCK: a pipe would wait for its writer.
constexpr int kOpenFile = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

}  // namespace

int internal::OpenBeneathStepwise(int directory, const std::string& path) {
  Descriptor at(::dup(directory));
  for (size_t begin = 0; begin <= path.size();) {
    const size_t slash = path.find('/', begin);
    const bool last = slash == std::string::npos;
    const std::string step = path.substr(begin, last ? slash : slash - begin);
    begin = last ? path.size() + 1 : slash + 1;
    if (step == ".." || (step.empty() && last)) return -EXDEV;
    if (step.empty() || step == ".") continue;
    const int fd = ::openat(at.get(), step.c_str(),
                            O_NOFOLLOW | (last ? kOpenFile : O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0) return errno == ELOOP ? -EXDEV : -errno;
    if (last) return fd;
    at.Reset(fd);
  }
  return -EXDEV;
}

namespace {

int OpenBeneath(int directory, const std::string& path) {
  struct open_how how = {};
  how.flags = kOpenFile;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const long fd = ::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how);
  if (fd >= 0) return static_cast<int>(fd);
  const bool missing = errno == ENOSYS || errno == EPERM;
  return missing ? internal::OpenBeneathStepwise(directory, path) : -errno;
}

absl::Status OpenError(const std::string& path, int error) {
  if (error == EXDEV || error == ELOOP)
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' leads out of its directory"));
  return absl::ErrnoToStatus(error, absl::StrCat("cannot open '", path, "'"));
}

}  // namespace

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

absl::StatusOr<std::string> ReadFileBeneath(const std::string& directory, const std::string& path,
                                            int64_t max_bytes) {
  if (path.empty() || path[0] == '/' || path.find('\0') != std::string::npos)
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is not a relative path"));
  const Descriptor root(
      ::open(directory.empty() ? "." : directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (root.get() < 0) return OpenError(path, errno);
  const int opened = OpenBeneath(root.get(), path);
  if (opened < 0) return OpenError(path, -opened);
  const Descriptor file(opened);
  struct stat info;
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is not a regular file"));
  if (info.st_size > max_bytes)
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' has ", info.st_size,
                                                   " bytes, more than the limit of ", max_bytes));
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got = ::read(file.get(), bytes.data() + have, bytes.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read '", path, "'"));
    if (got == 0) break;  // the file has shrunk
    have += static_cast<size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

}  // namespace floe
