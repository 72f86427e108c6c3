// Applies a configuration's policy to what was found: versions whose files are complete count, and
// an older one is wanted in the place of each that fails.
#include "server/registry/desired.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/registry/version_policy.h"

namespace floe::server {
namespace {

absl::Status NotThere(const Configuration& configuration, const Found& found, int64_t version) {
  std::vector<int64_t> numbers;
  for (const Found::Version& one : found.versions) numbers.push_back(one.files.version);
  return absl::NotFoundError(
      absl::StrCat("there is no version ", version, " under '", configuration.model->base_path,
                   "'; it holds ", numbers.empty() ? "none" : absl::StrJoin(numbers, ", "),
                   "; copy the version there, or take it from the specific versions of the model"));
}

DesiredVersion Describe(const Configuration& configuration, const Found& found, int64_t version,
                        const Attempts& attempts) {
  DesiredVersion out{.key = {configuration.revision, version, "", 0}};
  if (const Found::Version* one = found.Find(version)) {
    out.key.file = one->files.file;
    out.key.stamp = one->files.stamp;
    out.scanned = one->files.scanned && found.scanned;
    out.error = one->files.error;
  } else {
    out.found = false;
    out.error = NotThere(configuration, found, version);
  }
  if (const auto it = attempts.find(out.key); it != attempts.end()) out.failed = it->second;
  return out;
}

}  // namespace

const DesiredVersion* Desired::Find(int64_t version) const {
  for (const DesiredVersion& one : versions)
    if (one.key.version == version) return &one;
  return nullptr;
}

bool Desired::Wants(const Servable& one) const {
  if (one.key.revision != revision) return false;
  const DesiredVersion* const wanted = Find(one.version());
  return wanted != nullptr && wanted->found;
}

Desired DesiredOf(const Configuration& configuration, const Found& found,
                  const Attempts& attempts) {
  const VersionPolicy& policy = configuration.model->versions;
  const std::set<int64_t> labelled = LabelledVersions(*configuration.model);
  std::vector<int64_t> all, settled;
  std::set<int64_t> failing;
  for (const auto& [files, since, is_settled] : found.versions) {
    all.push_back(files.version);
    if (is_settled) settled.push_back(files.version);
    const AttemptKey key{configuration.revision, files.version, files.file, files.stamp};
    if (!configuration.staged && attempts.count(key) != 0) failing.insert(files.version);
  }
  Desired desired{.revision = configuration.revision};
  for (const int64_t version : WantedVersions(policy, settled, failing, labelled)) {
    // Whether it is there is not known while scans fail, or of one whose files keep changing.
    const Found::Version* const one = found.Find(version);
    if (one == nullptr ? !found.fresh : !one->settled) continue;
    desired.versions.push_back(Describe(configuration, found, version, attempts));
  }
  for (const int64_t version : WantedVersions(policy, all, {}, labelled))
    if (const Found::Version* one = found.Find(version); one != nullptr && !one->settled)
      desired.incomplete.push_back(version);
  return desired;
}

AllDesired DesiredOf(const ModelState& model) {
  AllDesired all;
  for (const auto& [target, desired] :
       {std::pair(&model.current, &all.current), std::pair(&model.staged, &all.staged)})
    if (*target) *desired = DesiredOf((*target)->configuration, (*target)->found, model.attempts);
  return all;
}

}  // namespace floe::server
