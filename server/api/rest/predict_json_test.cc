#include "server/api/rest/predict_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "server/api/rest/json_number.h"
#include "server/api/rest/rest_for_test.h"

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// The example of TensorFlow Serving's documentation.
std::shared_ptr<FakeServed> ThreeInputs() {
  return JsonModel(JsonNode("tag", "DT_STRING", {-1}) + JsonNode("signal", "DT_FLOAT", {-1, 5}) +
                   JsonNode("sensor", "DT_FLOAT", {-1, 2, 2}));
}

constexpr char kThreeRows[] = R"({"signature_name": "serving_default", "instances": [
  {"tag": "foo", "signal": [1, 2, 3, 4, 5], "sensor": [[1, 2], [3, 4]]},
  {"tag": "bar", "signal": [3, 4, 1, 2, 5], "sensor": [[4, 5], [6, 8]]}]})";
constexpr char kThreeColumns[] = R"({"inputs": {"tag": ["foo", "bar"],
  "signal": [[1, 2, 3, 4, 5], [3, 4, 1, 2, 5]],
  "sensor": [[[1, 2], [3, 4]], [[4, 5], [6, 8]]]}, "signature_name": ""})";

TEST(PredictJson, RowsAndColumnsAreTheSameTensors) {
  const auto served = ThreeInputs();
  for (const char* body : {kThreeRows, kThreeColumns}) {
    const auto read = AskJson(*served, body);
    ASSERT_TRUE(read->status.ok()) << read->status;
    EXPECT_EQ(read->layout, body == kThreeRows ? JsonLayout::kRows : JsonLayout::kColumns);
    EXPECT_THAT(read->Values<std::string>("tag"), ElementsAre("foo", "bar"));
    EXPECT_EQ(read->Input("signal").shape, Shape({2, 5}));
    EXPECT_THAT(read->Values<float>("signal"), ElementsAre(1, 2, 3, 4, 5, 3, 4, 1, 2, 5));
    EXPECT_EQ(read->Input("sensor").shape, Shape({2, 2, 2}));
    EXPECT_THAT(read->Values<float>("sensor"), ElementsAre(1, 2, 3, 4, 4, 5, 6, 8));
    EXPECT_GT(read->asked.held_bytes, std::strlen(body));
  }
}

TEST(PredictJson, ASingleInputNeedsNoName) {
  const auto served = JsonModel(JsonNode("x", "DT_FLOAT", {-1}));
  for (const char* body :
       {R"({"instances": [1.0, 2.0, 5.0]})", R"({"instances":[{"x":1},{"x":2},{"x":5}]})",
        R"({"inputs": [1, 2, 5]})", R"({"inputs": {"x": [1e0, 0.2e1, 5]}})"}) {
    const auto read = AskJson(*served, body);
    ASSERT_TRUE(read->status.ok()) << body << read->status;
    EXPECT_THAT(read->Values<float>("x"), ElementsAre(1, 2, 5)) << body;
  }
  const auto scalar = JsonModel(JsonNode("x", "DT_INT32", {}));
  const auto read = AskJson(*scalar, R"({"inputs": 7})");
  ASSERT_TRUE(read->status.ok()) << read->status;
  EXPECT_THAT(read->Values<int32_t>("x"), ElementsAre(7));
}

TEST(PredictJson, BytesAreBase64) {
  const auto served = JsonModel(JsonNode("image_bytes", "DT_STRING", {-1}));
  for (
      const char* body :
      {R"({"instances": [{"b64": "aW1hZ2UgYnl0ZXM="}, {"b64": "AP8="}]})",
       R"({"instances": [{"image_bytes": {"b64": "aW1hZ2UgYnl0ZXM="}}, {"image_bytes": {"b64": "AP8"}}]})",
       R"({"inputs": ["image bytes", {"b64": "AP8="}]})"}) {
    const auto read = AskJson(*served, body);
    ASSERT_TRUE(read->status.ok()) << body << read->status;
    EXPECT_THAT(read->Values<std::string>("image_bytes"),
                ElementsAre("image bytes", std::string("\0\xff", 2)))
        << body;
  }
  const auto one =
      AskJson(*JsonModel(JsonNode("x", "DT_STRING", {})), R"({"inputs": {"b64": "AA=="}})");
  ASSERT_TRUE(one->status.ok()) << one->status;
  EXPECT_THAT(one->Values<std::string>("x"), ElementsAre(std::string("\0", 1)));
  // An input may have the name.
  const auto named = AskJson(*JsonModel(JsonNode("b64", "DT_STRING", {-1})),
                             R"({"instances": [{"b64": "AA=="}]})");
  ASSERT_TRUE(named->status.ok()) << named->status;
  EXPECT_THAT(named->Values<std::string>("b64"), ElementsAre("AA=="));
}

