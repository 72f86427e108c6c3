#include "server/metrics/server_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/api/fakes_for_test.h"

namespace floe::server {
namespace {

using testing::HasSubstr;
using testing::Not;

class ServerMetricsTest : public testing::Test {
 protected:
  ServerMetricsTest() {
    registry_.config.generation = 3;
    VersionStats served{{2, VersionState::kAvailable, {}}};
    served.memory_bytes = 1000;
    FillWork(&served.scheduler.emplace());
    VersionStats loading{{3, VersionState::kLoading, {}}};
    loading.loading = std::chrono::milliseconds(1500);
    registry_.stats = {{"a", {loading, served}, {}}};
    registry_.models["a"] = nullptr;
    registry_.backend.devices.emplace_back().device = "cuda:0";
    health_.Set("model/a", ServingStatus::kServing);
    health_.Set("model/b", ServingStatus::kServing);
    context_.server.version = "1.2.3";
    context_.server.connections = [] {
      return ConnectionCounts{6, 100, 1, 40, {{"limit", 1}, {"address_limit", 0}}, {{"idle", 30}}};
    };
    context_.server.calls = [] { return CallCounts{2, 300, {{"memory", 5}}}; };
    context_.server.tls = [this] { return tls_; };
    context_.server.auth = [this] { return AuthInfo{4, auth_error_, {{"role", 6}}}; };
    context_.memory = &memory_;
  }

  static void FillWork(SchedulerStats* work) {
    work->by_code[0] = 90;
    work->by_code[static_cast<size_t>(absl::StatusCode::kUnavailable)] = 7;
    work->by_code[static_cast<size_t>(absl::StatusCode::kInvalidArgument)] = 2;
    (*work)[Outcome::kRefusedFull] = 6;
    work->progress.queued = 5;
    work->progress.workers = 4;
    work->batches.batches = 11;
    work->batches.rows = 33;
    SignatureWork& runs = work->work.emplace_back();
    runs.name = "serving_default";
    runs.queue_wait.Add(0.0002);
    runs.run.Add(0.3);
    runs.batch_rows.Add(3);
    RequestCount& grpc = work->requests.emplace_back();
    grpc.signature = "serving_default";
    grpc.by_code[0] = 80;
    grpc.by_code[static_cast<size_t>(absl::StatusCode::kUnavailable)] = 7;
    grpc.seconds.Add(0.004);
    grpc.run_seconds.Add(0.003);
    RequestCount& http = work->requests.emplace_back();
    http.signature = "serving_default";
    http.door = Door::kHttpPredict;
    http.by_code[0] = 10;
    RequestCount& unknown = work->requests.emplace_back();
    unknown.by_code[static_cast<size_t>(absl::StatusCode::kInvalidArgument)] = 2;
  }

  std::string Text(const MetricNames& names = {},
                   MetricFormat format = MetricFormat::kPrometheus) const {
    return ServerMetrics(context_, format, names);
  }

