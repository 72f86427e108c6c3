#include "cli/model_path.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file_beneath.h"
#include "base/status.h"
#include "server/registry/version_scan.h"

namespace floe::cli {
namespace {

using server::FoundVersion;

// A SavedModel is its directory.
std::string ModelOf(const std::string& file) {
  const std::string name = std::filesystem::path(file).filename().string();
  return name == "saved_model.pb" || name == "saved_model.pbtxt" ? DirectoryOf(file) : file;
}

}  // namespace

absl::StatusOr<std::string> FindModelFile(const std::string& path, std::ostream& notes) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return path;
  server::VersionsToScan scan;
  scan.policy = {VersionPolicy::Kind::kLatest, 1, {}};
  const absl::StatusOr<std::vector<FoundVersion>> found = server::ScanVersions(path, scan);
  if (absl::IsNotFound(found.status())) return path;
  FLOE_RETURN_IF_ERROR(found.status());
  const auto newest = std::find_if(found->begin(), found->end(), [](const FoundVersion& version) {
    return version.scanned && version.error.ok();
  });
  if (newest == found->end()) return found->front().error;
  for (auto skipped = found->begin(); skipped != newest; ++skipped)
    notes << "version " << skipped->version << " is left out: " << skipped->error.message() << "\n";
  const std::string model = ModelOf(newest->file);
  // A directory without versions holds the file itself.
  const auto place = [](const std::string& name) {
    return std::filesystem::path(name + "/").lexically_normal();
  };
  if (place(DirectoryOf(newest->file)) != place(path))
    notes << "version " << newest->version << ": " << model << "\n";
  return model;
}

}  // namespace floe::cli
