// Describes a model's versions from its servables, its failed attempts and what is desired of it.
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

Desired DesiredNow(const ModelState& model) {
  return DesiredOf(model.current->configuration, model.current->found, model.attempts);
}

// Between two attempts it is still on its way.
VersionStatus StatusOf(int64_t version, const Attempt& failed) {
  const bool again = failed.retry_at < TimePoint::max();
  return {version, again ? VersionState::kLoading : VersionState::kEnd, failed.error};
}

}  // namespace

bool IsSettled(const ModelState& model) {
  if (!model.current || Available(model)) return true;
  if (!model.current->found.scanned) return false;
  const Desired desired = DesiredNow(model);
  return desired.incomplete.empty() &&
         std::all_of(desired.versions.begin(), desired.versions.end(),
                     [](const DesiredVersion& one) { return one.failed.has_value(); });
}

bool HasFailed(const ModelState& model) {
  if (!model.current || Available(model) || !IsSettled(model)) return false;
  const auto given_up = [](const std::optional<Attempt>& failed) {
    return failed && failed->retry_at == TimePoint::max();
  };
  if (model.current->found.versions.empty()) return given_up(model.current->failed_scans);
  const Desired desired = DesiredNow(model);
  return std::all_of(
      desired.versions.begin(), desired.versions.end(), [&](const DesiredVersion& one) {
        return given_up(one.failed) && model.Find(one.key.revision, one.key.version) == nullptr;
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
  for (const DesiredVersion& one : DesiredNow(model).versions)
    if (one.failed) return one.failed->error;
  return model.current->found.versions.empty() ? model.current->scan_error() : absl::OkStatus();
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
  const Desired desired = DesiredNow(model);
  for (const Servable& one : model.servables) {
    const auto failed = model.attempts.find(one.key);
    const bool again = one.state == VersionState::kLoading && failed != model.attempts.end();
    const int rank = one.published ? 6 : desired.Wants(one) ? 5 : 3;
    offer(rank, {one.version(), one.state, again ? failed->second.error : one.overwritten});
  }
  for (const DesiredVersion& one : desired.versions)
    if (one.failed) offer(4, StatusOf(one.key.version, *one.failed));
  for (const int64_t version : desired.incomplete)
    offer(2, {version, VersionState::kStart,
              absl::UnavailableError("its files have just changed; it is loaded once they stay "
                                     "the same")});
  for (const VersionStatus& one : model.ended) by_version.emplace(one.version, Ranked{1, one});
  for (const auto& [key, attempt] : model.attempts)
    if (key.revision == desired.revision)
      offer(1, {key.version, VersionState::kEnd, attempt.error});
  std::vector<VersionStatus> statuses;
  statuses.reserve(by_version.size());
  for (auto& [version, ranked] : by_version) statuses.push_back(std::move(ranked.status));
  return statuses;
}

}  // namespace floe::server
