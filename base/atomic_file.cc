#include "base/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

namespace floe {
namespace {

constexpr int kAttempts = 100;

}  // namespace

absl::StatusOr<AtomicFile> AtomicFile::Create(const std::string& path) {
  AtomicFile file;
  file.path_ = path;
  // Names of one process differ by the counter; what a killed one left is stepped over.
  static std::atomic<int> counter{0};
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string name = absl::StrCat(path, ".", getpid(), "-", ++counter, ".part");
    file.fd_ = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file.fd_ >= 0) {
      file.temporary_ = std::move(name);
      return file;
    }
    if (errno != EEXIST) break;
  }
  return file.Failed("create");
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, "")),
      fd_(std::exchange(other.fd_, -1)) {}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

absl::Status AtomicFile::Failed(const char* what) const {
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot ", what, " ", path_));
}

absl::Status AtomicFile::Write(const void* data, size_t size) {
  constexpr size_t kPiece = size_t{1} << 30;  // the system takes no more than 2 GiB at once
  const auto* bytes = static_cast<const char*>(data);
  while (size != 0) {
    const ssize_t wrote = ::write(fd_, bytes, std::min(size, kPiece));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return Failed("write");
    bytes += wrote;
    size -= static_cast<size_t>(wrote);
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::Commit() {
  if (::fsync(fd_) != 0) return Failed("write");
  if (::close(std::exchange(fd_, -1)) != 0) return Failed("write");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return Failed("replace");
  temporary_.clear();
  // The new name is on the disk only when its directory is.
  const size_t slash = path_.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
  const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return absl::OkStatus();  // may be written but not read: the file is there
  const bool synced = ::fsync(directory) == 0 || errno == EINVAL;
  ::close(directory);
  return synced ? absl::OkStatus() : Failed("write the directory of");
}

}  // namespace floe