TEST(PredictJson, NumbersThatJsonLacks) {
  const auto served = JsonModel(JsonNode("x", "DT_FLOAT", {-1}) + JsonNode("y", "DT_DOUBLE", {-1}));
  const auto read = AskJson(
      *served,
      R"({"inputs": {"x": [NaN, Infinity, -Infinity, -0.0], "y": [NaN ,Infinity, -Infinity]}})");
  ASSERT_TRUE(read->status.ok()) << read->status;
  const auto x = read->Values<float>("x");
  EXPECT_TRUE(std::isnan(x[0]));
  EXPECT_EQ(x[1], std::numeric_limits<float>::infinity());
  EXPECT_EQ(x[2], -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::signbit(x[3]));
  EXPECT_TRUE(std::isnan(read->Values<double>("y")[0]));
  EXPECT_EQ(read->Values<double>("y")[2], -std::numeric_limits<double>::infinity());
}

TEST(PredictJson, DecimalsAreRoundedOnce) {
  const auto served = JsonModel(JsonNode("x", "DT_FLOAT", {-1}));
  // Each lies so near the middle of two floats that the nearest double is that middle.
  const std::vector<std::string> texts = {"1.00000017881393432617187499",
                                          "1.00000017881393432617187501",
                                          "1.0000000596046447753906250001",
                                          "16777217.0000000001",
                                          "1e-45",
                                          "2.1e-45",
                                          "7.006492321624085e-46",
                                          "1e-60",
                                          "0.1"};
  std::string body;
  for (const std::string& text : texts) absl::StrAppend(&body, body.empty() ? "" : ",", text);
  const auto read = AskJson(*served, absl::StrCat(R"({"inputs":[)", body, "]}"));
  ASSERT_TRUE(read->status.ok()) << read->status;
  for (size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ(read->Values<float>("x")[i], std::strtof(texts[i].c_str(), nullptr)) << texts[i];
}

TEST(PredictJson, IntegersAreExact) {
  const auto served = JsonModel(JsonNode("i", "DT_INT64", {-1}) + JsonNode("u", "DT_UINT64", {-1}) +
                                JsonNode("b", "DT_INT8", {-1}) + JsonNode("t", "DT_BOOL", {-1}));
  const auto read = AskJson(
      *served, R"({"inputs": {"i": [9007199254740993, -9223372036854775808, 9223372036854775807],
                              "u": [18446744073709551615, 0], "b": [-128, 127], "t": [true,false]}})");
  ASSERT_TRUE(read->status.ok()) << read->status;
  EXPECT_THAT(read->Values<int64_t>("i"), ElementsAre(9007199254740993, INT64_MIN, INT64_MAX));
  EXPECT_THAT(read->Values<uint64_t>("u"), ElementsAre(UINT64_MAX, 0));
  EXPECT_THAT(read->Values<int8_t>("b"), ElementsAre(-128, 127));
  EXPECT_THAT(read->Values<bool>("t"), ElementsAre(true, false));
}

TEST(PredictJson, ListsWithoutElementsHaveTheDimsOfTheSignature) {
  const auto served = JsonModel(JsonNode("x", "DT_FLOAT", {-1, 2, 3}));
  for (const char* body :
       {R"({"instances": []})", R"({"inputs": []})", R"({"inputs": {"x": []}})"}) {
    const auto read = AskJson(*served, body);
    ASSERT_TRUE(read->status.ok()) << body << read->status;
    EXPECT_EQ(read->Input("x").shape, Shape({0, 2, 3})) << body;
  }
}

