// floe's own families: the server, its models, their requests, queues and runs.
#include "server/metrics/server_metrics.h"

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/cpus.h"
#include "server/api/call_watch.h"
#include "server/metrics/foreign_metrics.h"
#include "server/metrics/process_metrics.h"
#include "server/metrics/scrape.h"

namespace floe::server {
namespace {

constexpr MetricType kCounter = MetricType::kCounter;
constexpr MetricType kGauge = MetricType::kGauge;

// One class: a method for each group of families.
class OwnWriter {
 public:
  OwnWriter(const Scrape& scrape, Exposition* text)
      : scrape_(scrape), context_(scrape.context), text_(*text) {}

  void Write() {
    Server();
    Connections();
    OtherCalls();
    Configuration();
    Devices();
    Models();
    Requests();
    Queues();
    Runs();
  }

 private:
  void Gauge(std::string_view name, std::string_view help, double value) {
    text_.Family(name, kGauge, help);
    text_.Sample({}, value);
  }
  void Gauge(std::string_view name, std::string_view help, int64_t value) {
    Gauge(name, help, static_cast<double>(value));
  }
  void Counter(std::string_view name, std::string_view help, int64_t value) {
    text_.Family(name, kCounter, help);
    text_.Sample({}, static_cast<uint64_t>(value));
  }

  // One sample of each version that has a queue.
  template <typename T>
  void ForEach(std::string_view name, MetricType type, std::string_view help,
               T (*value)(const SchedulerStats&)) {
    text_.Family(name, type, help);
    for (const VersionWork& work : scrape_.work) text_.Sample(work.Labels(), value(*work.stats));
  }
  void Histograms(std::string_view name, std::string_view help, absl::Span<const double> bounds,
                  Histogram SignatureWork::*histogram) {
    text_.Family(name, MetricType::kHistogram, help);
    for (const VersionWork& work : scrape_.work)
      for (const SignatureWork& one : work.stats->work)
        text_.Sample(work.Labels({{"signature", one.name}}), (one.*histogram).Between(bounds));
  }

  void Server();
  void Connections();
  void OtherCalls();
  void Configuration();
  void Devices();
  void Models();
  void Requests();
  void Refusals();
  void Queues();
  void Runs();

