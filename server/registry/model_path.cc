#include "server/registry/model_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/nearest.h"
#include "base/status.h"

namespace floe::server {
namespace {

namespace fs = std::filesystem;

bool StartsWith(const std::string& text, const std::string& prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}
bool EndsWith(const std::string& text, const std::string& suffix) {
  return text.size() >= suffix.size() &&
         text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
}

// Under systemd a path may exist for everyone but the service.
std::string SandboxHint(const std::string& path) {
  const bool service = std::getenv("INVOCATION_ID") != nullptr;
  bool hidden = false;
  for (const char* place : {"/home/", "/root/", "/run/user/", "/tmp/", "/var/tmp/"})
    hidden |= StartsWith(path, place);
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
};

absl::StatusOr<Listing> List(const std::string& directory) {
  Listing listing;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;  // a dangling link is neither
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

// The model file among the files of a directory; nullopt: there is none.
absl::StatusOr<std::optional<std::string>> ChooseFile(const std::string& directory,
                                                      const Listing& listing) {
  for (const char* name : {"model.floe", "frozen.pb", "graph.pb"})
    if (std::count(listing.files.begin(), listing.files.end(), name) != 0)
      return absl::StrCat(directory, "/", name);
  for (const char* suffix : {".floe", ".pb", ".pbtxt"}) {
    std::vector<std::string> found;
    for (const std::string& name : listing.files)
      if (EndsWith(name, suffix) && name != "batching_params.pbtxt") found.push_back(name);
    if (found.size() > 1)
      return absl::InvalidArgumentError(
          absl::StrCat("'", directory, "' holds several models (", QuotedList(found),
                       "); keep one, or call the right one ",
                       suffix == std::string(".floe") ? "model.floe" : "frozen.pb"));
    if (found.size() == 1) return absl::StrCat(directory, "/", found[0]);
  }
  return std::optional<std::string>();
}

// Digits only; 0 when it is no version.
int64_t VersionOf(const std::string& name) {
  int64_t version = 0;
  if (name.find_first_not_of("0123456789") != std::string::npos ||
      !absl::SimpleAtoi(name, &version))
    return 0;
  return version;
}

}  // namespace

absl::StatusOr<FoundModel> FindNewestVersion(const std::string& base_path) {
  struct stat info;
  if (stat(base_path.c_str(), &info) != 0) return PathError(base_path, errno);
  if (access(base_path.c_str(), R_OK) != 0) return PathError(base_path, errno);
  if (!S_ISDIR(info.st_mode)) return FoundModel{1, base_path};

  FLOE_ASSIGN_OR_RETURN(const Listing top, List(base_path));
  FoundModel newest{0, ""};
  std::string directory;
  for (const std::string& name : top.directories) {
    if (const int64_t version = VersionOf(name); version > newest.version) {
      newest.version = version;
      directory = absl::StrCat(base_path, "/", name);
    }
  }
  if (newest.version == 0) {
    FLOE_ASSIGN_OR_RETURN(const std::optional<std::string> file, ChooseFile(base_path, top));
    if (file) return FoundModel{1, *file};
    return absl::InvalidArgumentError(
        absl::StrCat("'", base_path, "' holds ", Describe(top),
                     "; expected directories named by a version number (1, 2, ...) with a model in "
                     "each, or one *.floe or *.pb file"));
  }
  FLOE_ASSIGN_OR_RETURN(const Listing inside, List(directory));
  FLOE_ASSIGN_OR_RETURN(const std::optional<std::string> file, ChooseFile(directory, inside));
  if (!file)
    return absl::InvalidArgumentError(
        absl::StrCat("the newest version, '", directory, "', holds ", Describe(inside),
                     "; expected model.floe, frozen.pb, graph.pb or one *.floe or *.pb file"));
  newest.file = *file;
  return newest;
}

}  // namespace floe::server
