// What a ModelEntry tells: what is served, whether it is what lies there, and how far its versions
// are.
#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/registry/model_entry.h"

namespace floe::server {
namespace {

// OK: both are the same contents, as far as can be told.
absl::Status CompareFiles(const FileIdentity& loaded, const FileIdentity& now) {
  const bool same_file = loaded.device == now.device && loaded.inode == now.inode;
  if (same_file && loaded.size == now.size && loaded.modified_ns == now.modified_ns)
    return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "its file was ", same_file ? "overwritten in place" : "replaced", " after it was loaded (",
      loaded.size, " bytes then, ", now.size,
      " now): what was loaded still serves; put another model under another version's number"));
}

}  // namespace

// Whether a loaded version's file is what was loaded. True: that is something new.
bool ModelEntry::Compare(const Target& target, const FoundVersion& files) {
  Servable* const servable = Find(target.revision, files.version);
  if (servable == nullptr || !servable->identity || !files.identity) return false;
  const absl::Status before =
      std::exchange(servable->overwritten, CompareFiles(*servable->identity, *files.identity));
  return servable->overwritten != before;
}

bool ModelEntry::Settled() const {
  if (!current_ || Available()) return true;
  if (!current_->scanned || !Incomplete(*current_).empty()) return false;
  for (const int64_t version : wanted_by_current_)
    if (Find(current_->revision, version) == nullptr) return false;  // it is looked at next
  return std::none_of(servables_.begin(), servables_.end(), [this](const Servable& one) {
    return one.failures == 0 && WantedByCurrent(one) &&
           (one.state == VersionState::kStart || one.state == VersionState::kLoading);
  });
}

bool ModelEntry::Failed() const {
  if (!current_ || Available() || !Settled()) return false;
  if (current_->found.empty()) return current_->given_up;
  return std::all_of(servables_.begin(), servables_.end(), [this](const Servable& one) {
    return one.state == VersionState::kEnd || !WantedByCurrent(one);
  });
}

std::vector<const Servable*> ModelEntry::Published() const {
  std::map<int64_t, const Servable*, std::greater<>> by_version;
  for (const Servable& one : servables_) {
    if (!one.published) continue;
    const Servable*& chosen = by_version[one.version];
    if (chosen == nullptr || (current_ && one.revision == current_->revision)) chosen = &one;
  }
  std::vector<const Servable*> published;
  published.reserve(by_version.size());
  for (const auto& [version, servable] : by_version) published.push_back(servable);
  return published;
}

absl::Status ModelEntry::LastError() const {
  if (!current_ || Available()) return absl::OkStatus();
  for (const Servable& servable : servables_)
    if (!servable.error.ok() && WantedByCurrent(servable)) return servable.error;
  return current_->found.empty() ? current_->scan_error : absl::OkStatus();
}

std::vector<VersionStatus> ModelEntry::Statuses() const {
  if (!current_) return {};
  struct Ranked {
    int rank = 0;
    VersionStatus status;
  };
  std::map<int64_t, Ranked, std::greater<>> by_version;
  const auto offer = [&by_version](int rank, VersionStatus status) {
    Ranked& known = by_version[status.version];
    if (rank > known.rank) known = {rank, std::move(status)};
  };
  for (const Servable& one : servables_) {
    // Between two attempts it is still on its way.
    const bool again = one.state == VersionState::kStart && one.failures > 0;
    offer(one.published          ? 5
          : WantedByCurrent(one) ? 4
                                 : 3,
          {one.version, again ? VersionState::kLoading : one.state,
           one.error.ok() ? one.overwritten : one.error});
  }
  for (const int64_t version : Incomplete(*current_))
    offer(2, {version, VersionState::kStart,
              absl::UnavailableError("its files have just changed; it is loaded once they stay "
                                     "the same")});
  for (const VersionStatus& one : ended_) by_version.emplace(one.version, Ranked{1, one});
  std::vector<VersionStatus> statuses;
  statuses.reserve(by_version.size());
  for (auto& [version, ranked] : by_version) statuses.push_back(std::move(ranked.status));
  return statuses;
}

}  // namespace floe::server
