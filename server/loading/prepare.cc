// Warms a model up, and turns its configuration and the estimates into limits and slots.
#include "server/loading/prepare.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/cpus.h"
#include "base/file_beneath.h"
#include "base/status.h"
#include "base/threads.h"
#include "config/model_server_config.h"
#include "server/executor/plan_executor.h"
#include "server/loading/warm_up.h"
#include "server/loading/warm_up_requests.h"

namespace floe::server {
namespace {

// Bounds of a batch whose size the estimates choose.
constexpr int64_t kMostRows = 1024;
constexpr int64_t kMostArenaBytes = int64_t{256} << 20;

// Bounds of a queue that the configuration leaves open.
constexpr int64_t kLeastQueuedRows = 64;  // times max_enqueued_batches, for small batches
constexpr int64_t kQueuedRequests = 4096;
constexpr size_t kQueuedBytes = size_t{1} << 30;

// The allowed sizes that a run of so many rows can be padded to.
std::vector<int64_t> AllowedRows(const std::vector<int64_t>& sizes, int64_t max_rows) {
  std::vector<int64_t> allowed;
  for (const int64_t size : sizes)
    if (size <= max_rows || max_rows == 0) allowed.push_back(size);
  if (allowed.size() < sizes.size() && (allowed.empty() || allowed.back() < max_rows))
    allowed.push_back(max_rows);
  return allowed;
}

PlanExecutor::Options ExecutorOptions(const ModelConfig& config, int64_t workers,
                                      int64_t run_bytes) {
  const BatchingConfig& batching = config.batching;
  PlanExecutor::Options options;
  options.max_rows = batching.max_execution_rows();
  options.allowed_rows = AllowedRows(batching.allowed_batch_sizes, options.max_rows);
  if (options.max_rows == 0) {
    options.max_rows = options.allowed_rows.empty() ? kMostRows : options.allowed_rows.back();
    options.max_arena_bytes = kMostArenaBytes;
  }
  if (config.max_run_bytes > 0) {
    options.max_run_bytes = config.max_run_bytes;
  } else if (run_bytes > 0) {
    options.max_run_bytes = run_bytes / workers;
  }
  options.max_arena_bytes = std::min(options.max_arena_bytes, options.max_run_bytes);
  if (!batching.enable_large_batch_splitting) options.max_request_rows = batching.max_batch_size;
  // Models that wait for fuller batches do not run on the threads of callers. Nor do those with
  // several threads a run, because all slots are alike.
  if (batching.batch_timeout_micros == 0 && config.intra_op_threads == 1)
    options.inline_below_us = static_cast<double>(config.inline_below_us);
  return options;
}

// Where a device computes, two runs overlap copies with kernels, and a third is ready when one
// ends (kernels/cuda/device/device_gate.h). Each slot has memory there, so callers' threads get
// none.
constexpr int64_t kDeviceWorkers = cuda::DeviceGate::kTogether + 1;
ModelConfig ForDevice(ModelConfig config, const PrepareOptions& prepare) {
  if (prepare.device_user == nullptr) return config;
  if (config.workers == 0) config.workers = kDeviceWorkers;
  config.inline_below_us = 0;
  return config;
}

bool ChoosesRows(const ModelConfig& config) {
  return config.batching.max_execution_rows() == 0 && config.batching.allowed_batch_sizes.empty();
}

// For threads of the transport, which run inline models.
int InlineSlots(const UsableCpus& cpus) { return std::clamp(cpus.count(), 1, 8); }

WarmUpOptions WarmUpOptionsOf(const ModelConfig& config, const PlanExecutor::Options& run,
                              const PrepareOptions& prepare) {
  WarmUpOptions options;
  options.trial = prepare.trial;
  options.limits = {prepare.longest_run, prepare.cancel};
  options.max_rows = run.max_rows;
  options.choose_rows = ChoosesRows(config);
  options.max_arena_bytes = std::min(run.max_arena_bytes, prepare.arena_bytes);
  return options;
}

bool AnyInline(const WarmUpReport& report, double limit_us) {
  return std::any_of(report.costs.begin(), report.costs.end(), [limit_us](const RunCost& cost) {
    return cost.exact && cost.curve.Micros(1) < limit_us;
  });
}

// Transport threads may each run an inline model themselves, so it gets slots beyond those of its
// workers.
void PrepareInline(const UsableCpus& cpus, const WarmUpReport& report, const WarmUpOptions& options,
                   PlanExecutor* executor) {
  const int first = executor->slots();
  executor->AddSlots(InlineSlots(cpus), /*intra_op_threads=*/1);  // too short a run to split
  WarmUpSlots(report, executor, first, options);
}

// Whether anything has this path, though it be a link to nothing. What cannot be looked up is not
// taken for missing.
absl::StatusOr<bool> IsThere(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot look for '", path, "'"));
}

absl::StatusOr<bool> IsThereIn(const std::string& folder, const std::string& path) {
  FLOE_ASSIGN_OR_RETURN(const bool any, IsThere(folder));
  if (!any) return false;
  struct stat info;
  if (stat(folder.c_str(), &info) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot look into '", folder, "'"));
  return IsThere(path);
}

// The requests recorded with the model, on every slot.
absl::Status ReplayRecorded(const Model& model, const PrepareOptions& prepare,
                            PlanExecutor* executor, WarmUpReport* report) {
  if (!prepare.replay_recorded || model.info().path.empty()) return absl::OkStatus();
  const std::string name = "assets.extra/tf_serving_warmup_requests";
  const std::string file = absl::StrCat(DirectoryOf(model.info().path), "/", name);
  const absl::StatusOr<bool> there = IsThereIn(DirectoryOf(file), file);
  if (there.ok() && !*there) return absl::OkStatus();
  const auto run = [&](const Inference& asked) {
    const WarmUpLimits limits{prepare.longest_recorded_run, prepare.cancel};
    return WarmUpWith(asked, prepare.replays, limits, executor, report);
  };
  absl::Status status = there.status();
  if (status.ok()) status = ReplayWarmUpRequests(file, model, run, &report->notes);
  if (status.ok()) return status;
  absl::Status named = Annotate(status, absl::StrCat("warm-up with ", name));
  if (!prepare.warm_up_optional || absl::IsCancelled(status)) return named;
  report->notes.push_back(std::string(named.message()));
  return absl::OkStatus();
}

// Puts the directory's batching parameters, if it has any, in place of the model's. Threads are not
// among them, as in TensorFlow Serving, where all models share them.
absl::Status ReadOwnBatching(const std::string& directory, ModelConfig* config,
                             std::vector<std::string>* notes) {
  constexpr char kFile[] = "batching_params.pbtxt";
  const absl::StatusOr<std::string> text = ReadFileBeneath(directory, kFile, int64_t{1} << 20);
  if (absl::IsNotFound(text.status())) return absl::OkStatus();
  FLOE_RETURN_IF_ERROR(text.status());
  ModelConfig own;
  FLOE_RETURN_IF_ERROR(ParseBatchingParameters(*text, kFile, &own, notes));
  config->batching = std::move(own.batching);
  if (own.workers > 0)
    notes->push_back(absl::StrCat(kFile,
                                  ": num_batch_threads has no effect here: workers of the "
                                  "model's configuration says how many there are"));
  return absl::OkStatus();
}

// The most rows that a batch of any variant may have.
int64_t MostRows(const WarmUpReport& report, const WarmUpOptions& options) {
  if (!options.choose_rows) return options.max_rows;
  int64_t most = 1;
  for (const RunCost& cost : report.costs) most = std::max(most, cost.max_rows);
  return most;
}

std::string NameOf(const Model& model, const CompiledSignature& variant) {
  const Signature* const signature = model.Find(variant.signature().name);
  return signature == nullptr ? variant.signature().name : signature->NameOf(variant);
}

std::vector<SignatureEstimate> EstimatesOf(const Model& model, const WarmUpReport& report) {
  std::vector<SignatureEstimate> estimates;
  for (const RunCost& cost : report.costs)
    estimates.push_back({NameOf(model, *cost.variant), cost.max_rows,
                         cost.exact ? cost.curve.Micros(1) : 0, cost.why_not_batchable});
  return estimates;
}

// What the configuration says of queue and runs. Nothing, or 0, leaves the default.
void SetLimits(const ModelConfig& config, int64_t max_rows, int64_t most_rows,
               Scheduler::Options* options) {
  const BatchingConfig& batching = config.batching;
  RequestQueue::Limits& limits = options->limits;
  limits.max_rows = max_rows;
  limits.timeout = std::chrono::microseconds(batching.batch_timeout_micros);
  limits.requests_are_rows = batching.max_enqueued_batches == 0;
  const int64_t batch = batching.max_batch_size > 0 ? batching.max_batch_size : kLeastQueuedRows;
  limits.max_queued_rows = limits.requests_are_rows
                               ? kQueuedRequests
                               : std::max(batch, most_rows) * batching.max_enqueued_batches;
  limits.max_bytes = batching.max_enqueued_bytes == 0
                         ? kQueuedBytes
                         : static_cast<size_t>(batching.max_enqueued_bytes);
  options->name = config.name;
  if (config.batching_full_status == FullStatus::kResourceExhausted)
    options->full_status = absl::StatusCode::kResourceExhausted;
  const auto set = [](int64_t value, auto unit, Duration* field) {
    if (value > 0) *field = unit * value;
  };
  set(batching.max_enqueued_micros, std::chrono::microseconds(1), &options->max_enqueued_time);
  set(config.max_run_seconds, std::chrono::seconds(1), &options->longest_run);
  set(config.default_timeout_microseconds, std::chrono::microseconds(1), &options->default_timeout);
}

std::string DescribeSizes(const Model& model, const WarmUpReport& report) {
  std::string text = "batches of at most";
  for (const RunCost& cost : report.costs)
    absl::StrAppend(&text, &cost == &report.costs[0] ? " " : ", ", cost.max_rows, " rows",
                    report.costs.size() == 1 ? "" : " of " + NameOf(model, *cost.variant), " (",
                    absl::StrFormat("%.3g", cost.curve.Micros(1)), " us for one, ",
                    absl::StrFormat("%.3g", cost.curve.Micros(cost.max_rows)),
                    " us for all, estimated)");
  return text;
}

}  // namespace

SlotBounds BoundsOfSlots(const ModelConfig& configured, const PrepareOptions& prepare) {
  const ModelConfig config = ForDevice(configured, prepare);
  const UsableCpus cpus = FindUsableCpus();
  SlotBounds bounds;
  bounds.workers = WorkersOf(config, prepare.cpu_shares, cpus);
  const PlanExecutor::Options options = ExecutorOptions(config, bounds.workers, prepare.run_bytes);
  bounds.chosen = ChoosesRows(config);
  bounds.rows = options.max_rows;
  bounds.arena_bytes = options.max_arena_bytes;
  bounds.most_slots = bounds.workers + (options.inline_below_us > 0 ? InlineSlots(cpus) : 0);
  return bounds;
}

absl::StatusOr<SchedulerSetup> PrepareScheduler(const Model& model, const ModelConfig& configured,
                                                const PrepareOptions& prepare) {
  ModelConfig config = ForDevice(configured, prepare);
  std::vector<std::string> notes;
  if (prepare.own_batching_parameters && !model.info().path.empty())
    FLOE_RETURN_IF_ERROR(ReadOwnBatching(DirectoryOf(model.info().path), &config, &notes));
  const UsableCpus cpus = FindUsableCpus();
  FLOE_RETURN_IF_ERROR(CheckCpuSet(config.cpu_set, cpus.cpus));
  const ThreadTraits traits{absl::StrCat("i:", config.name),
                            NiceOfShares(config.cpu_shares, prepare.cpu_shares.heaviest),
                            config.cpu_set};
  const ScopedThreadTraits scope(&traits);  // of the intra-op threads
  const auto workers = static_cast<int>(WorkersOf(config, prepare.cpu_shares, cpus));
  PlanExecutor::Options options = ExecutorOptions(config, workers, prepare.run_bytes);
  options.device_user = prepare.device_user;
  const cuda::ScopedDeviceUser device_user(options.device_user.get());  // of the warm-up
  auto executor =
      std::make_unique<PlanExecutor>(workers, static_cast<int>(config.intra_op_threads), options);
  if (config.batching.pad_variable_length_inputs)
    FLOE_RETURN_IF_ERROR(executor->PadNonBatchDims(model, config.batching.padding_values));
  const WarmUpOptions warm_up = WarmUpOptionsOf(config, options, prepare);
  FLOE_ASSIGN_OR_RETURN(WarmUpReport report, WarmUp(model, executor.get(), warm_up));
  if (!prepare.trial) {
    if (warm_up.choose_rows && !report.costs.empty())
      report.notes.push_back(DescribeSizes(model, report));
    if (AnyInline(report, options.inline_below_us))
      PrepareInline(cpus, report, warm_up, executor.get());
  }
  const int64_t most_rows = MostRows(report, warm_up);
  SchedulerSetup setup;
  if (!prepare.trial) setup.options.first_run = FirstRuns(report, executor.get(), warm_up.limits);
  setup.options.estimates = EstimatesOf(model, report);
  executor->SetCosts(std::exchange(report.costs, {}));
  FLOE_RETURN_IF_ERROR(ReplayRecorded(model, prepare, executor.get(), &report));

  SetLimits(config, options.max_rows, most_rows, &setup.options);
  setup.options.threads = workers;
  setup.options.traits = traits;
  setup.options.slowest = report.slowest;
  setup.notes = std::move(report.notes);
  setup.notes.insert(setup.notes.begin(), notes.begin(), notes.end());
  for (int slot = 0; slot < executor->slots(); ++slot) {
    const ExecContext& context = executor->context(slot);
    setup.memory_bytes += static_cast<int64_t>(context.arena_bytes() + context.pool_bytes() +
                                               context.staging_bytes());
  }
  setup.executor = std::move(executor);
  return setup;
}

}  // namespace floe::server
