// GetStats copies the live numbers into its message; SetLogLevel.
#include <sys/resource.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/cpus.h"
#include "base/status.h"
#include "floe/admin.pb.h"
#include "server/api/config_service.h"
#include "server/api/methods.h"
#include "server/api/proto_method.h"

namespace floe::server {
namespace {

double Millis(Duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

double Mean(uint64_t sum, uint64_t count) {
  return count == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(count);
}

int64_t OpenFileLimit() {
  rlimit files;
  return getrlimit(RLIMIT_NOFILE, &files) == 0 ? static_cast<int64_t>(files.rlim_cur) : 0;
}

void FillTimes(const TimeStats& times, floe::Times* out) {
  out->set_count(times.count);
  out->set_p50_ms(Millis(times.p50));
  out->set_p99_ms(Millis(times.p99));
}

void FillSignatures(const SchedulerStats& stats, floe::VersionStats* out) {
  for (const SignatureEstimate& estimate : stats.estimates) {
    floe::SignatureStats* const signature = out->add_signatures();
    signature->set_name(estimate.name);
    signature->set_max_batch_rows(estimate.max_rows);
    signature->set_why_not_batchable(estimate.why_not_batchable);
    signature->set_row_ms(estimate.row_micros / 1000);
  }
  for (const ProfileStats& profile : stats.profiles) {
    floe::SignatureStats* const signature = out->add_signatures();
    signature->set_name(profile.name);
    signature->set_max_batch_rows(profile.max_rows);
    signature->set_why_not_batchable(profile.why_not_batchable);
    signature->set_batches(profile.batches.batches);
    signature->set_rows(profile.batches.rows);
    signature->set_run_by_estimate(profile.slower);
  }
}

void FillWork(const SchedulerStats& stats, floe::VersionStats* out) {
  for (size_t code = 0; code < kStatusCodes; ++code) {
    if (stats.by_code[code] == 0) continue;
    floe::CodeCount* const count = out->add_requests();
    count->set_code(absl::StatusCodeToString(static_cast<absl::StatusCode>(code)));
    count->set_count(stats.by_code[code]);
  }
  out->set_refused_full(stats[Outcome::kRefusedFull]);
  out->set_refused_late(stats[Outcome::kRefusedLate]);
  out->set_expired(stats[Outcome::kExpired]);
  out->set_cancelled(stats[Outcome::kCancelled]);
  out->set_queued_requests(static_cast<int64_t>(stats.progress.queued));
  out->set_queued_rows(stats.queued_rows);
  out->set_queued_bytes(static_cast<int64_t>(stats.queued_bytes));
  out->set_oldest_wait_ms(Millis(stats.oldest_wait));
  FillTimes(stats.queue_wait, out->mutable_queue_wait());
  FillTimes(stats.run, out->mutable_run());
  out->set_batches(stats.batches.batches);
  out->set_mean_batch_rows(Mean(stats.batches.rows, stats.batches.batches));
  out->set_mean_batch_requests(Mean(stats.batches.requests, stats.batches.batches));
  out->set_padded_rows(stats.batches.padded_rows);
  out->set_inline_runs(stats.inline_runs);
  out->set_reruns(stats.reruns);
  out->set_workers(stats.progress.workers);
  out->set_last_internal_error(
      ToProto(absl::InternalError(stats.last_internal_error)).error_message());
  for (const SchedulerProgress::Run& run : stats.progress.runs) {
    if (!run.stuck) continue;
    floe::StuckRun* const stuck = out->add_stuck_runs();
    stuck->set_seconds(Seconds(Clock::Steady().Now() - run.started));
    stuck->set_what(run.what);
  }
  FillSignatures(stats, out);
}

std::string TextOf(const absl::Status& status) { return ToProto(status).error_message(); }

void FillPlace(const PlaceStats& place, floe::PlaceStats* out) {
  out->set_device(place.device);
  out->set_why_cpu(place.why_cpu);
  out->set_error(TextOf(place.error));
  for (const IslandInfo& island : place.islands) {
    floe::Island* const one = out->add_islands();
    one->set_name(island.name);
    one->set_nodes(island.nodes);
  }
  out->set_device_bytes(place.device_bytes);
  out->set_answered_by_cpu(place.answered_by_cpu);
}

void FillBackend(const BackendStatus& backend, floe::BackendStats* out) {
  out->set_name(backend.backend);
  out->set_versions(backend.versions);
  out->set_why_cpu(backend.why_cpu);
  for (const DeviceStatus& device : backend.devices) {
    floe::DeviceStats* const one = out->add_devices();
    one->set_device(device.device);
    one->set_name(device.name);
    one->set_pci_bus(device.pci_bus);
    if (device.major > 0)
      one->set_compute_capability(absl::StrCat(device.major, ".", device.minor));
    one->set_total_bytes(device.total_bytes);
    one->set_memory_limit_bytes(device.limit_bytes);
    one->set_memory_bytes(device.in_use_bytes);
    one->set_runs(device.runs);
    one->set_failed_runs(device.failed_runs);
    one->set_answered_by_cpu(device.answered_by_cpu);
    one->set_error(TextOf(device.error));
  }
}

void FillVersion(const VersionStats& stats, floe::VersionStats* out) {
  out->set_version(stats.status.version);
  out->set_state(static_cast<tensorflow::serving::ModelVersionStatus::State>(stats.status.state));
  *out->mutable_error() = ToProto(stats.status.error);
  if (!stats.place.device.empty()) FillPlace(stats.place, out->mutable_place());
  out->set_memory_bytes(stats.memory_bytes);
  out->set_file(stats.file);
  out->set_load_stage(stats.load_stage);
  out->set_loading_seconds(Seconds(stats.loading));
  if (stats.scheduler.has_value()) FillWork(*stats.scheduler, out);
}

void FillServer(const ApiContext& context, const std::vector<ModelStats>& models,
                floe::ServerStats* out) {
  const ServerInfo& server = context.server;
  out->set_version(server.version);
  if (server.started != TimePoint::min())
    out->set_uptime_seconds(Seconds(Clock::Steady().Now() - server.started));
  out->set_cpus(FindUsableCpus().count());
  int workers = 0;
  for (const ModelStats& model : models)
    for (const VersionStats& version : model.versions)
      if (version.scheduler.has_value()) workers += version.scheduler->progress.workers;
  out->set_workers(workers);
  if (context.memory != nullptr) {
    out->set_memory_bytes(context.memory->in_use());
    out->set_memory_limit_bytes(context.memory->limit());
  }
  out->set_open_file_limit(OpenFileLimit());
  if (server.connections) {
    const ConnectionCounts connections = server.connections();
    out->set_connections(connections.open);
    out->set_connection_limit(connections.limit);
    out->set_connections_refused(connections.refused);
  }
  if (server.tls) {
    const TlsInfo tls = server.tls();
    out->mutable_tls()->set_subject(tls.subject);
    out->mutable_tls()->set_not_after_seconds(tls.not_after);
    out->mutable_tls()->set_error(tls.error);
  }
  if (server.auth) {
    const AuthInfo auth = server.auth();
    out->mutable_auth()->set_tokens(auth.tokens);
    out->mutable_auth()->set_error(ToProto(absl::InvalidArgumentError(auth.error)).error_message());
    for (const auto& [cause, count] : auth.refused_by)
      out->mutable_auth()->set_refused(out->auth().refused() + count);
  }
  if (server.log_level) out->set_log_level(server.log_level());
  const AbandonedWork abandoned = context.registry.Abandoned();
  out->set_abandoned_versions(abandoned.versions);
  out->set_abandoned_threads(abandoned.threads);
  out->set_config_generation(context.registry.CurrentConfig().generation);
  FillBackend(context.registry.Backend(), out->mutable_backend());
}

}  // namespace

Method GetStatsMethod(const ApiContext& context) {
  return ProtoMethod<floe::GetStatsRequest, floe::GetStatsResponse>(
      MethodRole::kOperators, [context](const CallHead&, const auto& request, auto* response) {
        FLOE_ASSIGN_OR_RETURN(const std::vector<ModelStats> models,
                              context.registry.Stats(request.model()));
        FillServer(context, models, response->mutable_server());
        for (const ModelStats& model : models) {
          floe::ModelStats* const out = response->add_models();
          out->set_name(model.name);
          for (const VersionStats& version : model.versions)
            FillVersion(version, out->add_versions());
          for (const auto& [label, version] : model.labels)
            (*out->mutable_labels())[label] = version;
          const auto health = context.health.Get(absl::StrCat("model/", model.name));
          if (health) out->set_serving(*health == ServingStatus::kServing);
        }
        return absl::OkStatus();
      });
}

Method SetLogLevelMethod(const ApiContext& context) {
  return ProtoMethod<floe::SetLogLevelRequest, floe::SetLogLevelResponse>(
      MethodRole::kOperators,
      [server = context.server](const CallHead& head, const auto& request, auto* response) {
        if (!server.set_log_level || !server.log_level)
          return absl::UnimplementedError("this server has no log level");
        if (!request.level().empty())
          FLOE_RETURN_IF_ERROR(server.set_log_level(request.level(), CallerOf(head)));
        response->set_level(server.log_level());
        return absl::OkStatus();
      });
}

}  // namespace floe::server
