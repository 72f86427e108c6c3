// Models of one tensor, a registry that has them, and what the tests of KServe v2 share.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "kserve/grpc_service.pb.h"
#include "server/api/api.h"
#include "server/api/fakes_for_test.h"

namespace floe::server {

inline std::string InferPath(const std::string& method) {
  return "/inference.GRPCInferenceService/" + method;
}

// KServe v2's datatypes, and TensorFlow's names of them.
struct TestType {
  const char* datatype;
  const char* tensorflow;
  size_t size;
};
inline constexpr TestType kTestTypes[] = {
    {"BOOL", "DT_BOOL", 1},     {"UINT8", "DT_UINT8", 1},   {"UINT16", "DT_UINT16", 2},
    {"UINT32", "DT_UINT32", 4}, {"UINT64", "DT_UINT64", 8}, {"INT8", "DT_INT8", 1},
    {"INT16", "DT_INT16", 2},   {"INT32", "DT_INT32", 4},   {"INT64", "DT_INT64", 8},
    {"FP16", "DT_HALF", 2},     {"FP32", "DT_FLOAT", 4},    {"FP64", "DT_DOUBLE", 8},
    {"BF16", "DT_BFLOAT16", 2}, {"BYTES", "DT_STRING", 0},
};

// y = x of that type and any number of dims, the first of which is the rows.
inline ModelHandle MakeEcho(const std::string& name, const std::string& tensorflow) {
  const std::string text = absl::StrCat(
      "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: ", tensorflow,
      " } } attr { key: 'shape' value { shape { dim { size: -1 } dim { size: 2 } } } } } node { "
      "name: 'y' op: 'Identity' input: 'x' attr { key: 'T' value { type: ",
      tensorflow, " } } }");
  auto imported = ImportBytes(text, {});
  EXPECT_TRUE(imported.ok()) << name << ": " << imported.status();
  if (!imported.ok()) return nullptr;
  auto model = Model::Create(
      {{name, 3, ""}, std::move(imported->graph), std::move(imported->signatures)}, {});
  EXPECT_TRUE(model.ok()) << name << ": " << model.status();
  return model.ok() ? *model : nullptr;
}

// Calls of models that are named by their datatypes, and of `mnist`, which is kTestGraph.
class KServe : public testing::Test {
 protected:
  KServe() {
    Serve("mnist", MakeTestModel("mnist", 4));
    RegisterApi({registry_, health_}, &table_);
  }

  FakeServed& Serve(const std::string& name, ModelHandle model) {
    registry_.models[name] = std::make_shared<FakeServed>(std::move(model));
    registry_.statuses[name] = {{4, VersionState::kAvailable, absl::OkStatus()}};
    return *registry_.models[name];
  }

  // Answers with the inputs: outputs[i] is input number `from[i]`.
  void Echo(const std::string& name, std::vector<size_t> from) {
    registry_.models[name]->on_submit = [this, from](Request request) {
      last_deadline_ = request.deadline;
      last_priority_ = request.priority;
      if (request.asked->pending != nullptr) {
        ASSERT_TRUE(request.asked->pending->Decode().ok());
      }
      inputs_.clear();
      for (const TensorView& input : request.asked->inputs) inputs_.push_back(input.data);
      std::vector<TensorView> outputs;
      for (const size_t i : from) outputs.push_back(request.asked->inputs[i]);
      AnswerWith(request, absl::OkStatus(), outputs);
    };
  }

  static inference::ModelInferRequest Text(const std::string& text) {
    inference::ModelInferRequest request;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &request)) << text;
    return request;
  }

  inference::ModelInferResponse Infer(const inference::ModelInferRequest& request) {
    inference::ModelInferResponse reply;
    const auto responder = CallUnary(table_, InferPath("ModelInfer"), request.SerializeAsString());
    EXPECT_TRUE(responder->status.ok()) << responder->status;
    if (!responder->status.ok() || responder->messages.size() != 1) return reply;
    EXPECT_TRUE(reply.ParseFromString(responder->messages[0]));
    EXPECT_EQ(reply.ByteSizeLong(), responder->messages[0].size()) << "nothing superfluous";
    return reply;
  }

  // The error of a request that never reaches the model.
  std::string Refused(const inference::ModelInferRequest& request) {
    const auto responder = CallUnary(table_, InferPath("ModelInfer"), request.SerializeAsString());
    EXPECT_EQ(responder->finishes, 1);
    EXPECT_TRUE(responder->messages.empty());
    return responder->status.ToString();
  }

  FakeRegistry registry_;
  HealthState health_;
  MethodTable table_;
  std::vector<const void*> inputs_;  // of the last request
  TimePoint last_deadline_;
  int last_priority_ = 0;
};

}  // namespace floe::server
