// Follows each path entry by entry, as the kernel does, and watches every directory on the way for
// the entry that it looked up there. All by open directories: what is looked up and what is watched
// are the same, and nothing that a slow file system holds up has the lock.
#include "base/file_watcher.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"

namespace floe {
namespace {

// IN_ATTRIB also where someone may read now what he could not.
constexpr uint32_t kEntries = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB;
constexpr uint32_t kContents = kEntries | IN_MODIFY;
constexpr int kMostLinks = 40;  // on one path, as in the kernel
constexpr int kMostReads = 64;  // at a time, however fast events come

absl::Status WatchError(int error) {
  if (error == ENOSPC)
    return absl::ResourceExhaustedError(
        "the system allows no more watches of files; raise fs.inotify.max_user_watches");
  if (error == ENOMEM) return absl::ResourceExhaustedError("no memory for watches of files");
  return absl::ErrnoToStatus(error, "inotify_add_watch");
}

}  // namespace

bool ReportsChanges(int64_t file_system) {
  constexpr int64_t kZfs = 0x2fc12fc1, kBcachefs = 0xca451a4e, kErofs = 0xe0f5e1e2;
  // An overlay's layers may not be changed but through it.
  constexpr int64_t kLocal[] = {EXT4_SUPER_MAGIC,
                                XFS_SUPER_MAGIC,
                                BTRFS_SUPER_MAGIC,
                                TMPFS_MAGIC,
                                RAMFS_MAGIC,
                                OVERLAYFS_SUPER_MAGIC,
                                F2FS_SUPER_MAGIC,
                                SQUASHFS_MAGIC,
                                kErofs,
                                kZfs,
                                kBcachefs};
  return std::find(std::begin(kLocal), std::end(kLocal), file_system) != std::end(kLocal);
}

// Follows paths for one Watch.
class PathWalk {
 public:
  PathWalk(FileWatcher* watcher, FileWatch* watch) : watcher_(*watcher), watch_(*watch) {}

  absl::Status Follow(const std::string& path) {
    FLOE_ASSIGN_OR_RETURN(const OwnedFd place, Walk(path));
    struct stat info;
    if (fstat(place.get(), &info) != 0) return absl::ErrnoToStatus(errno, path);
    return S_ISDIR(info.st_mode) ? AddEntries(path, place.get()) : absl::OkStatus();
  }
  std::set<FileWatcher::Place> TakePlaces() { return std::move(places_); }

 private:
  absl::Status Add(const OwnedFd& directory, const std::string& entry, uint32_t events) {
    return watcher_.Add(directory.get(), entry, events, &watch_, &places_);
  }

