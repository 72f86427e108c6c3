// Look-ups by name, version and label, with errors that say what there is instead. Publishing:
// first the table changes, then the health of its models.
#include "server/registry/served_table.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/nearest.h"
#include "base/quoted.h"
#include "base/status.h"
#include "server/registry/probe_model.h"

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
      return absl::StrCat(" (it is ",
                          one.state == VersionState::kEnd && !one.error.ok()
                              ? "FAILED"
                              : VersionStateName(one.state),
                          one.error.ok() ? "" : ": ", std::string(one.error.message()), ")");
  return "";
}

// Whether version 0 stands for the newest, as in the requests of OpenVINO Model Server's clients:
// where the model has no version of that number.
bool ZeroMeansNewest(const ServedTable::Entry& entry) {
  return std::none_of(entry.statuses.begin(), entry.statuses.end(),
                      [](const VersionStatus& one) { return one.version == 0; });
}

// The one the choice names; nullopt: the newest.
absl::StatusOr<std::optional<int64_t>> ChosenVersion(std::string_view name,
                                                     const ServedTable::Entry& entry,
                                                     const VersionChoice& choice) {
  if (choice.version == 0 && ZeroMeansNewest(entry)) return std::nullopt;
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

bool Stuck(const std::string& name, const ServedTable::Version& version, TimePoint now) {
  Scheduler& scheduler = version.served->scheduler();
  if (scheduler.Idle()) return false;
  for (const SchedulerProgress::Run& run : scheduler.NewlyStuck(now))
    spdlog::warn("model '{}' version {}: a worker has been in one run for {:.0f} s (run {}: {})",
                 name, version.version, std::chrono::duration<double>(now - run.started).count(),
                 run.slot, run.what);
  return IsStuck(scheduler.Progress(), now);
}

// What keeps it from answering; empty: nothing.
std::string Ails(const std::string& name, const ServedTable::Version& version, TimePoint now) {
  if (Stuck(name, version, now)) return "makes no progress although requests wait";
  const absl::Status device = version.served->CheckDevice();
  if (device.ok()) return "";
  return absl::StrCat("cannot answer: ", std::string(device.message()));
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
  const Entry& entry = *it->second;
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
  const Entry& entry = *it->second;
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
    if (!entry->available.empty()) ++tally.available;
    if (entry->failed) tally.failed.push_back(name);
  }
  return tally;
}

std::string ServedTable::UnderWay() const {
  std::vector<std::string> versions;
  for (const auto& [name, entry] : models)
    for (const VersionStatus& one : entry->statuses)
      if (one.state == VersionState::kUnloading ||
          (one.state == VersionState::kLoading && one.error.ok()))
        versions.push_back(absl::StrCat("model '", name, "' version ", one.version, " (",
                                        VersionStateName(one.state), ")"));
  return versions.empty() ? "scans for versions" : absl::StrJoin(versions, ", ");
}

absl::StatusOr<ServedHandle> Publication::Acquire(std::string_view name,
                                                  const VersionChoice& choice) const {
  if (name != kProbeModel) return Table()->Acquire(name, choice);
  if (auto probe = Probe(); probe != nullptr) return ServedHandle(std::move(probe));
  return absl::UnavailableError("the probe's model is not loaded");
}

std::shared_ptr<const ServedTable> Publication::Replace(std::shared_ptr<const ServedTable> table) {
  MutexLock lock(mutex_);
  return std::exchange(table_, std::move(table));
}

void Publication::Publish(ServedTable table, const std::set<std::string>& changed) {
  std::map<std::string, std::optional<bool>> available;
  for (const std::string& name : changed) {
    const auto entry = table.models.find(name);
    if (entry != table.models.end()) available[name] = !entry->second->available.empty();
    if (entry == table.models.end()) available[name] = std::nullopt;
  }
  const bool settled = table.settled;
  Replace(
      std::make_shared<const ServedTable>(std::move(table)));  // the old one ends without the lock
  // Whoever waited for the table can read it off the health.
  readiness_.Update(available);
  {
    MutexLock lock(mutex_);
    settled_ = settled;
  }
  changed_.NotifyAll();
  if (on_change_) on_change_();
}

std::shared_ptr<const ServedTable> Publication::Table() const {
  MutexLock lock(mutex_);
  return table_;
}

void Publication::WaitUntilLoaded() const {
  MutexLock lock(mutex_);
  while (!table_->stopping && !settled_) changed_.Wait(mutex_);
}

void Publication::SetProbe(std::shared_ptr<LocalServed> probe) {
  MutexLock lock(mutex_);
  probe_ = std::move(probe);
}

std::shared_ptr<LocalServed> Publication::Probe() const {
  MutexLock lock(mutex_);
  return probe_;
}

void Publication::CheckAiling(TimePoint now) {
  std::map<std::string, std::string> ailing;
  const std::shared_ptr<const ServedTable> table = Table();
  for (const auto& [name, entry] : table->models)
    for (const ServedTable::Version& version : entry->available)
      if (std::string what = Ails(name, version, now); !what.empty()) ailing[name] = what;
  readiness_.SetAiling(std::move(ailing));
}

void Publication::Close() {
  ServedTable table = *Table();
  table.stopping = true;
  for (auto& [name, entry] : table.models) {
    ServedTable::Entry ended = *entry;
    ended.available.clear();
    for (VersionStatus& status : ended.statuses) status.state = VersionState::kEnd;
    entry = std::make_shared<const ServedTable::Entry>(std::move(ended));
  }
  Replace(std::make_shared<const ServedTable>(std::move(table)));
  changed_.NotifyAll();
  const std::shared_ptr<LocalServed> probe = Probe();
  SetProbe(nullptr);
  if (probe != nullptr) probe->scheduler().Stop();
}

}  // namespace floe::server
