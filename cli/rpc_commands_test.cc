// status and predict against a server whose answers are written down here.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "cli/command.h"
#include "cli/floectl_for_test.h"
#include "cli/npy.h"
#include "cli/npz.h"
#include "cli/rpc.h"
#include "cli/scripted_server_test_util.h"
#include "floe/admin.pb.h"
#include "gmock/gmock.h"
#include "grpc/health/v1/health.pb.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tensorflow_serving/apis/get_model_metadata.pb.h"
#include "tensorflow_serving/apis/get_model_status.pb.h"
#include "tensorflow_serving/apis/predict.pb.h"

namespace floe::cli {
namespace {

namespace tfs = tensorflow::serving;
using testing::HasSubstr;

constexpr char kHealth[] = "/grpc.health.v1.Health/Check";
constexpr char kModelStatus[] = "/tensorflow.serving.ModelService/GetModelStatus";

class RpcCommands : public testing::Test {
 protected:
  Outcome Floectl(std::vector<std::string> args) {
    args.insert(args.end(), {"--target", server_.address()});
    return cli::Floectl(args);
  }

  // Health by service name; names that are missing are NOT_FOUND.
  void AnswerHealth(const std::map<std::string, int>& states) {
    server_.handlers[kHealth] = [states](const std::string& bytes, std::string* reply) {
      grpc::health::v1::HealthCheckRequest request;
      request.ParseFromString(bytes);
      const auto state = states.find(request.service());
      if (state == states.end())
        return grpc::Status(grpc::StatusCode::NOT_FOUND, "unknown service");
      grpc::health::v1::HealthCheckResponse response;
      response.set_status(
          static_cast<grpc::health::v1::HealthCheckResponse::ServingStatus>(state->second));
      *reply = response.SerializeAsString();
      return grpc::Status::OK;
    };
  }

  void AnswerStatus(tfs::ModelVersionStatus::State state) {
    server_.handlers[kModelStatus] = [state](const std::string& bytes, std::string* reply) {
      tfs::GetModelStatusRequest request;
      request.ParseFromString(bytes);
      if (request.model_spec().name() != "mnist")
        return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such model");
      tfs::GetModelStatusResponse response;
      auto* version = response.add_model_version_status();
      version->set_version(3);
      version->set_state(state);
      if (state == tfs::ModelVersionStatus::END)
        version->mutable_status()->set_error_code(tensorflow::error::INVALID_ARGUMENT);
      version->mutable_status()->set_error_message("why not");
      *reply = response.SerializeAsString();
      return grpc::Status::OK;
    };
  }

  // x: float32 [?,2], count: int64 scalar, word: string [?] -> sum: float32.
  void AnswerMetadata() {
    server_.handlers[kMetadata] = [](const std::string& bytes, std::string* reply) {
      tfs::GetModelMetadataRequest request;
      request.ParseFromString(bytes);
      if (request.metadata_field_size() != 1 || request.metadata_field(0) != "signature_def") {
        return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "metadata_field");
      }
      tfs::SignatureDefMap map;
      auto& inputs = *(*map.mutable_signature_def())["serving_default"].mutable_inputs();
      inputs["x"].set_dtype(tensorflow::DT_FLOAT);
      inputs["x"].mutable_tensor_shape()->add_dim()->set_size(-1);
      inputs["x"].mutable_tensor_shape()->add_dim()->set_size(2);
      inputs["count"].set_dtype(tensorflow::DT_INT64);
      inputs["word"].set_dtype(tensorflow::DT_STRING);
      inputs["word"].mutable_tensor_shape()->add_dim()->set_size(-1);
      tfs::GetModelMetadataResponse response;
      response.mutable_model_spec()->mutable_version()->set_value(3);
      (*response.mutable_metadata())["signature_def"].PackFrom(map);
      *reply = response.SerializeAsString();
      return grpc::Status::OK;
    };
  }

  // Remembers the request, answers floats typed and a string.
  void AnswerPredict() {
    server_.handlers[kPredict] = [this](const std::string& bytes, std::string* reply) {
      request_.ParseFromString(bytes);
      tfs::PredictResponse response;
      response.mutable_model_spec()->set_name("adder");
      response.mutable_model_spec()->mutable_version()->set_value(7);
      response.mutable_model_spec()->set_signature_name("serving_default");
      auto& sum = (*response.mutable_outputs())["sum"];
      sum.set_dtype(tensorflow::DT_FLOAT);
      sum.mutable_tensor_shape()->add_dim()->set_size(2);
      sum.add_float_val(0.1f);
      sum.add_float_val(-2);
      auto& label = (*response.mutable_outputs())["label"];
      label.set_dtype(tensorflow::DT_STRING);
      label.mutable_tensor_shape();
      label.add_string_val("four");
      *reply = response.SerializeAsString();
      return grpc::Status::OK;
    };
  }

