// `bench --target` against a server whose answers are written down here.
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <set>

#include "cli/floectl_for_test.h"
#include "cli/npz.h"
#include "cli/scripted_server_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tensorflow_serving/apis/get_model_metadata.pb.h"
#include "tensorflow_serving/apis/predict.pb.h"

namespace floe::cli {
namespace {

namespace tfs = tensorflow::serving;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class BenchServer : public testing::Test {
 protected:
  // x: float32 [?,2,?]; names: string [?]. Version 3.
  BenchServer() {
    server_.handlers[kMetadata] = [](const std::string& bytes, std::string* reply) {
      tfs::GetModelMetadataRequest request;
      request.ParseFromString(bytes);
      if (request.model_spec().name() != "m")
        return grpc::Status(grpc::StatusCode::NOT_FOUND, "there is no model of that name");
      tfs::SignatureDefMap map;
      auto& inputs = *(*map.mutable_signature_def())["serving_default"].mutable_inputs();
      inputs["x"].set_dtype(tensorflow::DT_FLOAT);
      for (const int size : {-1, 2, -1})
        inputs["x"].mutable_tensor_shape()->add_dim()->set_size(size);
      inputs["names"].set_dtype(tensorflow::DT_STRING);
      inputs["names"].mutable_tensor_shape()->add_dim()->set_size(-1);
      tfs::GetModelMetadataResponse response;
      response.mutable_model_spec()->mutable_version()->set_value(3);
      (*response.mutable_metadata())["signature_def"].PackFrom(map);
      *reply = response.SerializeAsString();
      return grpc::Status::OK;
    };
    server_.handlers[kPredict] = [this](const std::string& bytes, std::string* reply) {
      const int64_t call = predicts_.fetch_add(1);
      {
        std::lock_guard<std::mutex> lock(mutex_);
        requests_.insert(bytes);
      }
      *reply = std::string("\x0a\x00", 2);  // outputs {"": empty}
      return fail_ ? fail_(call) : grpc::Status::OK;
    };
  }

  Outcome Bench(std::vector<std::string> args) {
    args.insert(args.begin(), {"bench", "m", "--target", server_.address(), "-s", "0.05"});
    return Floectl(args);
  }
  json BenchJson(std::vector<std::string> args, int code = kExitOk) {
    args.push_back("--json");
    const Outcome outcome = Bench(args);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    return json::parse(outcome.out, nullptr, false);
  }
  // The one message that all calls sent.
  tfs::PredictRequest Request() {
    EXPECT_EQ(requests_.size(), 1u);
    tfs::PredictRequest request;
    request.ParseFromString(*requests_.begin());
    return request;
  }

