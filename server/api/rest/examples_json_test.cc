#include "server/api/rest/examples_json.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <limits>

#include "server/api/rest/rest_for_test.h"
#include "tensorflow/core/example/example.pb.h"

namespace floe::server {
namespace {

using ::testing::HasSubstr;

constexpr char kExampleGraph[] = R"(
node { name: "inputs" op: "Placeholder" attr { key: "dtype" value { type: DT_STRING } }
  attr { key: "shape" value { shape { dim { size: -1 } } } } }
node { name: "scores" op: "StringToNumber" input: "inputs" attr { key: "out_type" value { type: DT_FLOAT } } }
node { name: "classes" op: "Identity" input: "inputs" attr { key: "T" value { type: DT_STRING } } }
)";

struct Asked {
  absl::Status status;
  Inference asked;
  std::string At(int64_t i) const { return asked.inputs[0].as<std::string>()[i]; }
};

class ExamplesJson : public testing::Test {
 protected:
  std::unique_ptr<Asked> Ask(const std::string& body, int64_t max_bytes = INT64_MAX) {
    auto out = std::make_unique<Asked>();
    out->asked.storage = InputStorage(max_bytes);
    const std::string padded = body + std::string(kJsonPadding, '\0');
    const auto find = [this](const ModelSpec&) -> absl::StatusOr<const ServedModel*> {
      return served_.get();
    };
    out->status = DecodeExamplesJson(std::string_view(padded).substr(0, body.size()), {"m", {}, {}},
                                     {}, nullptr, find, &out->asked);
    return out;
  }
  std::string Refused(const std::string& body) { return std::string(Ask(body)->status.message()); }
  // The only Example of a body.
  std::string One(const std::string& features) {
    const auto asked = Ask(R"({"examples": [)" + features + "]}");
    EXPECT_TRUE(asked->status.ok()) << asked->status;
    if (!asked->status.ok() || asked->asked.inputs[0].elements() != 1) return "";
    return Text(asked->At(0));
  }
  static std::string Text(const std::string& bytes) {
    tensorflow::Example example;
    EXPECT_TRUE(example.ParseFromString(bytes));
    google::protobuf::TextFormat::Printer printer;
    printer.SetSingleLineMode(true);
    std::string text;
    EXPECT_TRUE(printer.PrintToString(example, &text));
    return text;
  }
  static std::string Features(const std::string& inner) {
    tensorflow::Example example;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString("features {" + inner + "}", &example))
        << inner;
    return Text(example.SerializeAsString());
  }

  std::shared_ptr<FakeServed> served_ = JsonModel(kExampleGraph);
};

TEST_F(ExamplesJson, ValuesBecomeFeatures) {
  const struct {
    const char *json, *features;
  } kCases[] = {
      {"{}", ""},
      {R"({"x": 3})", "feature { key: 'x' value { int64_list { value: 3 } } }"},
      {R"({"x": [1, -1, 9223372036854775807, -9223372036854775808]})",
       "feature { key: 'x' value { int64_list { value: [1, -1, 9223372036854775807, "
       "-9223372036854775808] } } }"},
      {R"({"x": [true, false]})", "feature { key: 'x' value { int64_list { value: [1, 0] } } }"},
      {R"({"x": 3.0})", "feature { key: 'x' value { float_list { value: 3 } } }"},
      {R"({"x": [1e2, -0.1, 3.4028234663852886e38, -Infinity]})",
       "feature { key: 'x' value { float_list { value: [100, -0.1, 3.4028234663852886e38, -inf] } "
       "} }"},
      {R"({"x": "a\u00e9"})", "feature { key: 'x' value { bytes_list { value: 'a\\303\\251' } } }"},
      {R"({"x": ["", {"b64": "/w=="}]})",
       "feature { key: 'x' value { bytes_list { value: ['', '\\377'] } } }"},
      {R"({"x": []})", "feature { key: 'x' value {} }"},
      {R"({"x": 1, "y": ["b"], "x": 2})",
       "feature { key: 'x' value { int64_list { value: 2 } } } "
       "feature { key: 'y' value { bytes_list { value: 'b' } } }"},
  };
  for (const auto& c : kCases) EXPECT_EQ(One(c.json), Features(c.features)) << c.json;
  EXPECT_THAT(One(R"({"x": NaN})"), HasSubstr("float_list { value: nan }"));
}

TEST_F(ExamplesJson, TheContextIsInEveryExampleWhereverItStands) {
  for (const char* body :
       {R"({"context": {"c": 1.5, "x": 1}, "examples": [{"x": 7}, {}], "signature_name": ""})",
        R"({"examples": [{"x": 7}, {}], "other": [1], "context": {"c": 1.5, "x": 1}})"}) {
    const auto asked = Ask(body);
    ASSERT_TRUE(asked->status.ok()) << asked->status;
    ASSERT_EQ(asked->asked.inputs[0].shape, Shape({2}));
    const std::string c = "feature { key: 'c' value { float_list { value: 1.5 } } } ";
    EXPECT_EQ(Text(asked->At(0)),
              Features(c + "feature { key: 'x' value { int64_list { value: 7 } } }"));
    EXPECT_EQ(Text(asked->At(1)),
              Features(c + "feature { key: 'x' value { int64_list { value: 1 } } }"));
    EXPECT_GT(asked->asked.held_bytes, std::string_view(body).size());
  }
}

