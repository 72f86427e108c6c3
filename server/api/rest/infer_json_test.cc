#include "server/api/rest/infer_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "server/api/rest/rest_for_test.h"

namespace floe::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct InferAsked {
  absl::Status status;
  Inference asked;
  InferJsonForm form;
  std::string body;  // inputs are views into it

  const TensorView& Input(const std::string& key) const {
    return asked.inputs[static_cast<size_t>(asked.signature->FindInput(key))];
  }
  template <typename T>
  std::vector<T> Values(const std::string& key) const {
    const TensorView& view = Input(key);
    std::vector<T> values(static_cast<size_t>(view.elements()));
    for (size_t i = 0; i < values.size(); ++i)  // which may be unaligned
      std::memcpy(&values[i], view.as<char>() + i * sizeof(T), sizeof(T));
    return values;
  }
};

std::unique_ptr<InferAsked> AskInfer(const FakeServed& served, const std::string& json,
                                     const std::string& tail = "") {
  auto out = std::make_unique<InferAsked>();
  out->body = json + tail + std::string(kJsonPadding, '\0');
  const auto find = [&](const ModelSpec&) -> absl::StatusOr<const ServedModel*> { return &served; };
  out->status = DecodeInferJson(std::string_view(out->body).substr(0, json.size() + tail.size()),
                                json.size(), {"m", {}, {}}, nullptr, find, &out->asked, &out->form);
  return out;
}

std::shared_ptr<FakeServed> TwoInputs() {
  return JsonModel(JsonNode("x", "DT_FLOAT", {-1, 2}) + JsonNode("s", "DT_STRING", {-1}));
}

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}
std::string Prefixed(const std::string& text) {
  return std::string{static_cast<char>(text.size()), 0, 0, 0} + text;
}

TEST(InferJson, DataIsFlatOrNested) {
  const auto served = TwoInputs();
  for (const char* x : {"[1, 2.5, NaN, 4]", "[[1, 2.5], [NaN, 4]]"}) {
    const auto read =
        AskInfer(*served, absl::StrCat(R"({"id": "7", "inputs": [{"data": )", x,
                                       R"(, "name": "x", "shape": [2, 2], "datatype": "FP32"},
          {"name": "s", "shape": [1], "datatype": "BYTES", "data": ["\u00e4"]}],
          "parameters": {"priority": 1, "timeout": 500, "other": [1]}})"));
    ASSERT_TRUE(read->status.ok()) << read->status;
    EXPECT_EQ(read->Input("x").shape, Shape({2, 2}));
    const auto values = read->Values<float>("x");
    EXPECT_EQ(values[1], 2.5f);
    EXPECT_TRUE(std::isnan(values[2]));
    EXPECT_EQ(read->Input("s").as<std::string>()[0], "\xc3\xa4");
    EXPECT_EQ(read->form.id, "7");
    EXPECT_EQ(read->form.priority, 1);
    EXPECT_EQ(read->form.timeout, std::chrono::microseconds(500));
    EXPECT_THAT(read->form.binary, ElementsAre(false, false));
  }
}

