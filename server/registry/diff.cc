// Compares versions that are desired with servables: what is missing is loaded, what is not wanted
// is cancelled or withdrawn.
#include "server/registry/diff.h"

#include <algorithm>

namespace floe::server {
namespace {

bool MayWithdraw(const Servable& servable, const AllDesired& desired, const Servables& actual) {
  if (!servable.published || !desired.current) return true;
  bool some_available = false, some_coming = false;
  for (const DesiredVersion& wanted : desired.current->versions) {
    if (!wanted.found) continue;
    const Servable* one = FindServable(actual, wanted.key.revision, wanted.key.version);
    const bool available = one != nullptr && one->Available();
    some_available |= available;
    some_coming |= !available && !wanted.failed;
  }
  return some_available && !some_coming;
}

bool IsInvolved(const Actions& actions, const AttemptKey& key) {
  return std::any_of(actions.load.begin(), actions.load.end(), [&key](const Actions::Load& load) {
    return load.key.revision == key.revision && load.key.version == key.version;
  });
}

// What `desired` wants and nobody has begun to load.
void Add(const Desired& desired, bool staged, const Servables& actual, Actions* actions) {
  for (const DesiredVersion& wanted : desired.versions) {
    const AttemptKey& key = wanted.key;
    if (!wanted.scanned || FindServable(actual, key.revision, key.version) != nullptr) continue;
    if (!wanted.error.ok()) {
      if (!wanted.failed) actions->fail.push_back({key, wanted.error});
    } else if (const TimePoint at = wanted.failed ? wanted.failed->retry_at : TimePoint::min();
               at < TimePoint::max() && !IsInvolved(*actions, key)) {
      actions->load.push_back({key, at, staged});
    }
  }
}

}  // namespace

Actions DiffOf(const AllDesired& desired, const Servables& actual) {
  Actions actions;
  for (const Servable& one : actual) {
    const bool current = desired.ByCurrent(one), wanted = current || desired.ByStaged(one);
    if (one.state == VersionState::kLoading && !wanted) actions.cancel.push_back(one.id);
    if (!one.Available()) continue;
    if (current) actions.publish.push_back(one.id);
    if (!wanted && MayWithdraw(one, desired, actual)) actions.withdraw.push_back(one.id);
  }
  if (desired.staged) Add(*desired.staged, true, actual, &actions);
  if (desired.current) Add(*desired.current, false, actual, &actions);
  return actions;
}

}  // namespace floe::server
