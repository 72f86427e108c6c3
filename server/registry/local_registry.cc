#include "server/registry/local_registry.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/nearest.h"
#include "base/status.h"
#include "server/registry/model_path.h"

namespace floe::server {
namespace {

// y = relu(2 x): enough to pass through every part a request passes through.
constexpr char kProbeGraph[] = R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 1 } } } } }
node { name: "two" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 1 } } float_val: 2 } } } }
node { name: "twice" op: "Mul" input: "x" input: "two" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "y" op: "Relu" input: "twice" attr { key: "T" value { type: DT_FLOAT } } }
)";

constexpr const char* kOverallNames[] = {"", "tensorflow.serving.PredictionService",
                                         "tensorflow.serving.ModelService", "PredictionService",
                                         "ModelService"};

double Millis(Duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

// What clients may read: they are not told where on the host a model lies.
absl::Status WithoutPaths(const absl::Status& error, const ModelConfig& config) {
  if (error.ok() || config.base_path.empty()) return error;
  return absl::Status(error.code(), absl::StrReplaceAll(std::string(error.message()),
                                                        {{config.base_path, "<base_path>"}}));
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

LocalRegistry::LocalRegistry(std::vector<ModelConfig> models, LoadOptions options,
                             HealthState* health)
    : options_(std::move(options)), health_(health) {
  MutexLock lock(mutex_);
  for (ModelConfig& config : models) {
    health_->Set(absl::StrCat("model/", config.name), ServingStatus::kNotServing);
    Entry& entry = entries_[config.name];
    entry.config = std::move(config);
    entry.status.state = VersionState::kStart;
    to_load_.push_back(&entry);
  }
  SetOverall(ServingStatus::kNotServing);
  Entry& probe = entries_[kProbeModel];
  probe.config.name = kProbeModel;
  probe.config.inline_below_us = 0;  // the probe must see a worker thread work
  probe.config.batching.max_batch_size = 1;
  probe.config.batching.max_enqueued_batches = 16;
  probe.bytes = kProbeGraph;
  probe.built_in = true;
  to_load_.push_back(&probe);
}

LocalRegistry::~LocalRegistry() { Stop(); }

void LocalRegistry::SetOverall(ServingStatus status) {
  for (const char* name : kOverallNames) health_->Set(name, status);
}

void LocalRegistry::StartLoading() {
  size_t models;
  {
    MutexLock lock(mutex_);
    models = to_load_.size();
    std::reverse(to_load_.begin(), to_load_.end());  // taken from the back
  }
  MutexLock lock(threads_mutex_);
  const size_t threads =
      std::min<size_t>(models, std::max(1u, std::thread::hardware_concurrency()));
  for (size_t i = 0; i < threads; ++i) loaders_.emplace_back([this] { LoadNext(); });
}

void LocalRegistry::LoadNext() {
  for (;;) {
    Entry* entry;
    {
      MutexLock lock(mutex_);
      if (to_load_.empty() || stopping_) return;
      entry = to_load_.back();
      to_load_.pop_back();
    }
    LoadEntry(entry);
  }
}

void LocalRegistry::SetStatus(Entry* entry, VersionState state, const absl::Status& error) {
  MutexLock lock(mutex_);
  entry->status.state = state;
  entry->status.error = WithoutPaths(error, entry->config);
}

void LocalRegistry::LoadEntry(Entry* entry) {
  const ModelConfig& config = entry->config;
  const TimePoint start = Clock::Steady().Now();
  SetStatus(entry, VersionState::kLoading, absl::OkStatus());
  FoundModel found;
  absl::Status status;
  if (!entry->built_in) {
    if (auto path = FindNewestVersion(config.base_path); path.ok()) {
      found = *std::move(path);
      MutexLock lock(mutex_);
      entry->status.version = found.version;
    } else {
      status = path.status();
    }
  }
  std::shared_ptr<LocalServed> served;
  if (status.ok()) {
    auto loaded = LoadModel(config, found.version, found.file, entry->bytes, options_);
    status = loaded.status();
    if (loaded.ok()) served = *std::move(loaded);
  }
  if (!status.ok()) {
    const std::string version = found.file.empty() ? "" : absl::StrCat(" version ", found.version);
    spdlog::error("{}: model '{}'{} is not served: {}", config.where, config.name, version,
                  std::string(status.message()));
    return SetStatus(entry, VersionState::kEnd, status);
  }
  {
    MutexLock lock(mutex_);
    entry->served = served;
    entry->status = {found.version, VersionState::kAvailable, absl::OkStatus()};
  }
  if (entry->built_in) return;
  spdlog::info("model '{}' version {} is available after {:.1f} ms: {}, {} KiB of weights",
               config.name, found.version, Millis(Clock::Steady().Now() - start), found.file,
               served->model()->weight_bytes() / 1024);
  health_->Set(absl::StrCat("model/", config.name), ServingStatus::kServing);
}

void LocalRegistry::WaitUntilLoaded() {
  {
    MutexLock lock(threads_mutex_);
    for (std::thread& loader : loaders_) loader.join();
    loaders_.clear();
  }
  if (AllAvailable()) SetOverall(ServingStatus::kServing);
}

bool LocalRegistry::AllAvailable() const {
  MutexLock lock(mutex_);
  return std::all_of(entries_.begin(), entries_.end(), [](const auto& named) {
    return named.second.built_in || named.second.status.state == VersionState::kAvailable;
  });
}

size_t LocalRegistry::AvailableCount() const {
  MutexLock lock(mutex_);
  return static_cast<size_t>(std::count_if(entries_.begin(), entries_.end(), [](const auto& named) {
    return !named.second.built_in && named.second.status.state == VersionState::kAvailable;
  }));
}

void LocalRegistry::SetAnswering(bool answering) {
  SetOverall(answering && AllAvailable() ? ServingStatus::kServing : ServingStatus::kNotServing);
}

void LocalRegistry::CheckProgress(TimePoint now) {
  std::vector<std::pair<std::string, bool>> changed;  // name, stuck
  std::vector<std::shared_ptr<LocalServed>> served;
  {
    MutexLock lock(mutex_);
    for (auto& [name, entry] : entries_) {
      if (entry.served == nullptr || entry.built_in) continue;
      served.push_back(entry.served);
      const bool stuck = IsStuck(entry.served->batcher().Progress(), now);
      if (stuck == entry.stuck) continue;
      entry.stuck = stuck;
      changed.emplace_back(name, stuck);
    }
  }
  for (const auto& model : served) model->batcher().TrimIdle(now);
  for (const auto& [name, stuck] : changed) {
    if (stuck) {
      spdlog::error(
          "model '{}' makes no progress although requests wait; it is reported as not serving",
          name);
    } else {
      spdlog::info("model '{}' makes progress again", name);
    }
    health_->Set(absl::StrCat("model/", name),
                 stuck ? ServingStatus::kNotServing : ServingStatus::kServing);
  }
}

void LocalRegistry::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  {
    MutexLock lock(threads_mutex_);
    for (std::thread& loader : loaders_) loader.join();
    loaders_.clear();
  }
  std::vector<std::shared_ptr<LocalServed>> served;
  {
    MutexLock lock(mutex_);
    for (auto& [name, entry] : entries_) {
      if (entry.served != nullptr) served.push_back(entry.served);
      if (entry.status.state == VersionState::kAvailable)
        entry.status.state = VersionState::kUnloading;
    }
  }
  for (const auto& one : served) one->batcher().Stop();
  // Threads are gone: from here on the last handle may go anywhere.
  MutexLock lock(mutex_);
  for (auto& [name, entry] : entries_) {
    entry.served.reset();
    if (entry.status.state == VersionState::kUnloading) entry.status.state = VersionState::kEnd;
  }
}

const LocalRegistry::Entry* LocalRegistry::Find(std::string_view name) const {
  const auto it = entries_.find(name);
  return it == entries_.end() ? nullptr : &it->second;
}

absl::Status LocalRegistry::Unknown(std::string_view name) const {
  std::vector<std::string> names;
  for (const auto& [known, entry] : entries_)
    if (!entry.built_in) names.push_back(known);
  const std::vector<std::string> near = NearestNames(std::string(name), names);
  return absl::NotFoundError(
      absl::StrCat("there is no model '", std::string(name), "'; ",
                   near.empty() ? "no model is configured" : "nearest: " + QuotedList(near)));
}

absl::Status LocalRegistry::CheckVersion(const Entry& entry, const VersionChoice& choice) const {
  if (!choice.label.empty())
    return absl::InvalidArgumentError(absl::StrCat(
        "model '", entry.config.name, "' has no version label '", std::string(choice.label), "'"));
  const std::optional<int64_t> version = choice.version;
  // While the version is not known yet, asking for one is not an error of the caller.
  if (!version || entry.status.version == 0 || *version == entry.status.version || entry.built_in)
    return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("model '", entry.config.name, "' has no version ",
                                          *version, "; it has ", entry.status.version));
}