  ScriptedServer server_;
  std::function<grpc::Status(int64_t call)> fail_;  // of the call of that number, from 0
  std::atomic<int64_t> predicts_{0};
  std::mutex mutex_;
  std::set<std::string> requests_;
};

TEST_F(BenchServer, AClosedLoopCountsWhatTheServerHasSeen) {
  const json found = BenchJson({"-c", "3", "--connections", "2"});
  EXPECT_EQ(found["model"], "m");
  EXPECT_EQ(found["version"], 3);
  EXPECT_EQ(found["signature"], "serving_default");
  EXPECT_EQ(found["target"], server_.address());
  EXPECT_EQ(found["loop"], "closed");
  EXPECT_EQ(found["batch"], 1);
  EXPECT_EQ(found["concurrency"], 3);
  EXPECT_EQ(found["connections"], 2);
  EXPECT_EQ(found["request_bytes"], Request().ByteSizeLong());
  EXPECT_EQ(found["reply_bytes"], 2);
  EXPECT_GT(found["warmup_calls"], 1);
  EXPECT_GE(found["calls"], 3);
  EXPECT_EQ(found["calls"].get<int64_t>() + found["warmup_calls"].get<int64_t>(), predicts_);
  EXPECT_EQ(found["succeeded"], found["calls"]);
  EXPECT_EQ(found["failed"], 0);
  EXPECT_EQ(found["unsent"], 0);
  EXPECT_GE(found["seconds"], 0.05);
  EXPECT_NEAR(found["calls_per_second"],
              found["calls"].get<double>() / found["seconds"].get<double>(), 0.1);
  EXPECT_EQ(found["rows_per_second"], found["calls_per_second"]);
  EXPECT_GT(found["client_cpus"], 0);
  EXPECT_EQ(found["errors"], json::object());
  EXPECT_FALSE(found.contains("rate"));
  double last = 0;
  for (const char* const key : {"min", "p50", "p90", "p99", "p99.9", "max"}) {
    EXPECT_GE(found["latency_us"][key], last) << key;
    last = found["latency_us"][key];
  }
  EXPECT_GT(found["latency_us"]["min"], 0);
  EXPECT_LT(found["latency_us"]["mean"], last);
}

TEST_F(BenchServer, AnOpenLoopMakesAsManyCallsAsTheRateSays) {
  const json found = BenchJson({"--rate", "400", "--arrivals", "constant", "--warmup", "0"});
  EXPECT_EQ(found["loop"], "open");
  EXPECT_EQ(found["rate"], 400);
  EXPECT_EQ(found["arrivals"], "constant");
  EXPECT_EQ(found["calls"], 20);
  EXPECT_EQ(found["warmup_calls"], 1);
  EXPECT_EQ(predicts_, 21);
  EXPECT_EQ(found["unsent"], 0);
  EXPECT_GE(found["seconds"], 0.05);
  EXPECT_LE(found["lag_us"]["p50"], found["latency_us"]["p50"]);
  EXPECT_EQ(BenchJson({"--rate", "400"})["arrivals"], "poisson");
}

TEST_F(BenchServer, ARateBeyondTheServerIsSaid) {
  const Outcome outcome = Bench({"--rate", "1000000", "-c", "2", "--warmup", "0", "--json"});
  EXPECT_EQ(outcome.code, kExitFailed);
  const json found = json::parse(outcome.out, nullptr, false);
  EXPECT_GT(found["unsent"], 0);
  EXPECT_GT(found["succeeded"], 0);
  EXPECT_EQ(found["failed"], 0);
  EXPECT_EQ(predicts_, found["calls"].get<int64_t>() + 1);
  EXPECT_THAT(outcome.err, HasSubstr("were not sent, because 2 were waiting"));
  EXPECT_THAT(outcome.err, HasSubstr("--no-fail"));
  // Behind its time from the first call on: latencies are those of a queue, not those of an answer.
  EXPECT_GT(found["latency_us"]["p50"], 10'000);
  EXPECT_EQ(Bench({"--rate", "1000000", "-c", "2", "--no-fail"}).code, kExitOk);
}

TEST_F(BenchServer, FailuresAreCountedByCodeWithTheirFirstMessage) {
  // A run has eleven calls, the first one to try.
  fail_ = [](int64_t call) {
    if (call == 2) return grpc::Status(grpc::StatusCode::INTERNAL, "broken");
    if (call % 11 == 1 || call == 3)
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the queue is full");
    return grpc::Status::OK;
  };
  std::vector<std::string> args = {"--rate",   "200", "--arrivals", "constant",
                                   "--warmup", "0",   "--json"};
  const Outcome outcome = Bench(args);
  EXPECT_EQ(outcome.code, kExitFailed);
  const json found = json::parse(outcome.out, nullptr, false);
  EXPECT_EQ(found["errors"],
            json({{"INTERNAL", {{"count", 1}, {"first_message", "broken"}}},
                  {"UNAVAILABLE", {{"count", 2}, {"first_message", "the queue is full"}}}}));
  EXPECT_EQ(found["failed"], 3);
  EXPECT_EQ(found["succeeded"], 7);
  EXPECT_EQ(found["calls"], 10);
  EXPECT_EQ(outcome.err,
            "floectl bench: UNAVAILABLE: 3 of 10 calls failed; --no-fail accepts that: the queue "
            "is full\n");

  args.back() = "--no-fail";
  const Outcome accepted = Bench(args);
  EXPECT_EQ(accepted.code, kExitOk);
  EXPECT_THAT(accepted.out, HasSubstr("batch 1: 1 x UNAVAILABLE, the first: the queue is full\n"));
  EXPECT_EQ(accepted.err, "");
}

TEST_F(BenchServer, NothingThatSucceedsIsAFailure) {
  fail_ = [](int64_t call) {
    return call == 0 ? grpc::Status::OK : grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone");
  };
  const Outcome outcome = Bench({"-c", "1", "--no-fail"});
  EXPECT_EQ(outcome.code, kExitFailed);
  EXPECT_THAT(outcome.err, HasSubstr("calls failed: gone"));
  EXPECT_THAT(outcome.out, HasSubstr("p99.9 us"));
}

TEST_F(BenchServer, TheFirstCallsErrorIsTheErrorAndNothingIsMeasured) {
  fail_ = [](int64_t) { return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "too narrow"); };
  const Outcome outcome = Bench({});
  EXPECT_EQ(outcome.code, kExitFailed);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("INVALID_ARGUMENT: made-up inputs (--dim sets"));
  EXPECT_THAT(outcome.err, HasSubstr("too narrow"));
  EXPECT_EQ(predicts_, 1);
  EXPECT_THAT(Bench({"names=[\"a\"]"}).err, HasSubstr("INVALID_ARGUMENT: too narrow"));
}

TEST_F(BenchServer, MadeUpInputsHaveTheSignaturesShapes) {
  const json found = BenchJson({"--batch", "5", "--dim", "7"});
  EXPECT_EQ(found["batch"], 5);
  EXPECT_NEAR(found["rows_per_second"].get<double>() / found["calls_per_second"].get<double>(), 5,
              0.01);
  const tfs::PredictRequest request = Request();
  EXPECT_EQ(request.model_spec().name(), "m");
  const auto& x = request.inputs().at("x");
  EXPECT_EQ(x.tensor_shape().dim(0).size(), 5);
  EXPECT_EQ(x.tensor_shape().dim(1).size(), 2);
  EXPECT_EQ(x.tensor_shape().dim(2).size(), 7);
  std::vector<float> values(70);
  ASSERT_EQ(x.tensor_content().size(), values.size() * sizeof(float));
  std::memcpy(values.data(), x.tensor_content().data(), x.tensor_content().size());
  EXPECT_THAT(values, testing::Each(testing::AllOf(testing::Ge(0), testing::Lt(1))));
  EXPECT_GT(std::set<float>(values.begin(), values.end()).size(), 60u);
  EXPECT_EQ(request.inputs().at("names").string_val_size(), 5);
}

TEST_F(BenchServer, OwnInputsAreSentAndRepeatedToTheBatch) {
  BenchJson({"x=[[[1],[2]],[[3],[4]]]", "--version", "3", "--batch", "3"});
  const tfs::PredictRequest request = Request();
  EXPECT_EQ(request.inputs().size(), 1u);
  EXPECT_EQ(request.model_spec().version().value(), 3);
  const float expected[] = {1, 2, 3, 4, 1, 2};
  EXPECT_EQ(request.inputs().at("x").tensor_content(),
            std::string(reinterpret_cast<const char*>(expected), sizeof expected));
}

TEST_F(BenchServer, AFileOfInputsGivesTheBatch) {
  const std::string file = testing::TempDir() + "bench_server.npz";
  const Tensor x = Tensor::Vector<float>(DType::kFloat32, {1, 2, 3, 4}).Reshaped({2, 2, 1});
  ASSERT_TRUE(WriteNpz(file, {{"x", x}}).ok());
  EXPECT_EQ(BenchJson({"--inputs", file, "--label", "stable"})["batch"], 2);
  EXPECT_EQ(Request().model_spec().version_label(), "stable");
  EXPECT_EQ(Request().inputs().at("x").tensor_content(), std::string(x.as<char>(), x.bytes()));
}

TEST_F(BenchServer, AListOfBatchesIsARowForEach) {
  const json rows = BenchJson({"-b", "1,4"});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["batch"], 1);
  EXPECT_EQ(rows[1]["batch"], 4);
  EXPECT_GT(rows[1]["request_bytes"], rows[0]["request_bytes"]);
  const Outcome text = Bench({"-b", "1,4", "-c", "2"});
  EXPECT_THAT(text.out,
              HasSubstr("m, version 3, signature serving_default, at " + server_.address() +
                        "\nclosed loop of 2 calls over 1 connection, "
                        "0.05 s after 0.005 s of warm-up\nbatch  "));
  EXPECT_THAT(text.out, HasSubstr("\n1 "));
  EXPECT_THAT(text.out, HasSubstr("\n4 "));
  EXPECT_THAT(text.out, Not(HasSubstr("unsent")));
  EXPECT_THAT(Bench({"--rate", "100"}).out,
              HasSubstr("open loop of 100 calls a second, at random (Poisson), at most 10000 "
                        "waiting over 1 connection, "));
}