  // Where it leads.
  absl::StatusOr<OwnedFd> Walk(const std::string& path) {
    const auto open_start = [](const std::string& from) {
      return OwnedFd(::open(from.substr(0, 1) == "/" ? "/" : ".", O_PATH | O_CLOEXEC));
    };
    OwnedFd at = open_start(path);
    std::vector<std::string> rest;  // the next one at the end
    const auto add = [&rest](const std::string& names) {
      const std::vector<std::string> parts = absl::StrSplit(names, '/', absl::SkipEmpty());
      rest.insert(rest.end(), parts.rbegin(), parts.rend());
    };
    add(path);
    for (int links = 0; !rest.empty();) {
      const std::string name = rest.back();
      rest.pop_back();
      if (name == ".") continue;
      if (name != "..") FLOE_RETURN_IF_ERROR(Add(at, name, kEntries));  // before it is looked up
      OwnedFd next(::openat(at.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
      struct stat info;
      if (next.get() < 0 || fstat(next.get(), &info) != 0) return absl::ErrnoToStatus(errno, path);
      if (S_ISREG(info.st_mode)) FLOE_RETURN_IF_ERROR(Add(at, name, kContents));
      if (!S_ISLNK(info.st_mode)) {
        at = std::move(next);
        continue;
      }
      std::array<char, PATH_MAX> target{};
      if (++links > kMostLinks) return absl::ErrnoToStatus(ELOOP, path);
      if (::readlinkat(next.get(), "", target.data(), target.size() - 1) < 0)
        return absl::ErrnoToStatus(errno, path);
      if (target[0] == '/') at = open_start(target.data());
      add(target.data());
    }
    return at;
  }

  absl::Status AddEntries(const std::string& path, int place) {
    OwnedFd directory(::openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory.get() < 0) return absl::ErrnoToStatus(errno, path);
    FLOE_RETURN_IF_ERROR(Add(directory, "", kEntries));
    const int copy = ::fcntl(directory.get(), F_DUPFD_CLOEXEC, 0);  // closedir closes it
    DIR* const entries = ::fdopendir(copy);
    if (entries == nullptr) {
      const int error = errno;
      if (copy >= 0) ::close(copy);
      return absl::ErrnoToStatus(error, path);
    }
    std::vector<std::string> links;
    for (const dirent* one = ::readdir(entries); one != nullptr; one = ::readdir(entries))
      if (one->d_type == DT_LNK || one->d_type == DT_UNKNOWN) links.emplace_back(one->d_name);
    ::closedir(entries);
    for (const std::string& link : links) {
      absl::Status followed = Walk(absl::StrCat(path, "/", link)).status();
      // The directories on the way to what is not there are watched.
      if (!followed.ok() && !absl::IsNotFound(followed)) return followed;
    }
    return absl::OkStatus();
  }

  FileWatcher& watcher_;
  FileWatch& watch_;
  std::set<FileWatcher::Place> places_;
};

FileWatch::~FileWatch() {
  if (watcher_ != nullptr) watcher_->Replace({}, this);
}

absl::StatusOr<std::shared_ptr<FileWatcher>> FileWatcher::Create(Reports reports) {
  OwnedFd inotify(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (inotify.get() < 0 && errno == EMFILE)
    return absl::ResourceExhaustedError(
        "the system allows no more watchers of files; raise fs.inotify.max_user_instances");
  if (inotify.get() < 0) return absl::UnavailableError(std::strerror(errno));
  return std::shared_ptr<FileWatcher>(new FileWatcher(std::move(inotify), std::move(reports)));
}

absl::Status FileWatcher::Watch(const std::string& name, const std::vector<std::string>& paths,
                                FileWatch* watch) {
  {
    MutexLock lock(mutex_);
    watch->watcher_ = shared_from_this();
    watch->name_ = name;
    watches_.insert(watch);
  }
  PathWalk walk(this, watch);
  absl::Status status;
  for (const std::string& path : paths)
    if (status = walk.Follow(path); !status.ok()) break;
  std::set<Place> places = walk.TakePlaces();
  if (!status.ok()) {
    MutexLock lock(mutex_);
    watch->places_.merge(places);
    places.clear();
  }
  Replace(std::move(places), watch);
  return status;
}

absl::Status FileWatcher::Add(int directory, const std::string& entry, uint32_t events,
                              FileWatch* watch, std::set<Place>* places) {
  struct statfs info;
  if (::fstatfs(directory, &info) != 0) return absl::ErrnoToStatus(errno, "statfs");
  if (!reports_(info.f_type))
    return absl::UnimplementedError(
        absl::StrCat("a file system of type 0x", absl::Hex(info.f_type), " may change unseen"));
  const std::string path = absl::StrCat("/proc/self/fd/", directory);
  MutexLock lock(mutex_);
  const int number =
      ::inotify_add_watch(inotify_.get(), path.c_str(), events | IN_MASK_ADD | IN_ONLYDIR);
  if (number < 0) return WatchError(errno);
  directories_[number][entry].insert(watch);
  places->insert({number, entry});
  return absl::OkStatus();
}

void FileWatcher::Replace(std::set<Place> places, FileWatch* watch) {
  MutexLock lock(mutex_);
  watch->places_.swap(places);
  for (const Place& place : places)
    if (watch->places_.count(place) == 0) Drop(place, watch);
  if (watch->places_.empty()) watches_.erase(watch);
}

void FileWatcher::Drop(const Place& place, FileWatch* watch) {
  const auto directory = directories_.find(place.first);
  if (directory == directories_.end()) return;  // it is gone
  const auto entry = directory->second.find(place.second);
  if (entry == directory->second.end()) return;
  entry->second.erase(watch);
  if (entry->second.empty()) directory->second.erase(entry);
  if (!directory->second.empty()) return;
  (void)::inotify_rm_watch(inotify_.get(), place.first);
  directories_.erase(directory);
}

std::set<std::string> FileWatcher::TakeChanged() {
  MutexLock lock(mutex_);
  std::set<std::string> changed;
  const auto add = [&changed](const auto& watches) {
    for (const FileWatch* watch : watches) changed.insert(watch->name_);
  };
  alignas(inotify_event) std::array<char, 64 << 10> buffer;
  for (int reads = 0; reads < kMostReads; ++reads) {
    const ssize_t got = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (got <= 0) break;  // none is left
    for (const char* at = buffer.data(); at < buffer.data() + got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      at += sizeof(inotify_event) + event->len;
      if ((event->mask & IN_Q_OVERFLOW) != 0) add(watches_);
      const auto directory = directories_.find(event->wd);
      if (directory == directories_.end()) continue;
      const auto& entries = directory->second;
      if (event->len == 0) {  // it is of the directory itself
        for (const auto& [entry, owners] : entries) add(owners);
      } else {
        for (const std::string& entry : {std::string(event->name), std::string()})
          if (const auto owners = entries.find(entry); owners != entries.end()) add(owners->second);
      }
      if ((event->mask & IN_IGNORED) != 0) directories_.erase(directory);  // it is gone
    }
  }
  return changed;
}

}  // namespace floe
