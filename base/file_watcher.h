// FileWatcher: says where files may have changed, by the kernel's inotify.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/owned_fd.h"

namespace floe {

class FileWatcher;

// The paths that one owner depends on; it ends with its owner. Threading: one thread at a time.
class FileWatch {
 public:
  FileWatch() = default;
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

 private:
  friend class FileWatcher;
  // An entry of a directory, by the kernel's number of the directory; "": all of its entries.
  using Place = std::pair<int, std::string>;

  std::shared_ptr<FileWatcher> watcher_;
  std::string name_;
  std::set<Place> places_;  // guarded by the watcher's lock
};

// Whether the kernel sees all changes of files in file systems of this kind (statfs, f_type). It
// does not see those of other hosts. Kinds that are not known count as theirs.
bool ReportsChanges(int64_t file_system);

// Threading: any thread.
class FileWatcher : public std::enable_shared_from_this<FileWatcher> {
 public:
  using Reports = std::function<bool(int64_t file_system)>;

  // RESOURCE_EXHAUSTED, UNAVAILABLE: the system has no inotify for this process.
  static absl::StatusOr<std::shared_ptr<FileWatcher>> Create(Reports reports = ReportsChanges);

  // Watches, instead of what `watch` stood for before: where each of `paths` leads, with all links
  // on the way; the file there, or the entries of the directory, and where links among them lead.
  // What changes after it has returned OK is in TakeChanged. Not told are writes to mapped files,
  // and what is mounted over a path.
  // UNIMPLEMENTED: a file system may change unseen. RESOURCE_EXHAUSTED: the system allows no more.
  // Others say why a path cannot be followed. Then nothing is watched for it.
  // It takes as long as the file systems do.
  absl::Status Watch(const std::string& name, const std::vector<std::string>& paths,
                     FileWatch* watch);

  // The names of watches whose files may have changed since the last call. Does not wait.
  std::set<std::string> TakeChanged();

 private:
  friend class FileWatch;
  friend class PathWalk;
  using Place = FileWatch::Place;
  using Owners = std::set<const FileWatch*>;

  FileWatcher(OwnedFd inotify, Reports reports)
      : inotify_(std::move(inotify)), reports_(std::move(reports)) {}
  absl::Status Add(int directory, const std::string& entry, uint32_t events, FileWatch* watch,
                   std::set<Place>* places);
  void Replace(std::set<Place> places, FileWatch* watch);
  void Drop(const Place& place, FileWatch* watch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const OwnedFd inotify_;
  const Reports reports_;
  Mutex mutex_;  // held for inotify's calls as well: no event of an unknown directory is read
  std::set<const FileWatch*> watches_ ABSL_GUARDED_BY(mutex_);
  std::map<int, std::map<std::string, Owners>> directories_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace floe