TEST_F(BenchServer, DeadlinesAreTheTimeout) {
  const auto before = std::chrono::system_clock::now();
  BenchJson({"-c", "1", "--timeout", "3600"});
  const auto left = server_.deadline - before;
  EXPECT_GT(left, std::chrono::seconds(3590));
  EXPECT_LT(left, std::chrono::seconds(3690));
}

TEST_F(BenchServer, ServersAndModelsThatAreNotThereAreNamed) {
  const Outcome model = Floectl({"bench", "other", "--target", server_.address()});
  EXPECT_EQ(model.code, kExitFailed);
  EXPECT_EQ(model.err, "floectl bench: NOT_FOUND: there is no model of that name\n");
  const Outcome server = Floectl({"bench", "x.pb", "--target", "unix:/nowhere"});
  EXPECT_EQ(server.code, kExitFailed);
  EXPECT_THAT(server.err, HasSubstr("no server answers at unix:/nowhere"));
  EXPECT_THAT(Bench({"--signature", "other"}).err, HasSubstr("it has 'serving_default'"));
}

TEST(BenchUsage, OptionsOfTheOtherKindAreExplained) {
  const std::string file = WriteText("bench_usage.pbtxt", kGraph);
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes = {
      {{file, "--rate", "5"}, "--rate: is for a server, which --target names"},
      {{file, "x=[1]"}, "INPUT: is for a server"},
      {{file, "--connections", "2"}, "--connections: is for a server"},
      {{"m", "--target", "h", "--gemm", "native"}, "--gemm: is for a file"},
      {{"m", "--threads", "2"}, "--threads: is for a file"},
      {{file, "--target", "h", "--fetch", "y"}, "--fetch: is for a file"},
      {{"m", "--arrivals", "constant"}, "--rate"},
      {{"m", "--rate", "5", "--arrivals", "often"}, "often"},
      {{"m", "--rate", "0"}, "--rate"},
      {{"m", "--rate", "many"}, "--rate"},
      {{"m", "-c", "0"}, "-c"},
      {{"m", "-c", "2", "--connections", "3"}, "--connections: there are more than --concurrency"},
      {{"m", "--version", "1", "--label", "stable"}, "--version"},
      {{"m", "nonsense"}, "NAME=@FILE.npy"},
  };
  for (auto [args, words] : mistakes) {
    args.insert(args.begin(), "bench");
    const Outcome outcome = Floectl(args);
    EXPECT_EQ(outcome.code, kExitUsage) << testing::PrintToString(args);
    EXPECT_THAT(outcome.err, HasSubstr(words)) << testing::PrintToString(args);
    EXPECT_EQ(outcome.out, "");
  }
}

}  // namespace
}  // namespace floe::cli