  ScriptedServer server_;
  tfs::PredictRequest request_;
};

// Without --model every model has its lines, and with --watch rates.
TEST_F(RpcCommands, StatusShowsLiveNumbers) {
  AnswerHealth({{"", 1}, {"model/a", 1}});
  int calls = 0;
  server_.handlers["/floe.Admin/GetStats"] = [&](const std::string&, std::string* reply) {
    GetStatsResponse stats;
    stats.mutable_server()->set_version("1.2.3");
    stats.mutable_server()->set_workers(4);
    stats.mutable_server()->set_abandoned_versions(calls);
    stats.mutable_server()->set_abandoned_threads(3);
    for (const char* name : {"a", "b"}) {
      ModelStats* const model = stats.add_models();
      model->set_name(name);
      VersionStats* const version = model->add_versions();
      version->set_version(2);
      version->set_state(tfs::ModelVersionStatus::AVAILABLE);
      CodeCount* const ok = version->add_requests();
      ok->set_code("OK");
      ok->set_count(100 + 1000 * calls);
      CodeCount* const full = version->add_requests();
      full->set_code("RESOURCE_EXHAUSTED");
      full->set_count(7);
    }
    ++calls;
    *reply = stats.SerializeAsString();
    return grpc::Status::OK;
  };
  const Outcome once = Floectl({"status"});
  EXPECT_EQ(once.code, kExitOk) << once.err;
  EXPECT_THAT(once.out, HasSubstr("floed 1.2.3"));
  EXPECT_THAT(once.out, HasSubstr("4 workers"));
  EXPECT_THAT(once.out, testing::Not(HasSubstr("abandoned")));
  EXPECT_THAT(once.out, testing::ContainsRegex("a +2 +AVAILABLE +107 +7"));
  EXPECT_THAT(once.out, testing::ContainsRegex("b +2 +AVAILABLE +107 +7"));
  const Outcome watched = Floectl({"status", "--watch", "0.01", "--count", "2"});
  EXPECT_EQ(watched.code, kExitOk) << watched.err;
  EXPECT_THAT(watched.out, HasSubstr("; 1 abandoned versions hold 3 threads"));
  EXPECT_THAT(watched.out, testing::ContainsRegex("a +2 +AVAILABLE +1e\\+05/s +7"));
  const auto json = nlohmann::json::parse(Floectl({"status", "--json"}).out);
  EXPECT_EQ(json["stats"]["models"][1]["name"], "b");
}

TEST_F(RpcCommands, StatusOfAServingModel) {
  AnswerHealth({{"", 1}, {"model/mnist", 1}});
  AnswerStatus(tfs::ModelVersionStatus::AVAILABLE);
  const Outcome outcome = Floectl({"status", "--model", "mnist"});
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("mnist  3        AVAILABLE  SERVING"));
  const auto json = nlohmann::json::parse(Floectl({"status", "--model", "mnist", "--json"}).out);
  EXPECT_EQ(json["health"], "SERVING");
  EXPECT_EQ(json["versions"][0]["version"], 3);
  EXPECT_EQ(json["versions"][0]["state"], "AVAILABLE");
}

TEST_F(RpcCommands, StatusFailsForWhatDoesNotServe) {
  AnswerHealth({{"", 1}});
  AnswerStatus(tfs::ModelVersionStatus::LOADING);
  const Outcome loading = Floectl({"status", "--model", "mnist"});
  EXPECT_EQ(loading.code, kExitFailed);
  EXPECT_THAT(loading.out, HasSubstr("LOADING"));  // the table is there all the same
  EXPECT_THAT(loading.err, HasSubstr("model 'mnist' is not serving"));
  EXPECT_THAT(Floectl({"status", "--model", "other"}).err, HasSubstr("NOT_FOUND: no such model"));
  AnswerHealth({{"", 2}});
  EXPECT_EQ(Floectl({"status"}).code, kExitFailed);
}

