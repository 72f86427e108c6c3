#include "base/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace floe {

absl::StatusOr<FileBytes> ReadFile(const std::string& path, int64_t max_bytes) {
  // Not blocking: a pipe would keep its opener waiting for a writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  const absl::Cleanup close = [fd] { ::close(fd); };
  struct stat info;
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file"));
  if (info.st_size > max_bytes)
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has ", info.st_size, " bytes, more than the limit of ", max_bytes));
  FileBytes file;
  file.identity = IdentityOf(info);
  file.size = static_cast<size_t>(info.st_size);
  file.data.reset(new (std::nothrow) char[std::max<size_t>(file.size, 1)]);
  if (file.data == nullptr)
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for the ", file.size, " bytes of ", path));
  for (size_t at = 0; at < file.size;) {
    const ssize_t got = ::read(fd, file.data.get() + at, file.size - at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
    if (got == 0)
      return absl::UnavailableError(absl::StrCat(path, " was cut short while it was read"));
    at += static_cast<size_t>(got);
  }
  return file;
}

}  // namespace floe
