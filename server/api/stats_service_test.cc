#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "floe/admin.pb.h"
#include "server/api/fakes_for_test.h"
#include "server/api/methods.h"

namespace floe::server {
namespace {

using testing::HasSubstr;

constexpr char kGetStats[] = "/floe.Admin/GetStats";
constexpr char kSetLogLevel[] = "/floe.Admin/SetLogLevel";

class StatsService : public testing::Test {
 protected:
  StatsService() {
    registry_.models["a"] = nullptr;
    registry_.config.generation = 3;
    VersionStats served{{2, VersionState::kAvailable, {}}};
    served.memory_bytes = 1000;
    SchedulerStats& work = served.scheduler.emplace();
    work.by_code[0] = 90;
    work.by_code[static_cast<size_t>(absl::StatusCode::kResourceExhausted)] = 7;
    work[Outcome::kRefusedFull] = 7;
    work.progress.queued = 5;
    work.progress.workers = 4;
    work.batches.batches = 10;
    work.batches.rows = 45;
    work.run = {10, std::chrono::milliseconds(2), std::chrono::milliseconds(9)};
    work.estimates = {{"serving_default", 32, 250, "node 'n' mixes rows"}};
    work.progress.runs = {
        {.started = Clock::Steady().Now(), .stuck = false, .what = "what goes on"},
        {.started = Clock::Steady().Now() - std::chrono::seconds(30),
         .stuck = true,
         .what = "serving_default [1,4], 1 rows, at node 'x' (Neg)"}};
    served.place = {.device = "cuda:1",
                    .why_cpu = "",
                    .error = absl::UnavailableError("cuda:1 is lost"),
                    .islands = {{"island 1", 12}},
                    .device_bytes = 700,
                    .answered_by_cpu = 3};
    DeviceStatus device;
    device.device = "cuda:1";
    device.name = "GPU";
    device.major = 9;
    device.limit_bytes = 5000;
    device.in_use_bytes = 800;
    device.failed_runs = 4;
    registry_.backend = {"cuda", "CUDA 13.0, driver 13.1", "", {device}};
    VersionStats loading{{3, VersionState::kLoading, {}}};
    loading.load_stage = "warm-up";
    loading.loading = std::chrono::seconds(7);
    registry_.stats = {{"a", {loading, served}, {{"stable", 2}}}};
    health_.Set("model/a", ServingStatus::kServing);
    Register();
  }

  void Register() {
    table_ = MethodTable();
    ApiContext context{registry_, health_};
    context.config = &config_;
    context.memory = &memory_;
    context.server.version = "1.2.3";
    context.server.connections = [] { return ConnectionCounts{6, 100, 1}; };
    context.server.tls = [] { return TlsInfo{"CN=a", 1234, "too old"}; };
    context.server.auth = [] { return AuthInfo{3, "no file", {{"role", 2}, {"token", 5}}}; };
    context.server.log_level = [this] { return level_; };
    context.server.set_log_level = [this](const std::string& level, const std::string& who) {
      if (level == "loud") return absl::InvalidArgumentError("no log level 'loud'");
      level_ = level;
      changed_by_ = who;
      return absl::OkStatus();
    };
    RegisterApi(context, &table_);
  }