TEST(InferJson, BinaryTensorsStandBehindTheJson) {
  const auto served = TwoInputs();
  const std::vector<float> x = {1, 2, 3, 4};
  const std::string tail = Prefixed(std::string("\xff\0", 2)) + Bytes(x);
  const auto read = AskInfer(*served, R"({"inputs": [
    {"name": "s", "shape": [1], "datatype": "BYTES", "parameters": {"binary_data_size": 6}},
    {"name": "x", "shape": [2, 2], "datatype": "FP32", "parameters": {"binary_data_size": 16}}],
    "outputs": [{"name": "x_out", "parameters": {"binary_data": true}}, {"name": "s_out"}]})",
                             tail);
  ASSERT_TRUE(read->status.ok()) << read->status;
  EXPECT_THAT(read->Values<float>("x"), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(static_cast<const void*>(read->Input("x").data),
            read->body.data() + read->body.size() - kJsonPadding - Bytes(x).size())
      << "copied";
  EXPECT_EQ(read->Input("s").as<std::string>()[0], std::string("\xff\0", 2));
  EXPECT_THAT(read->form.binary, ElementsAre(true, false));
  // One kind beside the other.
  const auto mixed = AskInfer(*served, R"({"inputs": [
    {"name": "s", "shape": [1], "datatype": "BYTES", "data": ["a"]},
    {"name": "x", "shape": [1, 2], "datatype": "FP32", "parameters": {"binary_data_size": 8}}],
    "parameters": {"binary_data_output": true}})",
                              Bytes(std::vector<float>{5, 6}));
  ASSERT_TRUE(mixed->status.ok()) << mixed->status;
  EXPECT_THAT(mixed->Values<float>("x"), ElementsAre(5, 6));
  EXPECT_THAT(mixed->form.binary, ElementsAre(true, true));
}

TEST(InferJson, RefusalsNameWhatIsWrong) {
  const auto served = TwoInputs();
  const std::string s = R"({"name": "s", "shape": [1], "datatype": "BYTES", "data": ["a"]})";
  const struct {
    const char* x;  // the other input
    const char* tail;
    const char* says;
  } kCases[] = {
      {R"({"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1, "2"]})", "",
       "inputs[1].data[1]: the string '2' where a float32 belongs"},
      {R"({"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1, 2, 3]})", "",
       "needs 2 values"},
      {R"({"name": "x", "shape": [2, 1], "datatype": "FP32", "data": [[1, 2]]})", "",
       "data has shape [1,2]"},
      {R"({"name": "x", "shape": [1, 2], "datatype": "FP64", "data": [1, 2]})", "", "takes FP32"},
      {R"({"name": "x", "shape": [1, 2], "datatype": "FLOAT", "data": [1, 2]})", "",
       "datatype 'FLOAT' is unknown"},
      {R"({"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]})", "", "'x'"},
      {R"({"name": "x", "shape": [1, -1], "datatype": "FP32", "data": [1]})", "",
       "inputs[1].shape[1]: the number -1"},
      {R"({"name": "x", "shape": [4611686018427387904, 4611686018427387904], "datatype": "FP32", "data": [1]})",
       "", "input 'x'"},
      {R"({"name": "x", "shape": [1, 2], "datatype": "FP32"})", "", "neither data nor"},
      {R"({"name": "x", "shape": [1, 2], "data": [1, 2]})", "", "has name, datatype and shape"},
      {R"({"name": "y", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]})", "", "unknown 'y'"},
      {R"({"name": "s", "shape": [1], "datatype": "BYTES", "data": ["a"]})", "", "sent twice"},
      {R"({"name": "x", "shape": [1, 2], "datatype": "FP32", "parameters": {"binary_data_size": 8}})",
       "1234567", "binary_data_size is 8, but 7 bytes"},
      {R"({"name": "x", "shape": [1, 2], "datatype": "FP32", "parameters": {"binary_data_size": 8}})",
       "123456789", "has 9 bytes behind its JSON"},
      {R"({"name": "x", "shape": [1, 2], "datatype": "FP32", "parameters": {"binary_data_size": 4}})",
       "1234", "needs 8 bytes"},
      {R"({"name": "x", "shape": [1, 2], "datatype": "FP32", "parameters": {"binary_data_size": -4}})",
       "", "inputs[1].parameters.binary_data_size: the number -4"},
      {R"({"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1, 2], "parameters": {"binary_data_size": 0}})",
       "", "both data"},
      {R"({"name": "x", "shape": [1, 2], "datatype": "FP32", "parameters": {"shared_memory_region": "a"}})",
       "", "shared memory"},
  };
  for (const auto& c : kCases) {
    const auto read = AskInfer(*served, absl::StrCat(R"({"inputs": [)", s, ",", c.x, "]}"), c.tail);
    EXPECT_TRUE(absl::IsInvalidArgument(read->status)) << c.x << read->status;
    EXPECT_THAT(std::string(read->status.message()), HasSubstr(c.says)) << c.x;
  }
  for (const char* body :
       {"", "[]", R"({"inputs": 1})", R"({"inputs": [1]})", R"({"id": 1, "inputs": []})",
        R"({"inputs": [], "inputs": []})", R"({"inputs": []} x)", R"({})",
        R"({"inputs": [], "parameters": {"sequence_id": 1}})",
        R"({"inputs": [], "outputs": [{"name": "z"}]})"})
    EXPECT_TRUE(absl::IsInvalidArgument(AskInfer(*served, body)->status)) << body;
  const auto cut = AskInfer(*JsonModel(JsonNode("s", "DT_STRING", {-1})),
                            R"({"inputs": [{"name": "s", "shape": [1], "datatype": "BYTES",
                            "parameters": {"binary_data_size": 5}}]})",
                            std::string("\x02\0\0\0a", 5));
  EXPECT_THAT(std::string(cut->status.message()), HasSubstr("cut off"));
}

