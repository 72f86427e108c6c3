// Checks each label against what becomes of its version.
#include "server/registry/version_labels.h"

#include "absl/strings/str_cat.h"

namespace floe::server {

absl::Status CheckLabels(const std::string& model, const VersionLabels& before,
                         const VersionLabels& after, const VersionFate& fate,
                         bool allow_unavailable) {
  for (const auto& [label, version] : after) {
    const auto old = before.find(label);
    const bool in_use = old != before.end();
    const bool stays = in_use && old->second == version;
    if (stays ? !fate.dropped(version) : fate.available(version)) continue;
    const bool moves = in_use && !stays;
    if (!moves && allow_unavailable) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "model '", model, "': label '", label, "' ",
        moves   ? absl::StrCat("cannot move from version ", old->second, " to version ", version)
        : stays ? absl::StrCat("leads to version ", version)
                : absl::StrCat("cannot be given to version ", version),
        stays ? ", which would be unloaded; keep that version, or move the label first"
              : ", which is not available; load that version first",
        moves ? "" : ", or set allow_version_labels_for_unavailable_models"));
  }
  return absl::OkStatus();
}

}  // namespace floe::server