TEST_F(RpcCommands, StatusOfAModelShowsWhatCallersNeed) {
  AnswerHealth({{"", 1}, {"model/mnist", 1}});
  AnswerStatus(tfs::ModelVersionStatus::AVAILABLE);
  AnswerMetadata();
  const std::string text = Floectl({"status", "--model", "mnist"}).out;
  EXPECT_THAT(text, HasSubstr("mnist version 3:\nsignature serving_default"));
  EXPECT_THAT(text, testing::ContainsRegex("in +x +.*float32\\[\\?,2\\]\n"));
  EXPECT_THAT(text, testing::ContainsRegex("in +word +.*string\\[\\?\\]\n"));
  const auto json = nlohmann::json::parse(Floectl({"status", "--model", "mnist", "--json"}).out);
  EXPECT_EQ(json["signatures"][0]["inputs"][2]["shape"].dump(), "[-1,2]");
}

// An older version may serve on: a script that put a new one there has to be told.
TEST_F(RpcCommands, StatusFailsForANewestVersionThatFailed) {
  AnswerHealth({{"", 1}, {"model/mnist", 1}});
  AnswerStatus(tfs::ModelVersionStatus::END);
  const Outcome one = Floectl({"status", "--model", "mnist"});
  EXPECT_EQ(one.code, kExitFailed);
  EXPECT_THAT(one.out, HasSubstr("version 3 failed: INVALID_ARGUMENT: why not\n"));
  EXPECT_THAT(one.err,
              HasSubstr("model 'mnist' is not serving; version 3 of model 'mnist' failed"));
  EXPECT_EQ(Floectl({"status", "--model", "mnist", "--no-fail"}).code, kExitOk);

  GetStatsResponse stats;
  ModelStats* const model = stats.add_models();
  model->set_name("a");
  model->set_serving(true);
  VersionStats* const newest = model->add_versions();
  newest->set_version(8);
  newest->set_state(tfs::ModelVersionStatus::END);
  newest->mutable_error()->set_error_code(tensorflow::error::INVALID_ARGUMENT);
  VersionStats* const older = model->add_versions();
  older->set_version(7);
  older->set_state(tfs::ModelVersionStatus::AVAILABLE);
  server_.handlers["/floe.Admin/GetStats"] = [&](const std::string&, std::string* reply) {
    *reply = stats.SerializeAsString();
    return grpc::Status::OK;
  };
  EXPECT_EQ(Floectl({"status"}).err,
            "floectl status: UNAVAILABLE: version 8 of model 'a' failed\n");
  EXPECT_EQ(Floectl({"status", "--no-fail"}).code, kExitOk);
  newest->set_state(tfs::ModelVersionStatus::LOADING);
  EXPECT_EQ(Floectl({"status"}).code, kExitOk) << "it is tried again";
  model->set_serving(false);
  EXPECT_EQ(Floectl({"status"}).err, "floectl status: UNAVAILABLE: model 'a' is not serving\n");
}

TEST_F(RpcCommands, StatusOfAModelShowsItsLabels) {
  AnswerHealth({{"", 1}, {"model/mnist", 1}});
  AnswerStatus(tfs::ModelVersionStatus::AVAILABLE);
  server_.handlers["/floe.Admin/GetStats"] = [](const std::string&, std::string* reply) {
    GetStatsResponse stats;
    ModelStats* const model = stats.add_models();
    model->set_name("mnist");
    (*model->mutable_labels())["stable"] = 3;
    (*model->mutable_labels())["canary"] = 4;
    *reply = stats.SerializeAsString();
    return grpc::Status::OK;
  };
  EXPECT_THAT(Floectl({"status", "--model", "mnist"}).out,
              HasSubstr("label canary: version 4\nlabel stable: version 3\n"));
}

TEST_F(RpcCommands, StatusOfAModelWarnsWhereRunsAreNotAsEstimated) {
  AnswerHealth({{"", 1}, {"model/mnist", 1}});
  AnswerStatus(tfs::ModelVersionStatus::AVAILABLE);
  GetStatsResponse stats;
  ModelStats* const model = stats.add_models();
  model->set_name("mnist");
  VersionStats* const version = model->add_versions();
  version->set_state(tfs::ModelVersionStatus::AVAILABLE);
  SignatureStats* const signature = version->add_signatures();
  signature->set_name("serving_default [?,784]");
  server_.handlers["/floe.Admin/GetStats"] = [&](const std::string&, std::string* reply) {
    *reply = stats.SerializeAsString();
    return grpc::Status::OK;
  };
  const auto warns = [&](uint64_t batches, double factor) {
    signature->set_batches(batches);
    signature->set_run_by_estimate(factor);
    const std::string text = Floectl({"status", "--model", "mnist"}).out;
    EXPECT_THAT(text, HasSubstr(absl::StrFormat("%.2g", factor)));
    return absl::StrContains(
        text, absl::StrFormat("warning: runs of serving_default [?,784] take %.2g times", factor));
  };
  EXPECT_TRUE(warns(20, 2.5));
  EXPECT_TRUE(warns(20, 0.4));
  EXPECT_FALSE(warns(20, 1.9));
  EXPECT_FALSE(warns(20, 0.6));
  EXPECT_FALSE(warns(3, 2.5)) << "too few to tell";
}