TEST(PredictJson, RefusalsNameThePath) {
  const auto three = ThreeInputs();
  const auto float2 = JsonModel(JsonNode("x", "DT_FLOAT", {-1, 2}));
  const auto int8 = JsonModel(JsonNode("x", "DT_INT8", {-1}));
  const auto text = JsonModel(JsonNode("x", "DT_STRING", {-1}));
  const struct {
    const FakeServed& served;
    const char* body;
    const char* says;
  } kCases[] = {
      {*float2, R"({"instances": [{"x":[1,2]},{"x":[1,2]},{"x":[1,2]},{"x":[1,"a"]}]})",
       "instances[3].x[1]: the string 'a' where a float32 belongs"},
      {*float2, R"({"instances": [[1, 2], [1, null]]})",
       "instances[1][1]: null where a float32 belongs"},
      {*float2, R"({"instances": [[1, 2], [1, true]]})", "instances[1][1]: true where"},
      {*float2, R"({"instances": [[1, 2], [1, nan]]})", "instances[1][1]: nan where"},
      {*float2, R"({"instances": [[1, 2], [1]]})",
       "instances[1]: a list of 1 where those before have 2"},
      {*float2, R"({"instances": [[1, 2], [1, 2, 3]]})", "instances[1]: a list of 3"},
      {*float2, R"({"instances": [[1, 2], 3]})", "instances[1]: the number 3 where a list belongs"},
      {*float2, R"({"instances": [[1, [2]]]})", "instances[0][1]: a list where a float32 belongs"},
      {*float2, R"({"instances": [[[1], 2]]})",
       "instances[0][1]: the number 2 where a list belongs"},
      {*float2, R"({"instances": [[1, 1e39]]})",
       "instances[0][1]: 1e39 is out of the range of float32"},
      {*float2, R"({"instances": [[1, {"a": 1}]]})", "instances[0][1]: an object where"},
      {*float2, R"({"instances": [[1, 2, 3]]})", "input 'x'"},
      {*float2, R"({"instances": {"x": 1}})", "instances: an object where a list"},
      {*float2, R"({"instances": [{"y": 1}]})", "instances[0]: "},
      {*float2, R"({"instances": [{"x": [1,2]}, [1,2]]})",
       "instances[1]: a list where an object belongs"},
      {*float2, R"({"instances": [{"x": [1,2], "x": [1,2]}]})", "instances[0] has 'x' twice"},
      {*float2, R"({"inputs": {"x": [[1,2]], "x": [[1,2]]}})", "inputs has 'x' twice"},
      {*float2, R"({"inputs": [[1,2]], "instances": [[1,2]]})", "both 'instances' and 'inputs'"},
      {*float2, R"({"inputs": [[1,2]], "inputs": [[1,2]]})", "'inputs' twice"},
      {*float2, R"({"signature_name": "serving_default"})", "neither 'instances'"},
      {*float2, R"({"signature_name": 1, "inputs": [[1,2]]})",
       "signature_name: the number 1 where a string"},
      {*three, R"({"instances": [1, 2]})", "several inputs ('tag', 'signal', 'sensor')"},
      {*three, R"({"instances": [{"tag": "a", "signal": [1,2,3,4,5]}]})", "takes inputs"},
      {*three, R"({"instances": [{"tag": "a"}, {"tag": "a", "signal": [1]}]})",
       "instances[1] has 'signal', which instances[0] has not"},
      {*three, R"({"instances": [{"tag": "a", "signal": [1]}, {"tag": "a"}]})",
       "instances[1] has no 'signal', which instances[0] has"},
      {*int8, R"({"instances": [1, 128]})", "instances[1]: 128 is out of the range of int8"},
      {*int8, R"({"instances": [18446744073709551616]})",
       "instances[0]: 18446744073709551616 is out of"},
      {*int8, R"({"instances": [1.0]})",
       "instances[0]: the number 1.0 where an int8 belongs; write whole"},
      {*int8, R"({"instances": [NaN]})", "instances[0]: the token 'NaN' where an int8 belongs"},
      {*text, R"({"instances": ["a", 1]})", "instances[1]: the number 1 where a string belongs"},
      {*text, R"({"instances": [{"b64": "?"}]})", "instances[0]: b64 holds no base64"},
      {*text, R"({"instances": ["a", {"b64": 1}]})",
       "instances[1]: an object where a string belongs"},
      {*text, R"({"instances": ["a", {}]})", "instances[1]: an empty object"},
  };
  for (const auto& c : kCases) {
    const auto read = AskJson(c.served, c.body);
    EXPECT_TRUE(absl::IsInvalidArgument(read->status)) << c.body << read->status;
    EXPECT_THAT(std::string(read->status.message()), HasSubstr(c.says)) << c.body;
  }
}

