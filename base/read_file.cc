#include "base/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace floe {

absl::StatusOr<InputFile> InputFile::Open(const std::string& path, int64_t max_bytes) {
  // Not blocking: a pipe would keep its opener waiting for a writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  InputFile file(fd, path);
  struct stat info;
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file"));
  if (info.st_size > max_bytes)
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has ", info.st_size, " bytes, more than the limit of ", max_bytes));
  file.size_ = static_cast<size_t>(info.st_size);
  file.identity_ = IdentityOf(info);
  return file;
}

InputFile::InputFile(InputFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      size_(other.size_),
      at_(other.at_),
      identity_(other.identity_) {}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

absl::StatusOr<size_t> InputFile::Read(char* buffer, size_t size) {
  const size_t wanted = std::min(size, size_ - at_);
  if (wanted == 0) return 0;
  ssize_t got;
  do {
    got = ::read(fd_, buffer, wanted);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path_));
  if (got == 0)
    return absl::UnavailableError(absl::StrCat(path_, " was cut short while it was read"));
  at_ += static_cast<size_t>(got);
  return static_cast<size_t>(got);
}

absl::Status InputFile::ReadAt(size_t offset, char* buffer, size_t size) const {
  while (size != 0) {
    const ssize_t got = ::pread(fd_, buffer, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path_));
    if (got == 0)
      return absl::UnavailableError(absl::StrCat(path_, " was cut short while it was read"));
    offset += static_cast<size_t>(got);
    buffer += got;
    size -= static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

absl::StatusOr<FileBytes> ReadFile(const std::string& path, int64_t max_bytes) {
  FLOE_ASSIGN_OR_RETURN(InputFile input, InputFile::Open(path, max_bytes));
  FileBytes file;
  file.identity = input.identity();
  file.size = input.size();
  file.data.reset(new (std::nothrow) char[std::max<size_t>(file.size, 1)]);
  if (file.data == nullptr)
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for the ", file.size, " bytes of ", path));
  for (size_t at = 0; at < file.size;) {
    FLOE_ASSIGN_OR_RETURN(const size_t got, input.Read(file.data.get() + at, file.size - at));
    at += got;
  }
  return file;
}

}  // namespace floe
