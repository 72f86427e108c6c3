// What a model's configurations want to be loaded, from what was found and how attempts went. Pure
// functions.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "server/registry/model_state.h"

namespace floe::server {

// How much of what was found counts.
enum class Scope {
  kActive,    // complete versions, and older ones in the place of those that fail
  kStrict,    // complete versions
  kStaged,    // and older ones in the place of those that failed before
  kExpected,  // all
};

// Highest first. `target` is one of the model's, or one that it might have.
std::vector<int64_t> DesiredVersions(const ModelState& model, const Target& target, Scope scope);

// Those among them whose files keep changing.
std::vector<int64_t> IncompleteVersions(const ModelState& model, const Target& target);

// Whether the active configuration would want the version, too, of what the staged one has found.
bool DesiredAsBefore(const ModelState& model, int64_t version);

// What is to be there: by revision and version.
struct Desired {
  using Versions = std::set<std::pair<int64_t, int64_t>>;
  Versions current;  // kActive
  Versions staged;   // kStaged

  static bool Has(const Versions& versions, const Servable& one) {
    return versions.count({one.key.revision, one.key.version}) != 0;
  }
  bool ByCurrent(const Servable& one) const { return Has(current, one); }
  bool ByStaged(const Servable& one) const { return Has(staged, one); }
  bool Has(const Servable& one) const { return ByCurrent(one) || ByStaged(one); }
};
Desired DesiredOf(const ModelState& model);

}  // namespace floe::server
