#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace floe {

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
    }
  }
  ::close(fd);
  if (!status.ok()) return status;
  return file;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
}

}  // namespace floe
