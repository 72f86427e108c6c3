// Lists a base_path's directories, scans those that are asked for, and stamps their files.
#include "server/registry/version_scan.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <system_error>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/file_beneath.h"
#include "base/nearest.h"
#include "base/status.h"
#include "server/registry/version_policy.h"

namespace floe::server {
namespace {

namespace fs = std::filesystem;

// Under systemd a path may exist for everyone but the service.
std::string SandboxHint(const std::string& path) {
  const bool service = std::getenv("INVOCATION_ID") != nullptr;
  bool hidden = false;
  for (const char* place : {"/home/", "/root/", "/run/user/", "/tmp/", "/var/tmp/"})
    hidden |= absl::StartsWith(path, place);
  if (!service && !hidden) return "";
  return "; a systemd service sees neither /home nor /root (ProtectHome=, ProtectSystem=) and has "
         "a /tmp of its own "
         "(PrivateTmp=): keep models under /var/lib/floe or /srv, or add BindReadOnlyPaths= with "
         "'systemctl edit floed'";
}

absl::Status PathError(const std::string& path, int error) {
  const std::string message =
      absl::StrCat("'", path, "': ", std::strerror(error), SandboxHint(path));
  if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(message);
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(message);
  return absl::UnavailableError(message);
}

struct Listing {
  std::vector<std::string> files, directories;  // names, sorted
  bool empty = true;                            // not even a link to nothing
  bool links = false;  // whose targets may become a model while the directory stays as it is
};

absl::StatusOr<Listing> List(const std::string& directory) {
  Listing listing;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    listing.empty = false;
    std::error_code ignored;  // a dangling link is neither
    listing.links |= it->is_symlink(ignored);
    if (it->is_directory(ignored)) listing.directories.push_back(it->path().filename().string());
    if (it->is_regular_file(ignored)) listing.files.push_back(it->path().filename().string());
  }
  if (error) return PathError(directory, error.value());
  std::sort(listing.files.begin(), listing.files.end());
  std::sort(listing.directories.begin(), listing.directories.end());
  return listing;
}

std::string Describe(const Listing& listing) {
  std::vector<std::string> names = listing.files;
  for (const std::string& name : listing.directories) names.push_back(name + "/");
  constexpr size_t kShown = 8;
  const size_t more = names.size() - std::min(names.size(), kShown);
  names.resize(names.size() - more);
  if (names.empty()) return "nothing";
  return absl::StrCat(QuotedList(names), more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

bool Holds(const Listing& listing, const char* file) {
  return std::binary_search(listing.files.begin(), listing.files.end(), file);
}

bool HasSuffix(const std::string& name, std::initializer_list<const char*> suffixes) {
  return std::any_of(suffixes.begin(), suffixes.end(),
                     [&name](const char* suffix) { return absl::EndsWith(name, suffix); });
}

// Names of files that belong to a model and are none, whatever they end with.
bool IsCompanion(const std::string& name, const Listing& listing) {
  if (name == "batching_params.pbtxt") return true;
  const bool text = Holds(listing, "saved_model.pbtxt");
  if (!text && !Holds(listing, "saved_model.pb")) return false;
  // Of a SavedModel in both forms, TensorFlow reads the binary one.
  if (name == "saved_model.pbtxt") return Holds(listing, "saved_model.pb");
  return name == "fingerprint.pb" || name == "keras_metadata.pb" || name == "tfhub_module.pb";
}

// The model file among the files of a directory; nullopt: there is none. Where there is no other,
// a file of a format that floe does not load will do: its loader says what to do about it.
absl::StatusOr<std::optional<std::string>> ChooseFile(const std::string& directory,
                                                      const Listing& listing) {
  std::vector<std::string> found, others;
  for (const std::string& name : listing.files) {
    if (HasSuffix(name, {".pb", ".pbtxt", ".keras", ".h5"}) && !IsCompanion(name, listing))
      found.push_back(name);
    if (HasSuffix(name, {".onnx", ".tflite"})) others.push_back(name);
  }
  if (found.empty()) found = std::move(others);
  if (found.empty()) return std::optional<std::string>();
  if (found.size() == 1) return absl::StrCat(directory, "/", found[0]);
  return absl::InvalidArgumentError(absl::StrCat("'", directory, "' holds several models (",
                                                 QuotedList(found), "); keep one of them there"));
}

// Digits only; nullopt when it is no version.
std::optional<int64_t> VersionOf(const std::string& name) {
  int64_t version = 0;
  if (name.find_first_not_of("0123456789") != std::string::npos ||
      !absl::SimpleAtoi(name, &version))
    return std::nullopt;
  return version;
}

// Sizes, times and modes of many files as one number, and the time of the last change among them.
// The change time (ctime) is the file system's own. Copying tools cannot set it back as they do
// mtime, and it tells that a file may be read now that could not.
class Stamper {
 public:
  void Add(const std::string& name, const struct stat& info) {
    const auto changed =
        std::chrono::seconds(info.st_ctim.tv_sec) + std::chrono::nanoseconds(info.st_ctim.tv_nsec);
    // The mode too: two changes may have one time.
    hash_ = absl::HashOf(hash_, name, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec,
                         changed.count(), info.st_mode);
    newest_ = std::max(newest_, changed);
  }
  void Fill(FoundVersion* found) const {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    found->stamp = hash_;
    found->quiet = std::max(Duration::zero(), std::chrono::duration_cast<Duration>(now - newest_));
  }

 private:
  uint64_t hash_ = 0;
  std::chrono::nanoseconds newest_ = std::chrono::nanoseconds::min();
};

// A version of more files than this is judged by the first of them.
constexpr int kMaxStampedFiles = 10'000;

void Stamp(const std::string& path, FoundVersion* found) {
  std::vector<std::string> paths = {path};
  std::error_code error;
  for (fs::recursive_directory_iterator it(path, error), end;
       !error && it != end && paths.size() < kMaxStampedFiles; it.increment(error))
    paths.push_back(it->path().string());
  std::sort(paths.begin(), paths.end());
  Stamper stamper;
  struct stat info;
  for (const std::string& one : paths)
    if (stat(one.c_str(), &info) == 0) stamper.Add(one, info);
  stamper.Fill(found);
}

// The version whose files lie in `directory`. `no_model`: there is none as long as the directory
// has the times it has.
FoundVersion ScanDirectory(int64_t version, const std::string& directory, const std::string& marker,
                           bool* no_model = nullptr) {
  FoundVersion found;
  found.version = version;
  const absl::StatusOr<Listing> inside = List(directory);
  const auto file = inside.ok() ? ChooseFile(directory, *inside) : inside.status();
  if (no_model != nullptr) *no_model = file.ok() && !file->has_value() && !inside->links;
  if (!file.ok()) {
    found.error = file.status();
  } else if (!marker.empty() && !Holds(*inside, marker.c_str())) {
    found.error = absl::InvalidArgumentError(
        absl::StrCat("'", directory, "' has no '", marker, "' yet, the completion_marker that ",
                     "whoever copies a version puts there last"));
  } else if (!file->has_value()) {
    found.error = absl::InvalidArgumentError(
        absl::StrCat("'", directory, "' holds ", Describe(*inside),
                     "; expected saved_model.pb or one *.pb, *.pbtxt, *.keras or *.h5 file"));
  } else {
    found.file = **file;
  }
  if (inside.ok() && inside->empty) {
    struct stat info;
    Stamper stamper;
    if (stat(directory.c_str(), &info) == 0) stamper.Add(directory, info);
    stamper.Fill(&found);
  } else {
    Stamp(directory, &found);
  }
  if (!marker.empty() && found.error.ok()) found.quiet = Duration::max();
  return found;
}

FoundVersion Unscanned(int64_t version) {
  FoundVersion found;
  found.version = version;
  found.scanned = false;
  return found;
}

// A known version: whether it is there, and which file it is by now.
FoundVersion Known(int64_t version, const VersionsToScan& scan) {
  FoundVersion found = Unscanned(version);
  const auto file = scan.loaded_files.find(version);
  if (file == scan.loaded_files.end()) return found;
  if (const auto identity = IdentifyFile(file->second); identity.ok()) found.identity = *identity;
  return found;
}

// The versions that the scan asks for, each scanned once.
class VersionScanner {
 public:
  // `numbers` in descending order.
  VersionScanner(const std::string& base_path,
                 const std::map<int64_t, std::string, std::greater<>>& directories,
                 const VersionsToScan& scan)
      : base_path_(base_path), directories_(directories), scan_(scan) {
    numbers_.reserve(directories.size());
    for (const auto& [version, name] : directories) numbers_.push_back(version);
  }

  std::vector<FoundVersion> Scan() {
    for (const int64_t version : scan_.Among(numbers_)) ScanInto(version);
    if (scan_.policy.kind == VersionPolicy::Kind::kLatest) Descend();
    if (scan_.empty != nullptr) scan_.empty->versions = std::move(empty_);
    std::vector<FoundVersion> found;
    int without_model = 0;
    for (const int64_t version : numbers_) {
      const auto it = scanned_.find(version);
      if (it == scanned_.end()) {
        found.push_back(Known(version, scan_));
      } else if (it->second.error.ok() || IsNamed(version) ||
                 ++without_model <= kMostWithoutModel) {
        found.push_back(std::move(it->second));
      }
    }
    return found;
  }

 private:
  bool IsNamed(int64_t version) const {
    return scan_.labelled.count(version) != 0 ||
           scan_.policy.kind == VersionPolicy::Kind::kSpecific;
  }

  // As many older ones as turned out to have no model.
  void Descend() {
    int64_t missing = 0, lowest = std::numeric_limits<int64_t>::max();
    for (const int64_t version : WantedVersions(scan_.policy, numbers_, scan_.skipped)) {
      lowest = version;
      missing += Fails(version) ? 1 : 0;
    }
    for (const int64_t version : numbers_) {
      if (missing == 0) return;
      if (version >= lowest) continue;
      if (scan_.known.count(version) == 0) ScanInto(version);
      const bool counts = scan_.skipped.count(version) == 0 && !Fails(version);
      missing -= counts ? 1 : 0;
    }
  }

  // Not known before to fail.
  bool Fails(int64_t version) const {
    const auto it = scanned_.find(version);
    return it != scanned_.end() && !it->second.error.ok() && scan_.skipped.count(version) == 0;
  }

  void ScanInto(int64_t version) {
    const auto name = directories_.find(version);
    if (name == directories_.end() || scanned_.count(version) != 0) return;
    const std::string directory = absl::StrCat(base_path_, "/", name->second);
    if (scan_.empty == nullptr) {
      scanned_[version] = ScanDirectory(version, directory, scan_.marker);
      return;
    }
    const auto identity = IdentifyFile(directory);
    const auto before = scan_.empty->versions.find(version);
    if (identity.ok() && before != scan_.empty->versions.end() &&
        before->second.directory == *identity) {
      scanned_[version] = before->second.found;
      empty_[version] = std::move(before->second);
      return;
    }
    bool no_model = false;
    ++scan_.empty->scans;
    FoundVersion found = ScanDirectory(version, directory, scan_.marker, &no_model);
    if (no_model && identity.ok() && found.quiet >= scan_.empty->times_tell)
      empty_[version] = {*identity, found};
    scanned_[version] = std::move(found);
  }

  const std::string& base_path_;
  const std::map<int64_t, std::string, std::greater<>>& directories_;
  const VersionsToScan& scan_;
  std::vector<int64_t> numbers_;
  std::map<int64_t, FoundVersion> scanned_;
  std::map<int64_t, EmptyVersions::Empty> empty_;  // of this scan
};

}  // namespace

std::set<int64_t> VersionsToScan::Among(const std::vector<int64_t>& found) const {
  std::set<int64_t> into;
  for (const int64_t version : WantedVersions(policy, found, skipped, labelled))
    if (known.count(version) == 0) into.insert(version);
  return into;
}

uint64_t StampOfVersion(const std::string& base_path, const std::string& file) {
  FoundVersion found;
  Stamp(file == base_path ? file : DirectoryOf(file), &found);
  return found.stamp;
}

absl::StatusOr<std::vector<FoundVersion>> ScanVersions(const std::string& base_path,
                                                       const VersionsToScan& scan) {
  struct stat info;
  if (stat(base_path.c_str(), &info) != 0) return PathError(base_path, errno);
  if (access(base_path.c_str(), R_OK) != 0) return PathError(base_path, errno);
  if (!S_ISDIR(info.st_mode)) {
    if (scan.known.count(1) != 0) return std::vector<FoundVersion>{Known(1, scan)};
    FoundVersion file;
    file.file = base_path;
    Stamp(base_path, &file);
    return std::vector<FoundVersion>{std::move(file)};
  }

  FLOE_ASSIGN_OR_RETURN(const Listing top, List(base_path));
  std::map<int64_t, std::string, std::greater<>> directories;
  for (const std::string& name : top.directories)
    if (const auto version = VersionOf(name)) directories.emplace(*version, name);
  if (!directories.empty()) return VersionScanner(base_path, directories, scan).Scan();

  FLOE_ASSIGN_OR_RETURN(const std::optional<std::string> file, ChooseFile(base_path, top));
  if (file)
    return std::vector<FoundVersion>{
        scan.known.count(1) == 0 ? ScanDirectory(1, base_path, scan.marker) : Known(1, scan)};
  return absl::NotFoundError(
      absl::StrCat("'", base_path, "' holds ", Describe(top),
                   "; expected directories named by a version number (1, 2, ...) with a model in "
                   "each, or one *.pb, *.pbtxt, *.keras or *.h5 file"));
}

}  // namespace floe::server