TEST(InferJson, Replies) {
  const auto served = JsonModel(JsonNode("x", "DT_FLOAT", {-1, 2}));
  std::vector<float> x = {1, 0.1f, std::numeric_limits<float>::infinity(), -0.0f};
  const TensorView view = {DType::kFloat32, Shape({2, 2}), x.data()};
  const std::string input = R"({"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]})";
  std::string reply;
  size_t json = 0;
  const auto read = AskInfer(*served, absl::StrCat(R"({"id": "a\"", "inputs": [)", input, "]}"));
  ASSERT_TRUE(read->status.ok()) << read->status;
  ASSERT_TRUE(EncodeInferJson(read->asked, {&view, 1}, read->form, nullptr, &reply, &json).ok());
  EXPECT_EQ(reply,
            R"({"model_name":"m","model_version":"1","id":"a\"","outputs":[)"
            R"({"name":"x_out","datatype":"FP32","shape":[2,2],"data":[1.0,0.1,Infinity,-0.0]}]})");
  EXPECT_EQ(json, reply.size());
  const auto binary = AskInfer(
      *served,
      absl::StrCat(R"({"parameters": {"binary_data_output": true}, "inputs": [)", input, "]}"));
  ASSERT_TRUE(
      EncodeInferJson(binary->asked, {&view, 1}, binary->form, nullptr, &reply, &json).ok());
  EXPECT_THAT(reply.substr(0, json),
              HasSubstr(R"("shape":[2,2],"parameters":{"binary_data_size":16}}]})"));
  EXPECT_EQ(reply.substr(json), Bytes(x));
}

TEST(InferJson, StringsThatAreNoUtf8AreSentAsBinaryOnly) {
  const auto served = JsonModel(JsonNode("s", "DT_STRING", {-1}));
  std::vector<std::string> s = {"\xff", "b"};
  const TensorView view = {DType::kString, Shape({2}), s.data()};
  const std::string input = R"({"name": "s", "shape": [1], "datatype": "BYTES", "data": ["a"]})";
  std::string reply;
  size_t json = 0;
  const auto read = AskInfer(*served, absl::StrCat(R"({"inputs": [)", input, "]}"));
  const absl::Status status =
      EncodeInferJson(read->asked, {&view, 1}, read->form, nullptr, &reply, &json);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("binary_data: true"));
  const auto binary = AskInfer(
      *served,
      absl::StrCat(
          R"({"outputs": [{"name": "s_out", "parameters": {"binary_data": true}}], "inputs": [)",
          input, "]}"));
  ASSERT_TRUE(
      EncodeInferJson(binary->asked, {&view, 1}, binary->form, nullptr, &reply, &json).ok());
  EXPECT_EQ(reply.substr(json), Prefixed("\xff") + Prefixed("b"));
}

}  // namespace
}  // namespace floe::server