  FakeRegistry registry_;
  HealthState health_;
  std::string auth_error_;
  TlsInfo tls_{"CN=floe", 1893456000, ""};
  MemoryBudget memory_{1 << 20};
  ApiContext context_{registry_, health_};
};

TEST_F(ServerMetricsTest, ShowsTheServer) {
  const std::string text = Text();
  for (const char* line :
       {"floe_build_info{version=\"1.2.3\"} 1\n", "floe_ready 0\n", "floe_connections 6\n",
        "floe_connections_limit 100\n", "floe_connections_accepted_total 40\n",
        "floe_connections_refused_total{cause=\"limit\"} 1\n",
        "floe_connections_ended_total{cause=\"idle\"} 30\n", "floe_calls 2\n",
        "floe_call_bytes 300\n", "floe_calls_refused_total{cause=\"memory\"} 5\n",
        "floe_certificate_expiry_timestamp_seconds 1893456000\n", "floe_certificate_ok 1\n",
        "floe_auth_refused_total{cause=\"role\"} 6\n", "floe_auth_tokens 4\n", "floe_auth_ok 1\n",
        "floe_config_generation 3\n", "floe_config_last_reload_successful 1\n",
        "floe_memory_limit_bytes 1048576\n", "floe_device_ok{device=\"cuda:0\"} 1\n"})
    EXPECT_THAT(text, HasSubstr(line));
}

TEST_F(ServerMetricsTest, ShowsWhatIsWrong) {
  registry_.config.last_error = absl::InvalidArgumentError("no");
  tls_.error = "the certificate expired";
  auth_error_ = "tokens:1: nonsense";
  registry_.backend.devices[0].error = absl::UnavailableError("lost");
  health_.Set("", ServingStatus::kServing);
  const std::string text = Text();
  for (const char* line :
       {"floe_config_last_reload_successful 0\n", "floe_certificate_ok 0\n", "floe_auth_ok 0\n",
        "floe_device_ok{device=\"cuda:0\"} 0\n", "floe_ready 1\n"})
    EXPECT_THAT(text, HasSubstr(line));
}

TEST_F(ServerMetricsTest, ShowsEachVersion) {
  const std::string text = Text();
  for (const char* line :
       {"floe_model_serving{model=\"a\"} 1\n",
        "floe_model_versions{model=\"a\",state=\"AVAILABLE\"} 1\n",
        "floe_model_versions{model=\"a\",state=\"LOADING\"} 1\n",
        "floe_model_versions{model=\"a\",state=\"END\"} 0\n",
        "floe_version_memory_bytes{model=\"a\",version=\"2\"} 1000\n",
        "floe_version_loading_seconds{model=\"a\",version=\"3\"} 1.5\n",
        "floe_requests_refused_total{model=\"a\",version=\"2\",cause=\"queue_full\"} 6\n",
        "floe_queue_requests{model=\"a\",version=\"2\"} 5\n",
        "floe_workers{model=\"a\",version=\"2\"} 4\n"})
    EXPECT_THAT(text, HasSubstr(line));
}

TEST_F(ServerMetricsTest, ShowsEachSignatureAndDoor) {
  const std::string text = Text();
  const std::string one = "{model=\"a\",version=\"2\",signature=\"serving_default\"";
  for (const std::string& line : std::vector<std::string>{
           "floe_requests_total" + one + ",method=\"Predict\",protocol=\"grpc\",code=\"OK\"} 80\n",
           "floe_requests_total" + one +
               ",method=\"Predict\",protocol=\"grpc\",code=\"UNAVAILABLE\"} 7\n",
           "floe_requests_total" + one + ",method=\"Predict\",protocol=\"http\",code=\"OK\"} 10\n",
           "floe_requests_total{model=\"a\",version=\"2\",signature=\"\",method=\"Predict\","
           "protocol=\"grpc\",code=\"INVALID_ARGUMENT\"} 2\n",
           "floe_request_seconds_bucket" + one +
               ",method=\"Predict\",protocol=\"grpc\",le=\"0.005\"} 1\n",
           "floe_queue_wait_seconds_bucket" + one + ",le=\"0.0001\"} 0\n",
           "floe_queue_wait_seconds_bucket" + one + ",le=\"0.00025\"} 1\n",
           "floe_run_seconds_sum" + one + "} 0.3\n",
           "floe_batch_rows_bucket" + one + ",le=\"4\"} 1\n"})
    EXPECT_THAT(text, HasSubstr(line));
}

TEST_F(ServerMetricsTest, LabelsComeFromConfiguredModelsAlone) {
  EXPECT_THAT(Text(), Not(HasSubstr("model=\"b\"")));
}

TEST_F(ServerMetricsTest, HasNamesOfOtherServersWhereAsked) {
  EXPECT_THAT(Text(), Not(HasSubstr("tensorflow")));
  EXPECT_THAT(Text(), Not(HasSubstr("nv_inference")));
  const std::string tfserving = Text(MetricNamesOf({"tfserving"}));
  const std::string api = "{model_name=\"a\",API=\"Predict\",entrypoint=\"GRPC\"";
  for (const std::string& line : std::vector<std::string>{
           ":tensorflow:serving:request_count{model_name=\"a\",status=\"UNAVAILABLE\"} 7\n",
           ":tensorflow:serving:request_latency_bucket" + api + ",le=\"3570.47\"} 0\n",
           ":tensorflow:serving:request_latency_bucket" + api + ",le=\"6426.84\"} 1\n",
           ":tensorflow:serving:request_latency_sum" + api + "} 4000\n",
           ":tensorflow:serving:runtime_latency_count{model_name=\"a\",API=\"Predict\","
           "runtime=\"floe\"} 1\n",
           ":tensorflow:serving:batching_session:queuing_latency_bucket{thread_pool_name=\"a\","
           "le=\"207.36\"} 1\n",
           ":tensorflow:serving:batching_session:wrapped_run_count 11\n"})
    EXPECT_THAT(tfserving, HasSubstr(line));
  EXPECT_THAT(tfserving, Not(HasSubstr("nv_inference")));
  const std::string others = Text(MetricNamesOf({"triton", "kserve"}));
  const std::string version = "{model=\"a\",version=\"2\"";
  for (const std::string& line : std::vector<std::string>{
           "nv_inference_request_success" + version + "} 90\n",
           "nv_inference_request_failure" + version + ",reason=\"REJECTED\"} 7\n",
           "nv_inference_request_failure" + version + ",reason=\"OTHER\"} 2\n",
           "nv_inference_count" + version + "} 33\n",
           "nv_inference_exec_count" + version + "} 11\n",
           "nv_inference_pending_request_count" + version + "} 5\n",
           "nv_inference_request_duration_us" + version + "} 4000\n",
           "nv_inference_queue_duration_us" + version + "} 200\n",
           "nv_inference_compute_infer_duration_us" + version + "} 3000\n",
           "request_predict_seconds_bucket{model_name=\"a\",le=\"0.005\"} 1\n"})
    EXPECT_THAT(others, HasSubstr(line));
}

// OpenMetrics has no counters without "_total".
TEST_F(ServerMetricsTest, CountersOfOtherServersAreOfUnknownTypeInOpenMetrics) {
  const std::string text = Text(MetricNamesOf({"triton"}), MetricFormat::kOpenMetrics);
  EXPECT_THAT(text, HasSubstr("# TYPE nv_inference_count unknown\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE floe_requests counter\n"));
  EXPECT_THAT(text, testing::EndsWith("# EOF\n"));
}

}  // namespace
}  // namespace floe::server
