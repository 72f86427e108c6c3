// Look-ups by name, version and label, and the errors that say what there is instead.
#include "server/registry/served_table.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/nearest.h"
#include "base/quoted.h"
#include "base/status.h"

namespace floe::server {
namespace {

constexpr size_t kMaxCompared = 200;

absl::Status UnknownModel(const ServedTable& table, std::string_view name) {
  // A request for what does not exist is to cost little, however many models there are.
  if (table.models.size() > kMaxCompared)
    return absl::NotFoundError(absl::StrCat("there is no model ", Quoted(name), " among the ",
                                            table.models.size(), " that are configured"));
  std::vector<std::string> names;
  for (const auto& [known, entry] : table.models) names.push_back(known);
  const std::vector<std::string> near =
      NearestNames(std::string(name.substr(0, kMostQuotedBytes)), names);
  return absl::NotFoundError(
      absl::StrCat("there is no model ", Quoted(name), "; ",
                   near.empty() ? "no model is configured" : "nearest: " + QuotedList(near)));
}

absl::Status UnknownLabel(std::string_view name, const ServedTable::Entry& entry,
                          std::string_view label) {
  std::vector<std::string> labels;
  for (const auto& [known, version] : entry.labels) labels.push_back(known);
  return absl::InvalidArgumentError(absl::StrCat(
      "model '", std::string(name), "' has no version label ", Quoted(label), "; it has ",
      labels.empty() ? "none; leave version_label out for the newest version"
                     : QuotedList(labels)));
}

std::string Versions(const ServedTable::Entry& entry) {
  std::vector<int64_t> versions;
  for (const ServedTable::Version& one : entry.available) versions.push_back(one.version);
  return versions.empty() ? "none" : absl::StrJoin(versions, ", ");
}

// ": it is LOADING" and the like, when something is known of it.
std::string Fate(const ServedTable::Entry& entry, int64_t version) {
  for (const VersionStatus& one : entry.statuses)
    if (one.version == version && one.state != VersionState::kAvailable)
      return absl::StrCat(" (it is ", VersionStateName(one.state), one.error.ok() ? "" : ": ",
                          std::string(one.error.message()), ")");
  return "";
}

// The one the choice names; nullopt: the newest.
absl::StatusOr<std::optional<int64_t>> ChosenVersion(std::string_view name,
                                                     const ServedTable::Entry& entry,
                                                     const VersionChoice& choice) {
  if (choice.label.empty()) return choice.version;
  const auto it = entry.labels.find(choice.label);
  if (it == entry.labels.end()) return UnknownLabel(name, entry, choice.label);
  return std::optional<int64_t>(it->second);
}

absl::Status NotAvailable(const ServedTable& table, std::string_view name,
                          const ServedTable::Entry& entry) {
  const std::string model = absl::StrCat("model '", std::string(name), "' ");
  if (table.stopping) return absl::UnavailableError(model + "is being stopped");
  if (!entry.last_error.ok())
    return absl::UnavailableError(
        absl::StrCat(model, "is not available: ", std::string(entry.last_error.message())));
  return absl::UnavailableError(model + "is still loading");
}

absl::Status NotLoaded(const ServedTable& table, std::string_view name,
                       const ServedTable::Entry& entry, int64_t version,
                       const VersionChoice& choice) {
  if (!choice.label.empty())
    return absl::FailedPreconditionError(absl::StrCat(
        "model '", std::string(name), "': label ", Quoted(choice.label), " stands for version ",
        version, ", which is not available", Fate(entry, version)));
  // While it is not known what there will be, asking for a version is no error of the caller.
  if (table.stopping || (entry.available.empty() && !entry.settled))
    return NotAvailable(table, name, entry);
  return absl::NotFoundError(absl::StrCat("model '", std::string(name), "' has no version ",
                                          version, " loaded", Fate(entry, version),
                                          "; available: ", Versions(entry)));
}

}  // namespace

const char* VersionStateName(VersionState state) {
  switch (state) {
    case VersionState::kStart:
      return "START";
    case VersionState::kLoading:
      return "LOADING";
    case VersionState::kAvailable:
      return "AVAILABLE";
    case VersionState::kUnloading:
      return "UNLOADING";
    case VersionState::kEnd:
      return "END";
    case VersionState::kUnknown:
      break;
  }
  return "UNKNOWN";
}

absl::StatusOr<ServedHandle> ServedTable::Acquire(std::string_view name,
                                                  const VersionChoice& choice) const {
  const auto it = models.find(name);
  if (it == models.end()) return UnknownModel(*this, name);
  const Entry& entry = it->second;
  FLOE_ASSIGN_OR_RETURN(const std::optional<int64_t> version, ChosenVersion(name, entry, choice));
  if (!version) {
    if (entry.available.empty()) return NotAvailable(*this, name, entry);
    return entry.available.front().handle;
  }
  for (const Version& one : entry.available)
    if (one.version == *version) return one.handle;
  return NotLoaded(*this, name, entry, *version, choice);
}

absl::StatusOr<std::vector<VersionStatus>> ServedTable::Status(std::string_view name,
                                                               const VersionChoice& choice) const {
  const auto it = models.find(name);
  if (it == models.end()) return UnknownModel(*this, name);
  const Entry& entry = it->second;
  FLOE_ASSIGN_OR_RETURN(const std::optional<int64_t> version, ChosenVersion(name, entry, choice));
  if (!version && entry.statuses.empty())
    return absl::NotFoundError(absl::StrCat(
        "no version of model '", std::string(name), "' has been found",
        entry.last_error.ok() ? " yet" : ": " + std::string(entry.last_error.message())));
  if (!version) return entry.statuses;
  for (const VersionStatus& one : entry.statuses)
    if (one.version == *version) return std::vector<VersionStatus>{one};
  return NotLoaded(*this, name, entry, *version, choice);
}

ServedTable::Tally ServedTable::CountModels() const {
  Tally tally{models.size(), 0, settled, {}};
  for (const auto& [name, entry] : models) {
    if (!entry.available.empty()) ++tally.available;
    if (entry.failed) tally.failed.push_back(name);
  }
  return tally;
}

std::string ServedTable::UnderWay() const {
  std::vector<std::string> versions;
  for (const auto& [name, entry] : models)
    for (const VersionStatus& one : entry.statuses)
      if (one.state == VersionState::kUnloading ||
          (one.state == VersionState::kLoading && one.error.ok()))
        versions.push_back(absl::StrCat("model '", name, "' version ", one.version, " (",
                                        VersionStateName(one.state), ")"));
  return versions.empty() ? "looks for versions" : absl::StrJoin(versions, ", ");
}

}  // namespace floe::server
