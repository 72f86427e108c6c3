#include "server/registry/desired.h"

#include <algorithm>
#include <optional>

#include "server/registry/version_policy.h"

namespace floe::server {
namespace {

Desired::Versions Of(const ModelState& model, const std::optional<Target>& target, Scope scope) {
  Desired::Versions versions;
  if (!target) return versions;
  for (const int64_t version : DesiredVersions(model, *target, scope))
    versions.emplace(target->revision, version);
  return versions;
}

}  // namespace

std::vector<int64_t> DesiredVersions(const ModelState& model, const Target& target, Scope scope) {
  std::vector<int64_t> found;
  std::set<int64_t> failing;
  for (const Target::Seen& seen : target.found) {
    const int64_t version = seen.files.version;
    const Servable* one = model.Find(target.revision, version);
    const bool loaded = one != nullptr && one->Loaded();
    if (scope == Scope::kExpected || seen.settled || loaded) found.push_back(version);
    if (one == nullptr || !one->Failing()) continue;
    if (scope == Scope::kActive || (scope == Scope::kStaged && one->attempt->failed_before))
      failing.insert(version);
  }
  std::vector<int64_t> desired =
      WantedVersions(target.config->versions, found, failing, LabelledVersions(*target.config));
  // `specific` names versions that are gone, too: an error to load, and no reason to keep.
  std::erase_if(desired, [&](int64_t version) {
    const Servable* one = model.Find(target.revision, version);
    return target.Find(version) == nullptr && one != nullptr && one->Loaded();
  });
  return desired;
}

std::vector<int64_t> IncompleteVersions(const ModelState& model, const Target& target) {
  std::vector<int64_t> incomplete;
  for (const int64_t version : DesiredVersions(model, target, Scope::kExpected)) {
    const Target::Seen* seen = target.Find(version);
    const Servable* one = model.Find(target.revision, version);
    if (seen != nullptr && !seen->settled && (one == nullptr || !one->Loaded()))
      incomplete.push_back(version);
  }
  return incomplete;
}

bool DesiredAsBefore(const ModelState& model, int64_t version) {
  Target before = *model.staged;
  before.config = model.current->config;
  const std::vector<int64_t> desired = DesiredVersions(model, before, Scope::kActive);
  return std::find(desired.begin(), desired.end(), version) != desired.end();
}

Desired DesiredOf(const ModelState& model) {
  return {Of(model, model.current, Scope::kActive), Of(model, model.staged, Scope::kStaged)};
}

}  // namespace floe::server
