#include "base/file_identity.h"

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace floe {
namespace {

int64_t Nanoseconds(const timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

FileIdentity IdentityOf(const struct stat& info) {
  return {info.st_dev, info.st_ino, info.st_size, Nanoseconds(info.st_mtim),
          Nanoseconds(info.st_ctim)};
}

absl::StatusOr<FileIdentity> IdentifyFile(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot look at ", path));
  return IdentityOf(info);
}

}  // namespace floe
