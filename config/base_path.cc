// Tells URLs from paths.
#include "config/base_path.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/quoted.h"

namespace floe {
namespace {

constexpr char kFile[] = "file://";

// How the files of a store get to this machine, for "s3" and the like; "" for others.
std::string WayFrom(const std::string& scheme) {
  if (scheme == "s3" || scheme == "s3a") return " (`aws s3 sync` copies it, mount-s3 mounts it)";
  if (scheme == "gs") return " (`gcloud storage rsync` copies it, gcsfuse mounts it)";
  if (scheme == "hdfs") return " (`hdfs dfs -get` copies it)";
  if (scheme == "http" || scheme == "https") return " (`curl -O` copies a file)";
  return "";
}

}  // namespace

absl::StatusOr<std::string> LocalPath(const std::string& given, const std::string& directory) {
  std::string path = given;
  if (absl::StartsWithIgnoreCase(path, kFile)) {
    const std::string host =
        absl::StartsWith(path.substr(sizeof kFile - 1), "localhost/") ? "localhost" : "";
    path.erase(0, sizeof kFile - 1 + host.size());
    if (!absl::StartsWith(path, "/"))
      return absl::InvalidArgumentError(absl::StrCat(
          Quoted(given), " names another host; expected a path, such as /srv/models/m"));
  }
  if (const size_t at = path.find("://"); at != std::string::npos && path.find('/') > at)
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(given),
                     " is a URL, and floed reads only files of this machine; expected the path "
                     "where the store is mounted or copied to",
                     WayFrom(path.substr(0, at))));
  if (path == "~" || absl::StartsWith(path, "~/"))
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(given),
                     " begins with '~', which only shells know; write the home "
                     "directory's path, such as /home/me",
                     path.substr(1)));
  if (path.empty() || path[0] == '/' || directory.empty()) return path;
  return absl::StrCat(directory, "/", path);
}

}  // namespace floe