TEST_F(RpcCommands, ServersWithoutHealthAreUnknownNotBroken) {
  AnswerStatus(tfs::ModelVersionStatus::AVAILABLE);
  const Outcome outcome = Floectl({"status", "--model", "mnist"});
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("UNKNOWN"));
}

TEST_F(RpcCommands, NobodyListening) {
  std::ostringstream out, err;
  EXPECT_EQ(Main({"status", "--target", "unix:" + testing::TempDir() + "nobody.sock"}, out, err),
            kExitFailed);
  EXPECT_THAT(err.str(), HasSubstr("no server answers at unix:"));
}

TEST(TargetOption, MayLeaveThePortOut) {
  for (const auto& [given, asked] :
       std::map<std::string, std::string>{{"localhost", "localhost:8500"},
                                          {"127.0.0.1:1", "127.0.0.1:1"},
                                          {"::1", "[::1]:8500"},
                                          {"[::1]", "[::1]:8500"},
                                          {"[::1]:1", "[::1]:1"},
                                          {"unix:/none", "unix:/none"},
                                          {"dns:///localhost:1", "dns:///localhost:1"}})
    EXPECT_EQ(WithPort(given), asked);
  EXPECT_THAT(cli::Floectl({"status", "--target", "no.such.host.invalid"}).err,
              HasSubstr("no server answers at no.such.host.invalid:8500"));
}

TEST(TargetOption, EveryCommandThatCallsAServerHasIt) {
  const std::vector<std::vector<std::string>> commands = {
      {"status"},  {"log-level"},      {"predict"},        {"bench"},
      {"profile"}, {"config", "show"}, {"config", "apply"}};
  for (std::vector<std::string> command : commands) {
    command.push_back("--help");
    EXPECT_THAT(cli::Floectl(command).out, HasSubstr("--target ADDRESS=127.0.0.1:8500"));
  }
}

TEST(TargetOption, OperatorsFindTheAdminSocket) {
  const std::string path = absl::StrCat(testing::TempDir(), "floe_admin_", getpid());
  Target operators;
  operators.for_operators = true;
  EXPECT_EQ(Resolved(operators, path.c_str()).address, Target().address) << "there is none";
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(Resolved(operators, path.c_str()).address, "unix:" + path);
  EXPECT_EQ(Resolved(Target(), path.c_str()).address, Target().address) << "of Predict";
  operators.tls.ca = "ca.pem";
  EXPECT_EQ(Resolved(operators, path.c_str()).address, Target().address) << "a socket has no TLS";
  operators.tls = {};
  operators.is_given = true;
  EXPECT_EQ(Resolved(operators, path.c_str()).address, Target().address);
  close(fd);
  unlink(path.c_str());
}