absl::StatusOr<ServedHandle> LocalRegistry::Acquire(std::string_view name,
                                                    const VersionChoice& choice) const {
  MutexLock lock(mutex_);
  const Entry* entry = Find(name);
  if (entry == nullptr) return Unknown(name);
  FLOE_RETURN_IF_ERROR(CheckVersion(*entry, choice));
  if (entry->status.state == VersionState::kAvailable) return ServedHandle(entry->served);
  if (!entry->status.error.ok())
    return absl::UnavailableError(
        absl::StrCat("model '", entry->config.name,
                     "' is not available: ", std::string(entry->status.error.message())));
  const bool leaving = entry->status.state >= VersionState::kUnloading;
  return absl::UnavailableError(absl::StrCat("model '", entry->config.name, "' is ",
                                             leaving ? "being stopped" : "still loading"));
}

absl::StatusOr<std::vector<VersionStatus>> LocalRegistry::Status(
    std::string_view name, const VersionChoice& choice) const {
  MutexLock lock(mutex_);
  const Entry* entry = Find(name);
  if (entry == nullptr) return Unknown(name);
  FLOE_RETURN_IF_ERROR(CheckVersion(*entry, choice));
  return std::vector<VersionStatus>{entry->status};
}

std::vector<std::string> LocalRegistry::ModelNames() const {
  MutexLock lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_)
    if (!entry.built_in) names.push_back(name);
  return names;
}

absl::Status LocalRegistry::Reload(std::vector<ModelConfig> /*models*/, TimePoint /*deadline*/) {
  return absl::UnimplementedError("the configuration is read at start only");
}

ConfigState LocalRegistry::CurrentConfig() const {
  MutexLock lock(mutex_);
  ConfigState state;
  for (const auto& [name, entry] : entries_)
    if (!entry.built_in) state.models.push_back(entry.config);
  return state;
}

}  // namespace floe::server