TEST(PredictJson, WhatIsNoJsonIsRefused) {
  const auto served = JsonModel(JsonNode("x", "DT_FLOAT", {-1}));
  for (const char* body : {"",
                           " ",
                           "x",
                           "[]",
                           "1",
                           "\"a\"",
                           "{",
                           R"({"instances")",
                           R"({"instances":)",
                           R"({"instances": [1)",
                           R"({"instances": [1,]})",
                           R"({"instances": [1,,2]})",
                           R"({"instances": [1 2]})",
                           R"({"instances": [01]})",
                           R"({"instances": [1.]})",
                           R"({"instances": [+1]})",
                           R"({"instances": [1}])",
                           R"({"instances": [1]} x)",
                           R"({"instances": [1]}{})",
                           R"({"instances": [1]},)",
                           R"({"instances": [1]]})",
                           R"({"instances": [1], "other": [1, tru]})",
                           R"({"instances": [1], "other": {"a": "\x"}})",
                           "{\"instances\": [1], \"\xff\": 1}",
                           R"({"instances": [1] "a": 2})",
                           R"({'instances': [1]})"}) {
    const auto read = AskJson(*served, body);
    EXPECT_TRUE(absl::IsInvalidArgument(read->status)) << body << read->status;
  }
  std::string deep =
      R"({"instances": )" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  EXPECT_THAT(std::string(AskJson(*served, deep)->status.message()), HasSubstr("nested"));
  deep = R"({"instances": [1], "other": )" + std::string(100, '[') + std::string(100, ']') + "}";
  EXPECT_THAT(std::string(AskJson(*served, deep)->status.message()),
              HasSubstr("nested more than 64"));
  const auto other =
      AskJson(*served, R"({"id": "7", "other": [1, {"a": NaN}, null, true], "instances": [1]})");
  EXPECT_TRUE(other->status.ok()) << other->status;
}

