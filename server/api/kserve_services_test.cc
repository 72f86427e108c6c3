// KServe v2 beside ModelInfer: readiness, metadata, configuration, statistics, the repository.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/api/kserve_for_test.h"

namespace floe::server {
namespace {

namespace kserve_pb = inference;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class KServeServices : public KServe {
 protected:
  template <typename Response, typename Request>
  Response Ask(const std::string& method, const Request& request) {
    const auto responder = CallUnary(table_, InferPath(method), request.SerializeAsString());
    EXPECT_TRUE(responder->status.ok()) << responder->status;
    Response response;
    EXPECT_EQ(responder->messages.size(), 1u);
    if (responder->messages.size() == 1) {
      EXPECT_TRUE(response.ParseFromString(responder->messages[0]));
    }
    return response;
  }
  template <typename Request>
  std::string Refusal(const std::string& method, const Request& request, bool local = true) {
    return CallUnary(table_, InferPath(method), request.SerializeAsString(), {}, local)
        ->status.ToString();
  }

  bool ModelReady(const std::string& name, const std::string& version = "") {
    kserve_pb::ModelReadyRequest request;
    request.set_name(name);
    request.set_version(version);
    return Ask<kserve_pb::ModelReadyResponse>("ModelReady", request).ready();
  }
};

TEST_F(KServeServices, ReadyIsWhatHealthSays) {
  const auto ready = [this] {
    return Ask<kserve_pb::ServerReadyResponse>("ServerReady", kserve_pb::ServerReadyRequest())
        .ready();
  };
  EXPECT_TRUE(
      Ask<kserve_pb::ServerLiveResponse>("ServerLive", kserve_pb::ServerLiveRequest()).live());
  EXPECT_FALSE(ready());
  EXPECT_FALSE(ModelReady("mnist"));
  health_.Set({{"", ServingStatus::kServing}, {"model/mnist", ServingStatus::kServing}});
  EXPECT_TRUE(ready());
  EXPECT_TRUE(ModelReady("mnist"));
  EXPECT_TRUE(ModelReady("mnist", "4"));
  EXPECT_FALSE(ModelReady("mnist", "5"));
  EXPECT_FALSE(ModelReady("none"));
  registry_.models.erase("mnist");
  EXPECT_FALSE(ModelReady("mnist")) << "as soon as it is unloaded";
  health_.Shutdown();
  EXPECT_FALSE(ready());
}

TEST_F(KServeServices, Metadata) {
  registry_.statuses["mnist"] = {{5, VersionState::kLoading, absl::OkStatus()},
                                 {4, VersionState::kAvailable, absl::OkStatus()},
                                 {2, VersionState::kAvailable, absl::OkStatus()}};
  kserve_pb::ModelMetadataRequest request;
  request.set_name("mnist");
  const auto reply = Ask<kserve_pb::ModelMetadataResponse>("ModelMetadata", request);
  EXPECT_EQ(reply.name(), "mnist");
  EXPECT_THAT(reply.versions(), ElementsAre("2", "4"));
  std::map<std::string, const kserve_pb::ModelMetadataResponse::TensorMetadata*> inputs;
  for (const auto& input : reply.inputs()) inputs[input.name()] = &input;
  ASSERT_EQ(inputs.size(), 3u);
  EXPECT_EQ(inputs["x"]->datatype(), "FP32");
  EXPECT_THAT(inputs["x"]->shape(), ElementsAre(-1, 2));
  EXPECT_EQ(inputs["ids"]->datatype(), "INT64");
  EXPECT_EQ(inputs["training"]->datatype(), "BOOL");
  EXPECT_THAT(inputs["training"]->shape(), ElementsAre());
  EXPECT_EQ(reply.outputs_size(), 3);
  request.set_name("none");
  EXPECT_THAT(Refusal("ModelMetadata", request), HasSubstr("NOT_FOUND"));
  request.set_name("");
  EXPECT_THAT(Refusal("ModelMetadata", request),
              AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("name is empty; models: 'mnist'")));
}

TEST_F(KServeServices, ConfigHasTheBatchOnlyWhereEveryTensorHasRows) {
  Serve("FP32", MakeEcho("FP32", "DT_FLOAT"));
  SchedulerStats stats;
  stats.estimates.push_back({"serving_default", 64, 1, ""});
  registry_.stats = {{"FP32", {{{3, VersionState::kAvailable, absl::OkStatus()}, stats}}},
                     {"mnist", {{{4, VersionState::kAvailable, absl::OkStatus()}, stats}}}};
  kserve_pb::ModelConfigRequest request;
  request.set_name("FP32");
  kserve_pb::ModelConfig config =
      Ask<kserve_pb::ModelConfigResponse>("ModelConfig", request).config();
  EXPECT_EQ(config.max_batch_size(), 64);
  EXPECT_EQ(config.input(0).data_type(), kserve_pb::TYPE_FP32);
  EXPECT_THAT(config.input(0).dims(), ElementsAre(2));
  EXPECT_TRUE(config.has_dynamic_batching());
  EXPECT_EQ(config.version_policy().latest().num_versions(), 1u);
  request.set_name("mnist");  // an input without rows
  config = Ask<kserve_pb::ModelConfigResponse>("ModelConfig", request).config();
  EXPECT_EQ(config.max_batch_size(), 0);
  EXPECT_EQ(config.input_size(), 3);
}

TEST_F(KServeServices, Statistics) {
  SchedulerStats stats;
  stats.by_code[0] = 7;
  stats.by_code[4] = 2;
  stats.batches.batches = 3;
  stats.batches.requests = 8;
  stats.batches.rows = 21;
  SignatureWork& work = stats.work.emplace_back();
  for (int i = 0; i < 8; ++i) work.queue_wait.Add(0.000625);
  for (int i = 0; i < 4; ++i) work.run.Add(0.01);
  stats.work.push_back(work);  // another signature, without runs of its own
  stats.work[1].run = Histogram{kTimeBounds};
  stats.work[1].queue_wait = Histogram{kWaitBounds};
  for (const int64_t rows : {8, 1, 8}) stats.work[0].by_rows.Add(rows, 0.01);
  stats.work[1].by_rows.Add(8, 0.03);
  registry_.stats = {{"mnist",
                      {{{4, VersionState::kAvailable, absl::OkStatus()}, stats},
                       {{3, VersionState::kEnd, absl::OkStatus()}, std::nullopt}}}};
  kserve_pb::ModelStatisticsRequest request;
  const auto all = Ask<kserve_pb::ModelStatisticsResponse>("ModelStatistics", request);
  ASSERT_EQ(all.model_stats_size(), 1) << "versions that are served";
  const kserve_pb::ModelStatistics& one = all.model_stats(0);
  EXPECT_EQ(one.version(), "4");
  EXPECT_EQ(one.inference_count(), 21u);
  EXPECT_EQ(one.execution_count(), 3u);
  EXPECT_EQ(one.inference_stats().success().count(), 7u);
  EXPECT_EQ(one.inference_stats().fail().count(), 2u);
  EXPECT_EQ(one.inference_stats().queue().count(), 8u);
  EXPECT_EQ(one.inference_stats().queue().ns(), 5'000'000u);
  EXPECT_EQ(one.inference_stats().compute_infer().count(), 4u);
  EXPECT_EQ(one.inference_stats().compute_infer().ns(), 40'000'000u);
  EXPECT_EQ(one.inference_stats().success().ns(), 85'000'000u);
  ASSERT_EQ(one.batch_stats_size(), 2);
  EXPECT_EQ(one.batch_stats(0).batch_size(), 1u);
  EXPECT_EQ(one.batch_stats(1).batch_size(), 8u);
  EXPECT_EQ(one.batch_stats(1).compute_infer().count(), 3u);
  EXPECT_EQ(one.batch_stats(1).compute_infer().ns(), 50'000'000u);
  request.set_name("mnist");
  request.set_version("9");
  EXPECT_THAT(Refusal("ModelStatistics", request), HasSubstr("NOT_FOUND"));
  request.set_name("");
  EXPECT_THAT(Refusal("ModelStatistics", request), HasSubstr("INVALID_ARGUMENT"));
}

TEST_F(KServeServices, Index) {
  registry_.models["late"] = nullptr;  // configured, and nothing found
  registry_.statuses["mnist"] = {{5, VersionState::kEnd, absl::InternalError("bad file")},
                                 {4, VersionState::kAvailable, absl::OkStatus()}};
  kserve_pb::RepositoryIndexRequest request;
  const auto lines = [&] {
    std::vector<std::string> text;
    const auto index = Ask<kserve_pb::RepositoryIndexResponse>("RepositoryIndex", request);
    for (const auto& model : index.models())
      text.push_back(absl::StrCat(model.name(), " ", model.version(), " ", model.state(), " ",
                                  model.reason()));
    return text;
  };
  EXPECT_THAT(lines(), ElementsAre("late  UNAVAILABLE no model 'late'",
                                   "mnist 5 UNAVAILABLE bad file", "mnist 4 READY "));
  request.set_ready(true);
  EXPECT_THAT(lines(), ElementsAre("mnist 4 READY "));
  request.set_repository_name("/models");
  EXPECT_THAT(Refusal("RepositoryIndex", request), HasSubstr("'/models'"));
}

TEST_F(KServeServices, LoadAndUnloadChangeTheConfigurationByName) {
  ServerConfig config;
  config.models = {{.name = "mnist", .base_path = "/m"}, {.name = "other", .base_path = "/o"}};
  RegisterApi({.registry = registry_, .health = health_, .config = &config}, &table_);
  registry_.config.models = config.models;
  std::vector<std::string> names;
  registry_.on_reload = [&](std::vector<ModelConfig> models, TimePoint) {
    names.clear();
    for (const ModelConfig& model : models) names.push_back(model.name + model.base_path);
    registry_.config.models = std::move(models);
    return absl::OkStatus();
  };
  kserve_pb::RepositoryModelUnloadRequest unload;
  unload.set_model_name("mnist");
  (*unload.mutable_parameters())["unload_dependents"].set_bool_param(false);
  Ask<kserve_pb::RepositoryModelUnloadResponse>("RepositoryModelUnload", unload);
  EXPECT_THAT(names, ElementsAre("other/o"));
  EXPECT_EQ(registry_.replaced, registry_.config.generation);
  EXPECT_THAT(Refusal("RepositoryModelUnload", unload), HasSubstr("NOT_FOUND"));
  kserve_pb::RepositoryModelLoadRequest load;
  load.set_model_name("mnist");
  Ask<kserve_pb::RepositoryModelLoadResponse>("RepositoryModelLoad", load);
  EXPECT_THAT(names, ElementsAre("other/o", "mnist/m"));
  Ask<kserve_pb::RepositoryModelLoadResponse>("RepositoryModelLoad", load);  // scans again
  EXPECT_THAT(names, ElementsAre("other/o", "mnist/m"));
  registry_.on_reload = [](const auto&, TimePoint) { return absl::InternalError("bad file"); };
  EXPECT_THAT(Refusal("RepositoryModelLoad", load), HasSubstr("bad file"));
}

TEST_F(KServeServices, LoadTakesNamesAlone) {
  for (const char* name : {"", "/etc", "../mnist", "a/b", "a b", "a\\b", "none"}) {
    kserve_pb::RepositoryModelLoadRequest load;
    load.set_model_name(name);
    EXPECT_THAT(Refusal("RepositoryModelLoad", load),
                testing::AnyOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("NOT_FOUND")));
  }
  for (const char* key : {"config", "file:1/model.pb"}) {
    kserve_pb::RepositoryModelLoadRequest load;
    load.set_model_name("mnist");
    (*load.mutable_parameters())[key].set_bytes_param("x");
    EXPECT_THAT(Refusal("RepositoryModelLoad", load),
                AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr(key)));
  }
  kserve_pb::RepositoryModelLoadRequest load;
  load.set_model_name("mnist");
  EXPECT_THAT(Refusal("RepositoryModelLoad", load, /*local=*/false),
              HasSubstr("PERMISSION_DENIED"));
  load.set_repository_name("/models");
  EXPECT_THAT(Refusal("RepositoryModelLoad", load), HasSubstr("'/models'"));
}

TEST_F(KServeServices, WhatIsNotOffered) {
  for (const char* method : {"SystemSharedMemoryRegister", "CudaSharedMemoryStatus"})
    EXPECT_THAT(Refusal(method, kserve_pb::ServerLiveRequest()),
                AllOf(HasSubstr("UNIMPLEMENTED"), HasSubstr("raw_input_contents")));
  EXPECT_THAT(Refusal("TraceSetting", kserve_pb::ServerLiveRequest()), HasSubstr("UNIMPLEMENTED"));
}

}  // namespace
}  // namespace floe::server
