#include "server/registry/model_status.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "server/registry/desired.h"

namespace floe::server {
namespace {

bool Available(const ModelState& model) {
  return std::any_of(model.servables.begin(), model.servables.end(),
                     [](const Servable& one) { return one.published; });
}

}  // namespace

bool IsSettled(const ModelState& model) {
  if (!model.current || Available(model)) return true;
  if (!model.current->scanned || !IncompleteVersions(model, *model.current).empty()) return false;
  const Desired desired = DesiredOf(model);
  for (const auto& [revision, version] : desired.current)
    if (model.Find(revision, version) == nullptr) return false;  // it is looked at next
  return std::none_of(model.servables.begin(), model.servables.end(), [&](const Servable& one) {
    return !one.Failing() && desired.ByCurrent(one) &&
           (one.state == VersionState::kStart || one.state == VersionState::kLoading);
  });
}

bool HasFailed(const ModelState& model) {
  if (!model.current || Available(model) || !IsSettled(model)) return false;
  if (model.current->found.empty()) return model.current->given_up;
  const Desired desired = DesiredOf(model);
  return std::all_of(model.servables.begin(), model.servables.end(), [&](const Servable& one) {
    return one.state == VersionState::kEnd || !desired.ByCurrent(one);
  });
}

std::vector<const Servable*> Published(const ModelState& model) {
  std::map<int64_t, const Servable*, std::greater<>> by_version;
  for (const Servable& one : model.servables) {
    if (!one.published) continue;
    const Servable*& chosen = by_version[one.version()];
    if (chosen == nullptr || one.key.revision == model.current_revision()) chosen = &one;
  }
  std::vector<const Servable*> published;
  published.reserve(by_version.size());
  for (const auto& [version, servable] : by_version) published.push_back(servable);
  return published;
}

absl::Status LastError(const ModelState& model) {
  if (!model.current || Available(model)) return absl::OkStatus();
  const Desired desired = DesiredOf(model);
  for (const Servable& one : model.servables)
    if (!one.attempt->error.ok() && desired.ByCurrent(one)) return one.attempt->error;
  return model.current->found.empty() ? model.current->scan_error : absl::OkStatus();
}

std::vector<VersionStatus> Statuses(const ModelState& model) {
  if (!model.current) return {};
  struct Ranked {
    int rank = 0;
    VersionStatus status;
  };
  std::map<int64_t, Ranked, std::greater<>> by_version;
  const auto offer = [&by_version](int rank, VersionStatus status) {
    Ranked& known = by_version[status.version];
    if (rank > known.rank) known = {rank, std::move(status)};
  };
  const Desired desired = DesiredOf(model);
  for (const Servable& one : model.servables) {
    // Between two attempts it is still on its way.
    const bool again = one.state == VersionState::kStart && one.Failing();
    const int rank = one.published ? 5 : desired.ByCurrent(one) ? 4 : 3;
    const absl::Status& error = one.attempt->error;
    offer(rank, {one.version(), again ? VersionState::kLoading : one.state,
                 error.ok() ? one.overwritten : error});
  }
  for (const int64_t version : IncompleteVersions(model, *model.current))
    offer(2, {version, VersionState::kStart,
              absl::UnavailableError("its files have just changed; it is loaded once they stay "
                                     "the same")});
  for (const VersionStatus& one : model.ended) by_version.emplace(one.version, Ranked{1, one});
  std::vector<VersionStatus> statuses;
  statuses.reserve(by_version.size());
  for (auto& [version, ranked] : by_version) statuses.push_back(std::move(ranked.status));
  return statuses;
}

}  // namespace floe::server