TEST_F(RpcCommands, PredictTakesJsonByTheModelsDTypes) {
  AnswerMetadata();
  AnswerPredict();
  const Outcome outcome = Floectl({"predict", "adder", "x=[[1, 2.5]]", "count=9007199254740993",
                                   "word=[\"a\", \"\"]", "--version", "7", "--json"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_EQ(request_.model_spec().name(), "adder");
  EXPECT_EQ(request_.model_spec().version().value(), 7);
  EXPECT_EQ(request_.model_spec().signature_name(), "serving_default");
  const auto& x = request_.inputs().at("x");
  EXPECT_EQ(x.dtype(), tensorflow::DT_FLOAT);
  ASSERT_EQ(x.tensor_shape().dim_size(), 2);
  EXPECT_EQ(x.tensor_shape().dim(0).size(), 1);
  const float expected[] = {1, 2.5};
  EXPECT_EQ(x.tensor_content(),
            std::string(reinterpret_cast<const char*>(expected), sizeof expected));
  int64_t count = 0;
  ASSERT_EQ(request_.inputs().at("count").tensor_content().size(), sizeof count);
  std::memcpy(&count, request_.inputs().at("count").tensor_content().data(), sizeof count);
  EXPECT_EQ(count, 9007199254740993);  // a double would have lost the last digit
  EXPECT_EQ(request_.inputs().at("word").string_val_size(), 2);
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["version"], 7);
  EXPECT_EQ(json["outputs"]["sum"]["values"].dump(), "[0.1,-2.0]");
  EXPECT_EQ(json["outputs"]["label"]["values"], "four");
}

TEST_F(RpcCommands, PredictChoosesAVersionByItsLabel) {
  AnswerMetadata();
  AnswerPredict();
  const Outcome outcome = Floectl({"predict", "adder", "x=[[1, 2]]", "--label", "stable"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_EQ(request_.model_spec().version_label(), "stable");
  const Outcome both =
      Floectl({"predict", "adder", "x=[[1, 2]]", "--label", "stable", "--version", "7"});
  EXPECT_EQ(both.code, kExitUsage);
  EXPECT_THAT(both.err, HasSubstr("--version"));
}

TEST_F(RpcCommands, PredictReadsFilesAndWritesOne) {
  AnswerMetadata();
  AnswerPredict();
  const std::string npy = testing::TempDir() + "x.npy", npz = testing::TempDir() + "rest.npz";
  const std::string out = testing::TempDir() + "answers.npz";
  const Tensor x = Tensor::Vector<float>(DType::kFloat32, {3, 4}).Reshaped({1, 2});
  std::ofstream(npy, std::ios::binary) << *SerializeNpy(x.view());
  ASSERT_TRUE(WriteNpz(npz, {{"count", Tensor::Scalar<int64_t>(DType::kInt64, 5)}}).ok());
  const Outcome outcome = Floectl({"predict", "adder", "x=@" + npy, "@" + npz, "--out", out});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_EQ(request_.inputs().at("x").tensor_content(), std::string(x.as<char>(), x.bytes()));
  EXPECT_EQ(request_.inputs().at("count").tensor_shape().dim_size(), 0);
  EXPECT_EQ(request_.inputs().size(), 2u);  // inputs not given are not sent
  const auto arrays = ReadNpz(out);
  ASSERT_TRUE(arrays.ok()) << arrays.status();
  EXPECT_EQ(FindTensor(*arrays, "sum")->as<float>()[1], -2);
  EXPECT_EQ(FindTensor(*arrays, "label")->dtype(), DType::kUInt8);
}

TEST_F(RpcCommands, PredictPrintsATableAndAsksForContentOnRequest) {
  AnswerMetadata();
  AnswerPredict();
  const Outcome outcome = Floectl({"predict", "adder", "x=[[1, 2]]", "--content"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("sum  float32[2]\n  0.1 -2\n"));
  EXPECT_THAT(outcome.out, HasSubstr("'four'"));
  EXPECT_EQ(server_.metadata.find("floe-reply")->second, "content");
  ASSERT_EQ(Floectl({"predict", "adder", "x=[[1, 2]]"}).code, kExitOk);
  EXPECT_EQ(server_.metadata.count("floe-reply"), 0u);
}

TEST_F(RpcCommands, PredictExplainsWrongInputsBeforeItCalls) {
  AnswerMetadata();
  EXPECT_THAT(Floectl({"predict", "adder", "xx=[1]"}).err, HasSubstr("nearest: 'x'"));
  EXPECT_THAT(Floectl({"predict", "adder", "x=[1,"}).err, HasSubstr("neither JSON nor @FILE"));
  EXPECT_THAT(Floectl({"predict", "adder", "count=1.5"}).err,
              HasSubstr("1.5 is not of type int64"));
  EXPECT_THAT(Floectl({"predict", "adder", "x=@/nonexistent.npy"}).err,
              HasSubstr("NOT_FOUND: /nonexistent.npy"));
  EXPECT_THAT(Floectl({"predict", "adder", "x=@/nonexistent.npz"}).err, HasSubstr("is an archive"));
  EXPECT_THAT(Floectl({"predict", "adder", "x=[[1,2]]", "--signature", "other"}).err,
              HasSubstr("'serving_default'"));
}

TEST_F(RpcCommands, TheServersErrorComesThrough) {
  AnswerMetadata();
  server_.handlers[kPredict] = [](const std::string&, std::string*) {
    return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "the queue is full");
  };
  const Outcome outcome = Floectl({"predict", "adder", "x=[[1, 2]]"});
  EXPECT_EQ(outcome.code, kExitFailed);
  EXPECT_EQ(outcome.err, "floectl predict: RESOURCE_EXHAUSTED: the queue is full\n");
}

}  // namespace
}  // namespace floe::cli