  const Scrape& scrape_;
  const ApiContext& context_;
  Exposition& text_;
};

void OwnWriter::Server() {
  text_.Family("floe_build_info", kGauge, "1, labelled with the version of floed.");
  text_.Sample({{"version", context_.server.version}}, 1.0);
  if (context_.server.started != TimePoint::min())
    Gauge("floe_uptime_seconds", "Time since the start.",
          Seconds(Clock::Steady().Now() - context_.server.started));
  const auto health = context_.health.Get("");
  Gauge("floe_ready", "1 while the server is ready, as its health says.",
        health == ServingStatus::kServing ? 1.0 : 0.0);
  Gauge("floe_cpus", "CPUs that the server may use.", int64_t{FindUsableCpus().count()});
  if (context_.memory == nullptr) return;
  Gauge("floe_memory_bytes", "Memory of models and requests that counts in memory_limit.",
        context_.memory->in_use());
  Gauge("floe_memory_limit_bytes", "memory_limit; 0: none.", context_.memory->limit());
}

void OwnWriter::Connections() {
  const auto by_cause = [this](std::string_view name, std::string_view help,
                               const CountsByCause& counts) {
    text_.Family(name, kCounter, help);
    for (const auto& [cause, count] : counts)
      text_.Sample({{"cause", cause}}, static_cast<uint64_t>(count));
  };
  if (context_.server.connections) {
    const ConnectionCounts connections = context_.server.connections();
    Gauge("floe_connections", "Open connections.", connections.open);
    Gauge("floe_connections_limit", "Most connections that are open at once.", connections.limit);
    Counter("floe_connections_accepted_total", "Connections that were accepted.",
            connections.accepted);
    by_cause("floe_connections_refused_total",
             "Connections that were closed at once, beyond a limit.", connections.refused_by);
    by_cause("floe_connections_ended_total", "Connections that ended.", connections.ended_by);
  }
  if (context_.server.calls) {
    const CallCounts calls = context_.server.calls();
    Gauge("floe_calls", "gRPC calls in progress.", calls.calls);
    Gauge("floe_call_bytes", "Bytes of their requests and of replies that are not sent yet.",
          calls.bytes);
    by_cause("floe_calls_refused_total", "gRPC calls that were refused, beyond a limit.",
             calls.refused_by);
  }
  if (context_.server.auth) {
    const AuthInfo auth = context_.server.auth();
    by_cause("floe_auth_refused_total", "Calls that their callers may not make, by cause.",
             auth.refused_by);
    Gauge("floe_auth_tokens", "Tokens that have not expired.", auth.tokens);
    Gauge("floe_auth_ok", "0 when the file of tokens has newer content that cannot be used.",
          auth.error.empty() ? 1.0 : 0.0);
  }
  if (!context_.server.tls) return;
  const TlsInfo tls = context_.server.tls();
  Gauge("floe_certificate_expiry_timestamp_seconds",
        "When the certificate in use expires, in seconds since 1970.", tls.not_after);
  Gauge("floe_certificate_ok", "0 when newer files cannot be used, or the certificate has expired.",
        tls.error.empty() ? 1.0 : 0.0);
}

void OwnWriter::OtherCalls() {
  if (context_.server.dropped_log_lines) {
    text_.Family("floe_log_dropped_total", kCounter,
                 "Lines of the access log, and records of request logs, that were not written.");
    for (const auto& [log, count] : context_.server.dropped_log_lines())
      text_.Sample({{"log", log}}, static_cast<uint64_t>(count));
  }
  if (context_.watch == nullptr) return;
  const auto write = [this](std::string_view label, std::string_view code) {
    return [this, label, code](const std::string& name, const std::string& value, uint64_t count) {
      text_.Sample({{label, name}, {code, value}}, count);
    };
  };
  text_.Family("floe_rpcs_total", kCounter,
               "RPCs that are no inferences, and those that reached no model, by status code.");
  context_.watch->ForEachRpc(write("method", "code"));
  text_.Family("floe_http_requests_total", kCounter,
               "The same of requests over HTTP, by route and status.");
  context_.watch->ForEachRoute(write("route", "status"));
}

void OwnWriter::Configuration() {
  const ConfigState config = context_.registry.CurrentConfig();
  Gauge("floe_config_generation", "Generation of the active configuration.", config.generation);
  Gauge("floe_config_last_reload_successful", "0 when the last reload failed.",
        config.last_error.ok() ? 1.0 : 0.0);
  const AbandonedWork abandoned = context_.registry.Abandoned();
  Gauge("floe_abandoned_versions", "Versions unloaded while runs of them would not end.",
        abandoned.versions);
  Gauge("floe_abandoned_threads", "Threads in those runs.", abandoned.threads);
}

void OwnWriter::Devices() {
  const BackendStatus backend = context_.registry.Backend();
  const auto each = [&](std::string_view name, MetricType type, std::string_view help,
                        double (*value)(const DeviceStatus&)) {
    text_.Family(name, type, help);
    for (const DeviceStatus& device : backend.devices)
      text_.Sample({{"device", device.device}}, value(device));
  };
  each(
      "floe_device_ok", kGauge, "0 when the GPU is lost.",
      +[](const DeviceStatus& device) { return device.error.ok() ? 1.0 : 0.0; });
  each(
      "floe_device_memory_bytes", kGauge, "Memory of the GPU for models.",
      +[](const DeviceStatus& device) { return static_cast<double>(device.in_use_bytes); });
  each(
      "floe_device_memory_limit_bytes", kGauge, "gpu_memory_limit; 0: none.",
      +[](const DeviceStatus& device) { return static_cast<double>(device.limit_bytes); });
  each(
      "floe_device_runs_total", kCounter, "Runs on the GPU.",
      +[](const DeviceStatus& device) { return static_cast<double>(device.runs); });
  each(
      "floe_device_failed_runs_total", kCounter, "Runs that the GPU failed.",
      +[](const DeviceStatus& device) { return static_cast<double>(device.failed_runs); });
}

void OwnWriter::Models() {
  text_.Family("floe_model_serving", kGauge, "1 while the model answers, as its health says.");
  for (const ModelStats& model : scrape_.models) {
    const auto health = context_.health.Get(absl::StrCat("model/", model.name));
    if (health.has_value())
      text_.Sample({{"model", model.name}}, *health == ServingStatus::kServing ? 1.0 : 0.0);
  }
  text_.Family("floe_model_versions", kGauge, "Versions by state.");
  for (const ModelStats& model : scrape_.models) {
    std::map<VersionState, uint64_t> by_state;
    for (const VersionState state :
         {VersionState::kStart, VersionState::kLoading, VersionState::kAvailable,
          VersionState::kUnloading, VersionState::kEnd})
      by_state[state] = 0;
    for (const VersionStats& version : model.versions) ++by_state[version.status.state];
    for (const auto& [state, count] : by_state)
      text_.Sample({{"model", model.name}, {"state", VersionStateName(state)}}, count);
  }
  text_.Family("floe_version_memory_bytes", kGauge,
               "Memory of a version's weights and plans, as it was loaded.");
  const auto each = [this](auto value) {
    for (const ModelStats& model : scrape_.models)
      for (const VersionStats& version : model.versions)
        if (const double number = value(version); number != 0)
          text_.Sample({{"model", model.name}, {"version", std::to_string(version.status.version)}},
                       number);
  };
  each([](const VersionStats& version) { return static_cast<double>(version.memory_bytes); });
  text_.Family("floe_version_loading_seconds", kGauge, "How long the load under way has taken.");
  each([](const VersionStats& version) { return Seconds(version.loading); });
}

void OwnWriter::Requests() {
  text_.Family("floe_requests_total", kCounter,
               "Requests that were answered, by gRPC status code.");
  const auto each = [this](auto sample) {
    for (const VersionWork& work : scrape_.work)
      for (const RequestCount& count : work.stats->requests) {
        const DoorName door = NameOf(count.door);
        sample(work.Labels({{"signature", count.signature},
                            {"method", door.method},
                            {"protocol", door.protocol}}),
               count);
      }
  };
  each([this](MetricLabels labels, const RequestCount& count) {
    labels.emplace_back();
    for (size_t code = 0; code < kStatusCodes; ++code) {
      if (code != 0 && count.by_code[code] == 0) continue;
      const std::string name = absl::StatusCodeToString(static_cast<absl::StatusCode>(code));
      labels.back() = {"code", name};
      text_.Sample(labels, count.by_code[code]);
    }
  });
  text_.Family("floe_request_seconds", MetricType::kHistogram,
               "How long requests took that ended with OK, from their arrival to the answer.");
  each([this](const MetricLabels& labels, const RequestCount& count) {
    if (count.signature.empty()) return;  // they were refused
    text_.Sample(labels, count.seconds.Between(kSecondsBounds));
  });
  Refusals();
}

void OwnWriter::Refusals() {
  text_.Family("floe_requests_refused_total", kCounter, "Requests that were not run, by cause.");
  constexpr std::pair<Outcome, std::string_view> kCauses[] = {
      {Outcome::kRefusedFull, "queue_full"},  {Outcome::kRefusedLate, "too_late"},
      {Outcome::kRefusedStopped, "stopping"}, {Outcome::kExpired, "deadline"},
      {Outcome::kCancelled, "cancelled"},
  };
  for (const VersionWork& work : scrape_.work)
    for (const auto& [outcome, cause] : kCauses)
      text_.Sample(work.Labels({{"cause", cause}}), (*work.stats)[outcome]);
}

void OwnWriter::Queues() {
  ForEach(
      "floe_queue_requests", kGauge, "Requests that wait.",
      +[](const SchedulerStats& stats) { return static_cast<double>(stats.progress.queued); });
  ForEach(
      "floe_queue_rows", kGauge, "Rows that wait.",
      +[](const SchedulerStats& stats) { return static_cast<double>(stats.queued_rows); });
  ForEach(
      "floe_queue_bytes", kGauge, "Bytes of the inputs that wait.",
      +[](const SchedulerStats& stats) { return static_cast<double>(stats.queued_bytes); });
  ForEach(
      "floe_queue_oldest_seconds", kGauge, "How long the oldest request has waited.",
      +[](const SchedulerStats& stats) { return Seconds(stats.oldest_wait); });
  Histograms("floe_queue_wait_seconds", "How long requests waited for their runs.", kSecondsBounds,
             &SignatureWork::queue_wait);
}

void OwnWriter::Runs() {
  Histograms("floe_run_seconds", "How long runs took.", kSecondsBounds, &SignatureWork::run);
  Histograms("floe_batch_rows", "Rows of runs.", kRowsBounds, &SignatureWork::batch_rows);
  ForEach(
      "floe_padded_rows_total", kCounter, "Rows that were computed beyond those asked for.",
      +[](const SchedulerStats& stats) { return stats.batches.padded_rows; });
  ForEach(
      "floe_inline_runs_total", kCounter, "Runs on the thread that brought the request.",
      +[](const SchedulerStats& stats) { return stats.inline_runs; });
  ForEach(
      "floe_batch_reruns_total", kCounter, "Batches that failed and ran again in halves.",
      +[](const SchedulerStats& stats) { return stats.reruns; });
  ForEach(
      "floe_stuck_runs_total", kCounter, "Runs that took far longer than others.",
      +[](const SchedulerStats& stats) { return stats.stuck_runs; });
  ForEach(
      "floe_workers", kGauge, "Threads that run batches.",
      +[](const SchedulerStats& stats) { return static_cast<double>(stats.progress.workers); });
  ForEach(
      "floe_runs_in_progress", kGauge, "Runs under way.",
      +[](const SchedulerStats& stats) { return static_cast<double>(stats.progress.runs.size()); });
}

}  // namespace

MetricNames MetricNamesOf(const std::vector<std::string>& words) {
  const auto has = [&](const char* word) { return absl::c_linear_search(words, word); };
  return {has("tfserving"), has("triton"), has("kserve")};
}

std::string ServerMetrics(const ApiContext& context, MetricFormat format,
                          const MetricNames& names) {
  const Scrape scrape(context);
  Exposition text(format);
  WriteProcessMetrics(&text);
  OwnWriter(scrape, &text).Write();
  if (names.tfserving) WriteTfServingMetrics(scrape, &text);
  if (names.triton) WriteTritonMetrics(scrape, &text);
  if (names.kserve) WriteKserveMetrics(scrape, &text);
  return std::move(text).Finish();
}

}  // namespace floe::server
