// Which versions a configuration wants to be there, from what was found and how loads went. Pure
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "server/registry/model_state.h"

namespace floe::server {

struct DesiredVersion {
  AttemptKey key;
  bool found = true;    // false: only named by the configuration
  bool scanned = true;  // false: its files have to be scanned before it is loaded
  absl::Status error;   // of its files: there is nothing to load
  std::optional<Attempt> failed = {};
};

struct Desired {
  int64_t revision = 0;
  std::vector<DesiredVersion> versions;  // highest first
  // What it would want, too, if their files did not keep changing.
  std::vector<int64_t> incomplete;

  const DesiredVersion* Find(int64_t version) const;  // null: it is not wanted
  // Not of a version that is gone: that is an error to load, and no reason to keep.
  bool Wants(const Servable& one) const;
};

Desired DesiredOf(const Configuration& configuration, const Found& found, const Attempts& attempts);

// What a model's configurations want together.
struct AllDesired {
  std::optional<Desired> current, staged;  // as in ModelState

  bool ByCurrent(const Servable& one) const { return current && current->Wants(one); }
  bool ByStaged(const Servable& one) const { return staged && staged->Wants(one); }
};
AllDesired DesiredOf(const ModelState& model);

}  // namespace floe::server