TEST_F(ExamplesJson, WhatIsWrongIsNamed) {
  const struct {
    const char *body, *says;
  } kCases[] = {
      {"", "the body is empty"},
      {"[]", "no JSON object"},
      {"{}", "the body has no 'examples'"},
      {R"({"instances": [1]})", "'instances' and 'inputs' are for :predict"},
      {R"({"examples": {}})", "examples: an object where a list of objects belongs"},
      {R"({"examples": []})", "examples: the list is empty"},
      {R"({"examples": [{}], "examples": [{}]})", "'examples' twice"},
      {R"({"examples": [{}], "context": {}, "context": {}})", "'context' twice"},
      {R"({"examples": [{}], "context": [1]})", "context: a list where an object with features"},
      {R"({"examples": [{}, 3]})", "examples[1]: the number 3 where an object with features"},
      {R"({"examples": [{"x": null}]})", "examples[0].x: null where a number, a string"},
      {R"({"examples": [{"x": [[1]]}]})", "examples[0].x[0]: a list where a number"},
      {R"({"examples": [{"x": [1, 2.5]}]})",
       "examples[0].x[1]: the number 2.5 where the values before are integers; a feature is of one "
       "type. A float has a point or an exponent: write 1.0"},
      {R"({"examples": [{"x": ["a", 2]}]})",
       "examples[0].x[1]: the number 2 where the values before are strings"},
      {R"({"examples": [{"x": 9223372036854775808}]})",
       "examples[0].x: the number 9223372036854775808"},
      {R"({"examples": [{"x": 1e39}]})", "out of range"},
      {R"({"examples": [{"x": Nan}]})", "examples[0].x: the token 'Nan' where a number"},
      {R"({"examples": [{"x": {"b64": "*"}}]})", "examples[0].x: b64 holds no base64"},
      {R"({"examples": [{"x": {"b": "AA=="}}]})", "bytes are sent as {\"b64\""},
      {R"({"examples": [{"x": {}}]})", "examples[0].x: an empty object"},
      {R"({"examples": [{}], "signature_name": 3})", "signature_name: the number 3 where a string"},
      {R"({"examples": [{}], "signature_name": "none"})", "has no signature 'none'"},
      {R"({"examples": [{}]} {})", "something follows"},
      {R"({"examples": [{}]} 3)", "JSON Parse error"},
      {R"({"examples": [{}], "other": [1)", "JSON Parse error"},
      {R"({"examples": [{"x": 1)", "JSON Parse error"},
  };
  for (const auto& c : kCases) EXPECT_THAT(Refused(c.body), HasSubstr(c.says)) << c.body;
}

TEST_F(ExamplesJson, MemoryIsCharged) {
  const std::string context =
      R"({"context": {"c": ")" + std::string(10'000, 'c') + R"("}, "examples": [{})";
  std::string many = context;
  for (int i = 0; i < 1000; ++i) many += ",{}";
  EXPECT_TRUE(Ask(context + "]}", 1 << 20)->status.ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Ask(many + "]}", 1 << 20)->status));
  std::string examples = R"({"examples": [{})";
  for (int i = 0; i < 1000; ++i) examples += ",{}";
  EXPECT_TRUE(absl::IsResourceExhausted(Ask(examples + "]}", 30'000)->status));
}

TEST_F(ExamplesJson, Replies) {
  const auto asked = Ask(R"({"examples": [{}, {}]})");
  ASSERT_TRUE(asked->status.ok());
  std::string labels[] = {"a\"b", "", "c", "d"};
  float scores[] = {1, 0.1f, -0.0f, std::numeric_limits<float>::infinity()};
  std::string reply;
  std::vector<TensorView> outputs;
  for (const SignatureTensor& output : asked->asked.signature->def().outputs)
    outputs.push_back(output.key == "scores" ? TensorView{DType::kFloat32, Shape({2, 2}), scores}
                                             : TensorView{DType::kString, Shape({2, 2}), labels});
  ASSERT_TRUE(
      EncodeExamplesJson(asked->asked, outputs, ExampleMethod::kClassify, nullptr, &reply).ok());
  EXPECT_EQ(reply,
            "{\"results\":[[[\"a\\\"b\",1.0],[\"\",0.1]],[[\"c\",-0.0],[\"d\",Infinity]]]}\n");
  labels[3] = "\xff";
  const absl::Status wrong =
      EncodeExamplesJson(asked->asked, outputs, ExampleMethod::kClassify, nullptr, &reply);
  EXPECT_THAT(std::string(wrong.message()), HasSubstr("is no UTF-8"));
}

}  // namespace
}  // namespace floe::server