TEST(PredictJson, MemoryIsCharged) {
  const auto served = JsonModel(JsonNode("x", "DT_FLOAT", {-1}));
  std::string body = R"({"inputs": [0)";
  for (int i = 0; i < 100'000; ++i) body += ",0";
  body += "]}";
  EXPECT_TRUE(AskJson(*served, body)->status.ok());
  EXPECT_TRUE(absl::IsResourceExhausted(AskJson(*served, body, nullptr, 100'000)->status));
  const MemoryBudget little(int64_t{1} << 20);
  EXPECT_TRUE(absl::IsResourceExhausted(AskJson(*served, body, &little)->status));
  EXPECT_EQ(little.in_use(), 0);
  const MemoryBudget enough(int64_t{100} << 20);
  {
    const auto read = AskJson(*served, body, &enough);
    EXPECT_TRUE(read->status.ok()) << read->status;
    EXPECT_GT(enough.in_use(), 400'000) << "the tensor's";
    EXPECT_LT(enough.in_use(), 800'000) << "the parser's was given back";
  }
  EXPECT_EQ(enough.in_use(), 0);
}

// ---- replies

std::string ReplyTo(const FakeServed& served, const std::string& body,
                    const std::vector<TensorView>& outputs) {
  const auto read = AskJson(served, body);
  EXPECT_TRUE(read->status.ok()) << read->status;
  std::string reply;
  const absl::Status status =
      EncodePredictJson(read->asked, outputs, read->layout, nullptr, &reply);
  return status.ok() ? reply : status.ToString();
}

TEST(PredictJson, RepliesHaveTheLayoutOfTheBody) {
  const auto served = ThreeInputs();
  std::vector<std::string> tags = {"a\"\\\n\x01\xc3\xa4", std::string("\xff\0", 2)};
  std::vector<float> signal = {1,
                               0.1f,
                               1e-7f,
                               16777216,
                               3.4028235e38f,
                               -0.0f,
                               std::numeric_limits<float>::quiet_NaN(),
                               std::numeric_limits<float>::infinity(),
                               -std::numeric_limits<float>::infinity(),
                               5};
  std::vector<float> sensor = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<TensorView> outputs;
  for (const SignatureTensor& output : served->model()->Find("")->def().outputs) {
    if (output.key == "tag_out") outputs.push_back({DType::kString, Shape({2}), tags.data()});
    if (output.key == "signal_out")
      outputs.push_back({DType::kFloat32, Shape({2, 5}), signal.data()});
    if (output.key == "sensor_out")
      outputs.push_back({DType::kFloat32, Shape({2, 2, 2}), sensor.data()});
  }
  ASSERT_EQ(outputs.size(), 3u);
  const std::string tag0 = "\"a\\\"\\\\\\n\\u0001\xc3\xa4\"", tag1 = R"({"b64":"/wA="})";
  const std::string signal0 = "[1.0,0.1,1e-07,16777216.0,3.4028235e+38]",
                    signal1 = "[-0.0,NaN,Infinity,-Infinity,5.0]";
  EXPECT_THAT(ReplyTo(*served, kThreeRows, outputs),
              AllOf(StartsWith(R"({"predictions":[{")"), HasSubstr(R"("tag_out":)" + tag0),
                    HasSubstr(R"("signal_out":)" + signal0), HasSubstr(R"("tag_out":)" + tag1),
                    HasSubstr(R"("signal_out":)" + signal1), HasSubstr("[[5.0,6.0],[7.0,8.0]]")));
  EXPECT_THAT(
      ReplyTo(*served, kThreeColumns, outputs),
      AllOf(StartsWith(R"({"outputs":{")"), HasSubstr(R"("tag_out":[)" + tag0 + "," + tag1 + "]"),
            HasSubstr(R"("signal_out":[)" + signal0 + "," + signal1 + "]"),
            HasSubstr("[[[1.0,2.0],[3.0,4.0]],[[5.0,6.0],[7.0,8.0]]]")));
}

TEST(PredictJson, ASingleOutputHasNoName) {
  const auto served = JsonModel(JsonNode("x", "DT_INT64", {-1}));
  std::vector<int64_t> values = {INT64_MIN, 9007199254740993};
  EXPECT_EQ(
      ReplyTo(*served, R"({"instances": [1, 2]})", {{DType::kInt64, Shape({2}), values.data()}}),
      "{\"predictions\":[-9223372036854775808,9007199254740993]}\n");
  EXPECT_EQ(ReplyTo(*served, R"({"inputs": [1, 2]})", {{DType::kInt64, Shape({2}), values.data()}}),
            "{\"outputs\":[-9223372036854775808,9007199254740993]}\n");
  EXPECT_EQ(ReplyTo(*served, R"({"instances": []})", {{DType::kInt64, Shape({0}), values.data()}}),
            "{\"predictions\":[]}\n");
  EXPECT_THAT(
      ReplyTo(*served, R"({"instances": [1, 2]})", {{DType::kInt64, Shape(), values.data()}}),
      AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("has no rows"), HasSubstr("'inputs'")));
  EXPECT_EQ(ReplyTo(*served, R"({"inputs": [1]})", {{DType::kInt64, Shape(), values.data()}}),
            "{\"outputs\":-9223372036854775808}\n");
}

TEST(PredictJson, OutputsNamedBytesAreBase64) {
  const auto served = JsonModel(R"(node { name: "x" op: "Placeholder"
      attr { key: "dtype" value { type: DT_STRING } } attr { key: "shape" value { shape { dim { size: -1 } } } } }
    node { name: "out_bytes" op: "Identity" input: "x" attr { key: "T" value { type: DT_STRING } } })");
  std::vector<std::string> values = {"abc"};
  EXPECT_EQ(
      ReplyTo(*served, R"({"instances": ["a"]})", {{DType::kString, Shape({1}), values.data()}}),
      "{\"predictions\":[{\"b64\":\"YWJj\"}]}\n");
}

// ---- round trips

template <typename T>
void ExpectRoundTrip(const char* dtype_name, DType dtype, std::vector<T> values) {
  const auto served = JsonModel(JsonNode("x", dtype_name, {-1}));
  ASSERT_NE(served, nullptr);
  const TensorView view = {dtype, Shape({static_cast<int64_t>(values.size())}), values.data()};
  std::string body = R"({"inputs":)";
  AppendJsonTensor(view, 0, 0, false, &body);
  const auto read = AskJson(*served, body + "}");
  ASSERT_TRUE(read->status.ok()) << dtype_name << read->status;
  const TensorView& got = read->Input("x");
  ASSERT_EQ(got.shape, view.shape);
  for (size_t i = 0; i < values.size(); ++i) {
    const T one = got.as<T>()[i];
    if (std::memcmp(&one, &values[i], sizeof(T)) == 0) continue;
    const auto is_nan = [](T x) { return static_cast<double>(x) != static_cast<double>(x); };
    ASSERT_TRUE(is_nan(one) && is_nan(values[i])) << dtype_name << " " << i;
  }
}

TEST(PredictJson, EveryNumberIsReadBackAsItWas) {
  std::mt19937_64 random(35);
  const auto any = [&]<typename T>(T, size_t count) {
    std::vector<T> values(count);
    for (T& value : values) {
      const uint64_t bits = random();
      if constexpr (std::is_same_v<T, bool>)
        value = bits % 2 != 0;
      else
        std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
    }
    return values;
  };
  ExpectRoundTrip("DT_FLOAT", DType::kFloat32, any(float(), 300'000));
  ExpectRoundTrip("DT_DOUBLE", DType::kFloat64, any(double(), 100'000));
  ExpectRoundTrip("DT_HALF", DType::kFloat16, any(Half(), 65536));
  ExpectRoundTrip("DT_BFLOAT16", DType::kBFloat16, any(BFloat16(), 65536));
  ExpectRoundTrip("DT_INT8", DType::kInt8, any(int8_t(), 500));
  ExpectRoundTrip("DT_UINT8", DType::kUInt8, any(uint8_t(), 500));
  ExpectRoundTrip("DT_INT16", DType::kInt16, any(int16_t(), 5000));
  ExpectRoundTrip("DT_UINT16", DType::kUInt16, any(uint16_t(), 5000));
  ExpectRoundTrip("DT_INT32", DType::kInt32, any(int32_t(), 5000));
  ExpectRoundTrip("DT_UINT32", DType::kUInt32, any(uint32_t(), 5000));
  ExpectRoundTrip("DT_INT64", DType::kInt64, any(int64_t(), 5000));
  ExpectRoundTrip("DT_UINT64", DType::kUInt64, any(uint64_t(), 5000));
  std::vector<float> edges = {0.0f,          -0.0f, 1e-45f, 1.1754942e-38f, 1.17549435e-38f,
                              3.4028235e38f, 0.1f};
  for (int exponent = -149; exponent < 128; ++exponent)
    for (const int step : {-1, 0, 1})
      edges.push_back(std::bit_cast<float>(std::bit_cast<uint32_t>(std::ldexp(1.0f, exponent)) +
                                           static_cast<uint32_t>(step)));
  ExpectRoundTrip("DT_FLOAT", DType::kFloat32, edges);
}

}  // namespace
}  // namespace floe::server
