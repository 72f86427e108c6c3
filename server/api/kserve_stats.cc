// ModelStatistics, by Triton's names, from what the scheduler counts.
#include <chrono>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "server/api/kserve.h"
#include "server/request/decode_infer.h"

namespace floe::server {
namespace {

namespace kserve_pb = inference;

void FillDuration(uint64_t count, double seconds, kserve_pb::StatisticDuration* out) {
  out->set_count(count);
  out->set_ns(static_cast<uint64_t>(std::llround(seconds * 1e9)));
}

// Milliseconds since 1970; 0: never.
uint64_t WallMillis(TimePoint when) {
  if (when == TimePoint::min()) return 0;
  const auto then = std::chrono::system_clock::now() - (Clock::Steady().Now() - when);
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(then.time_since_epoch()).count());
}

void FillStatistics(const SchedulerStats& stats, kserve_pb::ModelStatistics* out) {
  out->set_last_inference(WallMillis(stats.progress.last_finished));
  out->set_inference_count(stats.batches.rows);
  out->set_execution_count(stats.batches.batches);
  uint64_t failed = 0;
  for (size_t code = 1; code < kStatusCodes; ++code) failed += stats.by_code[code];
  kserve_pb::InferStatistics* const times = out->mutable_inference_stats();
  double waited = 0, ran = 0;  // of all requests, and of all runs
  uint64_t waits = 0, runs = 0;
  for (const SignatureWork& work : stats.work) {
    waits += work.queue_wait.count();
    waited += work.queue_wait.sum();
    runs += work.run.count();
    ran += work.run.sum();
  }
  // Each request takes its wait, and the whole of the run that it shares.
  const double shared = runs == 0 ? 0 : static_cast<double>(waits) / static_cast<double>(runs);
  FillDuration(stats.by_code[0], waited + ran * shared, times->mutable_success());
  FillDuration(failed, 0, times->mutable_fail());
  FillDuration(waits, waited, times->mutable_queue());
  FillDuration(runs, ran, times->mutable_compute_infer());
  // Copying rows into a batch and out of it is part of the run here.
  times->mutable_compute_input();
  times->mutable_compute_output();
}

// Of all signatures, by the rows of their runs.
void FillBatches(const SchedulerStats& stats, kserve_pb::ModelStatistics* out) {
  std::map<int64_t, RunsByRows::Runs> all;
  for (const SignatureWork& work : stats.work)
    for (const RunsByRows::Runs& runs : work.by_rows.Read()) {
      all[runs.rows].count += runs.count;
      all[runs.rows].seconds += runs.seconds;
    }
  for (const auto& [rows, runs] : all) {
    kserve_pb::InferBatchStatistics* const one = out->add_batch_stats();
    one->set_batch_size(static_cast<uint64_t>(rows));
    FillDuration(runs.count, runs.seconds, one->mutable_compute_infer());
    one->mutable_compute_input();
    one->mutable_compute_output();
  }
}

void FillMemory(const char* type, int64_t bytes, kserve_pb::ModelStatistics* out) {
  if (bytes <= 0) return;
  kserve_pb::MemoryUsage* const usage = out->add_memory_usage();
  usage->set_type(type);
  usage->set_byte_size(static_cast<uint64_t>(bytes));
}

}  // namespace

absl::Status ModelStatisticsOf(const ModelRegistry& registry,
                               const kserve_pb::ModelStatisticsRequest& request,
                               kserve_pb::ModelStatisticsResponse* response) {
  FLOE_ASSIGN_OR_RETURN(const std::optional<int64_t> number, KServeVersion(request.version()));
  if (number && request.name().empty())
    return absl::InvalidArgumentError("a version was asked for without its model: name is empty");
  if (number) FLOE_RETURN_IF_ERROR(registry.Acquire(request.name(), {number, {}}).status());
  FLOE_ASSIGN_OR_RETURN(const std::vector<ModelStats> models, registry.Stats(request.name()));
  for (const ModelStats& model : models)
    for (const VersionStats& version : model.versions) {
      if (!version.scheduler || number.value_or(version.status.version) != version.status.version)
        continue;
      kserve_pb::ModelStatistics* const out = response->add_model_stats();
      out->set_name(model.name);
      out->set_version(absl::StrCat(version.status.version));
      FillStatistics(*version.scheduler, out);
      FillBatches(*version.scheduler, out);
      FillMemory("CPU", version.memory_bytes, out);
      FillMemory("GPU", version.place.device_bytes, out);
    }
  return absl::OkStatus();
}

}  // namespace floe::server
