#include "base/file_beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace floe {
namespace {

// Closes with its scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
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

// A regular file, and its size.
absl::StatusOr<Descriptor> OpenRegular(const std::string& directory, const std::string& path,
                                       int64_t* size) {
  if (path.empty() || path[0] == '/' || path.find('\0') != std::string::npos)
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is not a relative path"));
  const Descriptor root(
      ::open(directory.empty() ? "." : directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (root.get() < 0) return OpenError(path, errno);
  const int opened = OpenBeneath(root.get(), path);
  if (opened < 0) return OpenError(path, -opened);
  Descriptor file(opened);
  struct stat info;
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is not a regular file"));
  *size = info.st_size;
  return file;
}

// How many bytes were read: fewer where the file ends.
absl::StatusOr<size_t> ReadFull(const Descriptor& file, const std::string& path, char* to,
                                size_t size) {
  size_t have = 0;
  while (have < size) {
    const ssize_t got = ::read(file.get(), to + have, size - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read '", path, "'"));
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  return have;
}

}  // namespace

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

absl::StatusOr<std::string> ReadFileBeneath(const std::string& directory, const std::string& path,
                                            int64_t max_bytes) {
  int64_t size = 0;
  FLOE_ASSIGN_OR_RETURN(const Descriptor file, OpenRegular(directory, path, &size));
  if (size > max_bytes)
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' has ", size, " bytes, more than the limit of ", max_bytes));
  std::string bytes(static_cast<size_t>(size), '\0');
  FLOE_ASSIGN_OR_RETURN(const size_t have, ReadFull(file, path, bytes.data(), bytes.size()));
  bytes.resize(have);
  return bytes;
}

absl::Status ReadBlocksBeneath(const std::string& directory, const std::string& path,
                               const std::function<absl::Status(std::string_view)>& take) {
  constexpr size_t kBlockBytes = size_t{1} << 20;
  int64_t size = 0;
  FLOE_ASSIGN_OR_RETURN(const Descriptor file, OpenRegular(directory, path, &size));
  std::string block(kBlockBytes, '\0');
  for (;;) {
    FLOE_ASSIGN_OR_RETURN(const size_t have, ReadFull(file, path, block.data(), block.size()));
    if (have == 0) return absl::OkStatus();
    FLOE_RETURN_IF_ERROR(take(std::string_view(block.data(), have)));
  }
}

}  // namespace floe
