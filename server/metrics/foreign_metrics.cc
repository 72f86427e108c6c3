// Sums over what floe tells apart and the other server does not: versions, signatures.
#include "server/metrics/foreign_metrics.h"

#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace floe::server {
namespace {

template <typename Key>
using HistogramsBy = std::map<Key, Histogram>;

template <typename Key>
void AddTo(HistogramsBy<Key>* all, const Key& key, const Histogram& histogram) {
  all->try_emplace(key, histogram.bounds()).first->second.Add(histogram);
}

uint64_t Micros(double seconds) { return static_cast<uint64_t>(seconds * kMicrosPerSecond); }

Histogram TfServingTimes(const Histogram& seconds) {
  return seconds.Between(kTfServingSeconds).InUnit(kTfServingMicros, kMicrosPerSecond);
}

}  // namespace

void WriteTfServingMetrics(const Scrape& scrape, Exposition* text) {
  using ByApi = std::tuple<std::string_view, std::string_view, std::string_view>;
  std::map<std::pair<std::string_view, size_t>, uint64_t> counts;
  HistogramsBy<ByApi> requests, runs;
  HistogramsBy<std::string_view> waits;
  uint64_t batches = 0;
  for (const VersionWork& work : scrape.work) {
    batches += work.stats->batches.batches;
    for (size_t code = 0; code < kStatusCodes; ++code)
      if (work.stats->by_code[code] > 0) counts[{work.model, code}] += work.stats->by_code[code];
    for (const RequestCount& count : work.stats->requests) {
      const DoorName door = NameOf(count.door);
      const std::string_view entry = door.protocol == "http" ? "REST" : "GRPC";
      AddTo(&requests, ByApi(work.model, door.method, entry), count.seconds);
      AddTo(&runs, ByApi(work.model, door.method, "floe"), count.run_seconds);
    }
    for (const SignatureWork& one : work.stats->work) AddTo(&waits, work.model, one.queue_wait);
  }
  text->Family(":tensorflow:serving:request_count", MetricType::kCounter,
               "Requests, by the name of their status.");
  for (const auto& [key, count] : counts)
    text->Sample({{"model_name", key.first},
                  {"status", absl::StatusCodeToString(static_cast<absl::StatusCode>(key.second))}},
                 count);
  text->Family(":tensorflow:serving:request_latency", MetricType::kHistogram,
               "Microseconds that requests took that ended with OK.");
  for (const auto& [key, times] : requests)
    text->Sample({{"model_name", std::get<0>(key)},
                  {"API", std::get<1>(key)},
                  {"entrypoint", std::get<2>(key)}},
                 TfServingTimes(times));
  text->Family(":tensorflow:serving:runtime_latency", MetricType::kHistogram,
               "Microseconds of their runs.");
  for (const auto& [key, times] : runs)
    text->Sample({{"model_name", std::get<0>(key)},
                  {"API", std::get<1>(key)},
                  {"runtime", std::get<2>(key)}},
                 TfServingTimes(times));
  text->Family(":tensorflow:serving:batching_session:queuing_latency", MetricType::kHistogram,
               "Microseconds that requests waited for their runs.");
  for (const auto& [model, times] : waits)
    text->Sample(
        {{"thread_pool_name", model}},
        times.Between(kTfServingQueueSeconds).InUnit(kTfServingQueueMicros, kMicrosPerSecond));
  text->Family(":tensorflow:serving:batching_session:wrapped_run_count", MetricType::kCounter,
               "Runs.");
  text->Sample({}, batches);
}

void WriteTritonMetrics(const Scrape& scrape, Exposition* text) {
  const auto each = [&](std::string_view name, MetricType type, std::string_view help,
                        uint64_t (*value)(const SchedulerStats&)) {
    text->Family(name, type, help);
    for (const VersionWork& work : scrape.work) text->Sample(work.Labels(), value(*work.stats));
  };
  constexpr MetricType kCounter = MetricType::kCounter;
  each(
      "nv_inference_request_success", kCounter, "Requests that ended with OK.",
      +[](const SchedulerStats& stats) { return stats.by_code[0]; });
  text->Family("nv_inference_request_failure", kCounter, "Requests that failed, by reason.");
  for (const VersionWork& work : scrape.work) {
    std::map<std::string_view, uint64_t> reasons = {
        {"REJECTED", 0}, {"CANCELED", 0}, {"BACKEND", 0}, {"OTHER", 0}};
    const std::map<absl::StatusCode, std::string_view> reason_of = {
        {absl::StatusCode::kResourceExhausted, "REJECTED"},
        {absl::StatusCode::kUnavailable, "REJECTED"},
        {absl::StatusCode::kDeadlineExceeded, "REJECTED"},
        {absl::StatusCode::kCancelled, "CANCELED"},
        {absl::StatusCode::kInternal, "BACKEND"}};
    for (size_t code = 1; code < kStatusCodes; ++code) {
      const auto reason = reason_of.find(static_cast<absl::StatusCode>(code));
      reasons[reason == reason_of.end() ? "OTHER" : reason->second] += work.stats->by_code[code];
    }
    for (const auto& [reason, count] : reasons)
      text->Sample(work.Labels({{"reason", reason}}), count);
  }
  each(
      "nv_inference_count", kCounter, "Rows that were computed for requests.",
      +[](const SchedulerStats& stats) { return stats.batches.rows; });
  each(
      "nv_inference_exec_count", kCounter, "Runs.",
      +[](const SchedulerStats& stats) { return stats.batches.batches; });
  each(
      "nv_inference_pending_request_count", MetricType::kGauge, "Requests that wait.",
      +[](const SchedulerStats& stats) { return uint64_t{stats.progress.queued}; });
  each(
      "nv_inference_request_duration_us", kCounter,
      "Microseconds that requests took that ended with OK.", +[](const SchedulerStats& stats) {
        double seconds = 0;
        for (const RequestCount& count : stats.requests) seconds += count.seconds.sum();
        return Micros(seconds);
      });
  each(
      "nv_inference_queue_duration_us", kCounter,
      "Microseconds that requests waited for their runs.", +[](const SchedulerStats& stats) {
        double seconds = 0;
        for (const SignatureWork& work : stats.work) seconds += work.queue_wait.sum();
        return Micros(seconds);
      });
  each(
      "nv_inference_compute_infer_duration_us", kCounter,
      "Microseconds of the runs of requests that ended with OK.", +[](const SchedulerStats& stats) {
        double seconds = 0;
        for (const RequestCount& count : stats.requests) seconds += count.run_seconds.sum();
        return Micros(seconds);
      });
}

void WriteKserveMetrics(const Scrape& scrape, Exposition* text) {
  HistogramsBy<std::string_view> runs;
  for (const VersionWork& work : scrape.work)
    for (const RequestCount& count : work.stats->requests)
      AddTo(&runs, work.model, count.run_seconds);
  text->Family("request_predict_seconds", MetricType::kHistogram,
               "Runs of requests that ended with OK.");
  for (const auto& [model, times] : runs)
    text->Sample({{"model_name", model}}, times.Between(kSecondsBounds));
}

}  // namespace floe::server