  FakeRegistry registry_;
  HealthState health_;
  ServerConfig config_;
  MemoryBudget memory_{1 << 20};
  std::string level_ = "info", changed_by_;
  MethodTable table_;
};

TEST_F(StatsService, ShowsTheServerAndEveryVersion) {
  const auto responder = CallUnary(table_, kGetStats, "");
  ASSERT_TRUE(responder->status.ok()) << responder->status;
  floe::GetStatsResponse stats;
  ASSERT_TRUE(stats.ParseFromString(responder->messages.at(0)));
  EXPECT_EQ(stats.server().version(), "1.2.3");
  EXPECT_EQ(stats.server().workers(), 4);
  EXPECT_EQ(stats.server().memory_limit_bytes(), 1 << 20);
  EXPECT_EQ(stats.server().connections(), 6);
  EXPECT_EQ(stats.server().connection_limit(), 100);
  EXPECT_EQ(stats.server().config_generation(), 3);
  EXPECT_EQ(stats.server().tls().subject(), "CN=a");
  EXPECT_EQ(stats.server().tls().not_after_seconds(), 1234);
  EXPECT_EQ(stats.server().tls().error(), "too old");
  EXPECT_EQ(stats.server().auth().tokens(), 3);
  EXPECT_EQ(stats.server().auth().error(), "no file");
  EXPECT_EQ(stats.server().auth().refused(), 7);
  EXPECT_GT(stats.server().cpus(), 0);
  EXPECT_GT(stats.server().open_file_limit(), 0);
  ASSERT_EQ(stats.models_size(), 1);
  EXPECT_TRUE(stats.models(0).serving());
  EXPECT_EQ(stats.models(0).labels().at("stable"), 2);
  ASSERT_EQ(stats.models(0).versions_size(), 2);
  const floe::VersionStats& loading = stats.models(0).versions(0);
  EXPECT_EQ(loading.load_stage(), "warm-up");
  EXPECT_EQ(loading.loading_seconds(), 7);
  const floe::VersionStats& served = stats.models(0).versions(1);
  EXPECT_EQ(served.state(), tensorflow::serving::ModelVersionStatus::AVAILABLE);
  ASSERT_EQ(served.requests_size(), 2);
  EXPECT_EQ(served.place().device(), "cuda:1");
  EXPECT_EQ(served.place().error(), "cuda:1 is lost");
  ASSERT_EQ(served.place().islands_size(), 1);
  EXPECT_EQ(served.place().islands(0).nodes(), 12);
  EXPECT_EQ(served.place().device_bytes(), 700);
  EXPECT_EQ(served.place().answered_by_cpu(), 3);
  EXPECT_EQ(stats.server().backend().versions(), "CUDA 13.0, driver 13.1");
  ASSERT_EQ(stats.server().backend().devices_size(), 1);
  EXPECT_EQ(stats.server().backend().devices(0).compute_capability(), "9.0");
  EXPECT_EQ(stats.server().backend().devices(0).memory_bytes(), 800);
  EXPECT_EQ(stats.server().backend().devices(0).failed_runs(), 4);
  EXPECT_EQ(served.requests(0).code(), "OK");
  EXPECT_EQ(served.requests(0).count(), 90u);
  EXPECT_EQ(served.requests(1).code(), "RESOURCE_EXHAUSTED");
  EXPECT_EQ(served.requests(1).count(), 7u);
  EXPECT_EQ(served.queued_requests(), 5);
  EXPECT_EQ(served.mean_batch_rows(), 4.5);
  EXPECT_EQ(served.run().p50_ms(), 2);
  EXPECT_EQ(served.run().p99_ms(), 9);
  ASSERT_EQ(served.signatures_size(), 1);
  EXPECT_EQ(served.signatures(0).max_batch_rows(), 32);
  EXPECT_EQ(served.signatures(0).why_not_batchable(), "node 'n' mixes rows");
  ASSERT_EQ(served.stuck_runs_size(), 1);
  EXPECT_GE(served.stuck_runs(0).seconds(), 30);
  EXPECT_THAT(served.stuck_runs(0).what(), HasSubstr("at node 'x' (Neg)"));
}

TEST_F(StatsService, AnUnknownModelIsNotFound) {
  floe::GetStatsRequest request;
  request.set_model("b");
  const auto responder = CallUnary(table_, kGetStats, request.SerializeAsString());
  EXPECT_EQ(responder->status.code(), absl::StatusCode::kNotFound);
}

TEST_F(StatsService, TheLogLevelChanges) {
  floe::SetLogLevelRequest request;
  request.set_level("debug");
  auto responder = CallUnary(table_, kSetLogLevel, request.SerializeAsString());
  ASSERT_TRUE(responder->status.ok()) << responder->status;
  floe::SetLogLevelResponse response;
  ASSERT_TRUE(response.ParseFromString(responder->messages.at(0)));
  EXPECT_EQ(response.level(), "debug");
  request.set_level("loud");
  responder = CallUnary(table_, kSetLogLevel, request.SerializeAsString());
  EXPECT_EQ(responder->status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(level_, "debug");
  EXPECT_EQ(changed_by_, "RPC from this process");
}

TEST_F(StatsService, OthersThanTheMachinesOwnAreRefusedBeforeTheirMessage) {
  for (const char* path : {kGetStats, kSetLogLevel}) {
    const auto responder = CallUnary(table_, path, "no message of the kind", {}, /*local=*/false);
    EXPECT_EQ(responder->status.code(), absl::StatusCode::kPermissionDenied) << path;
  }
}

}  // namespace
}  // namespace floe::server
