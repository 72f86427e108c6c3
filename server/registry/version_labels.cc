#include "server/registry/version_labels.h"

#include "absl/strings/str_cat.h"

namespace floe::server {

absl::Status CheckLabels(const std::string& model, const VersionLabels& before,
                         const VersionLabels& after,
                         const std::function<bool(int64_t version)>& available,
                         bool allow_unavailable) {
  for (const auto& [label, version] : after) {
    const auto old = before.find(label);
    const bool in_use = old != before.end();
    if ((in_use && old->second == version) || available(version)) continue;
    if (!in_use && allow_unavailable) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("model '", model, "': label '", label, "' ",
                     in_use ? absl::StrCat("cannot move from version ", old->second, " to ")
                            : "cannot be given to ",
                     "version ", version, ", which is not available; load that version first",
                     in_use ? "" : ", or set allow_version_labels_for_unavailable_models"));
  }
  return absl::OkStatus();
}

}  // namespace floe::server
