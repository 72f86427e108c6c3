// ModelInfer: every datatype both ways against protobuf's own reading, and every mismatch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "server/api/kserve_for_test.h"
#include "server/request/decode_infer.h"

namespace floe::server {
namespace {

using inference::InferTensorContents;
using inference::ModelInferRequest;
using inference::ModelInferResponse;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Strings in raw contents, each behind its length.
std::string Prefixed(const std::vector<std::string>& strings) {
  std::string bytes;
  for (const std::string& one : strings) {
    const auto size = static_cast<uint32_t>(one.size());
    bytes.append(reinterpret_cast<const char*>(&size), sizeof(size));
    bytes += one;
  }
  return bytes;
}

ModelInferRequest Raw(const std::string& model, const std::string& datatype,
                      const std::string& bytes, int64_t rows = 3) {
  ModelInferRequest request;
  request.set_model_name(model);
  auto* const x = request.add_inputs();
  x->set_name("x");
  x->set_datatype(datatype);
  x->add_shape(rows);
  x->add_shape(2);
  request.add_raw_input_contents(bytes);
  return request;
}

// 6 values that a list of `contents` can hold.
void FillContents(const std::string& datatype, InferTensorContents* to) {
  for (int i = -3; i < 3; ++i) {
    if (datatype == "BOOL") to->add_bool_contents(i % 2 == 0);
    if (datatype[0] == 'I' && datatype != "INT64") to->add_int_contents(i * 42);
    if (datatype == "INT64") to->add_int64_contents(i * (int64_t{1} << 40));
    if (datatype[0] == 'U' && datatype != "UINT64") to->add_uint_contents((i + 3) * 51);
    if (datatype == "UINT64") to->add_uint64_contents(~uint64_t{0} - (i + 3));
    if (datatype == "FP32") to->add_fp32_contents(static_cast<float>(i) / 3);
    if (datatype == "FP64") to->add_fp64_contents(i / 3.0);
    if (datatype == "BYTES") to->add_bytes_contents(std::string(i + 3, '\xff'));
  }
}

TEST_F(KServe, RawOfEveryDatatype) {
  std::mt19937 random(5);
  for (const TestType& type : kTestTypes) {
    SCOPED_TRACE(type.datatype);
    Serve(type.datatype, MakeEcho(type.datatype, type.tensorflow));
    Echo(type.datatype, {0});
    std::string bytes(6 * type.size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % (type.size == 1 ? 2 : 256));
    if (type.size == 0) bytes = Prefixed({"a", "", std::string(300, 'b'), "\xff", "\n", "0"});
    ModelInferRequest request = Raw(type.datatype, type.datatype, bytes);
    request.set_id("number seven");
    const ModelInferResponse reply = Infer(request);
    EXPECT_EQ(reply.model_name(), type.datatype);
    EXPECT_EQ(reply.model_version(), "3");
    EXPECT_EQ(reply.id(), "number seven");
    ASSERT_EQ(reply.outputs_size(), 1);
    EXPECT_EQ(reply.outputs(0).name(), "y");
    EXPECT_EQ(reply.outputs(0).datatype(), type.datatype);
    EXPECT_THAT(reply.outputs(0).shape(), testing::ElementsAre(3, 2));
    EXPECT_FALSE(reply.outputs(0).has_contents());
    ASSERT_EQ(reply.raw_output_contents_size(), 1);
    EXPECT_EQ(reply.raw_output_contents(0), bytes);
  }
}

TEST_F(KServe, TypedOfEveryDatatype) {
  for (const TestType& type : kTestTypes) {
    const std::string name = type.datatype;
    SCOPED_TRACE(name);
    Serve(name, MakeEcho(name, type.tensorflow));
    Echo(name, {0});
    ModelInferRequest request = Raw(name, name, "");
    request.clear_raw_input_contents();
    FillContents(name, request.mutable_inputs(0)->mutable_contents());
    if (name == "FP16" || name == "BF16") {
      EXPECT_THAT(Refused(request), AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("'x'"),
                                          HasSubstr("send raw_input_contents")));
      continue;
    }
    const ModelInferResponse reply = Infer(request);
    ASSERT_EQ(reply.outputs_size(), 1);
    EXPECT_EQ(reply.raw_output_contents_size(), 0);
    EXPECT_EQ(reply.outputs(0).contents().SerializeAsString(),
              request.inputs(0).contents().SerializeAsString());
  }
}

TEST_F(KServe, NoRowsAtAll) {
  for (const TestType& type : kTestTypes) {
    Serve(type.datatype, MakeEcho(type.datatype, type.tensorflow));
    Echo(type.datatype, {0});
    ModelInferRequest request = Raw(type.datatype, type.datatype, "", 0);
    ModelInferResponse reply = Infer(request);
    ASSERT_EQ(reply.raw_output_contents_size(), 1) << "the clients count entries";
    EXPECT_EQ(reply.raw_output_contents(0), "");
    request.clear_raw_input_contents();
    reply = Infer(request);
    ASSERT_EQ(reply.outputs_size(), 1);
    EXPECT_THAT(reply.outputs(0).shape(), testing::ElementsAre(0, 2));
  }
}

TEST_F(KServe, RawValuesStayInTheMessage) {
  Serve("FP32", MakeEcho("FP32", "DT_FLOAT"));
  Echo("FP32", {0});
  const std::string bytes =
      Raw("FP32", "FP32", std::string(8 << 20, 'f'), 1 << 20).SerializeAsString();
  const auto owner = std::make_shared<const std::string>(bytes);
  CallHead head;
  head.path = InferPath("ModelInfer");
  head.cancel = std::make_shared<CancelToken>();
  head.local = true;
  const auto responder = std::make_shared<FakeResponder>();
  // Small enough for this thread: larger messages are decoded by another one.
  const auto small = std::make_shared<const std::string>(
      Raw("FP32", "FP32", std::string(8 << 10, 'f'), 1 << 10).SerializeAsString());
  Invoke(*table_.Find(InferPath("ModelInfer")), head, Message{*small, small}, responder);
  ASSERT_TRUE(responder->status.ok()) << responder->status;
  ASSERT_EQ(inputs_.size(), 1u);
  EXPECT_GE(inputs_[0], static_cast<const void*>(small->data()));
  EXPECT_LT(inputs_[0], static_cast<const void*>(small->data() + small->size()));
}

constexpr char kFloats[] = "inputs { name: 'x' datatype: 'FP32' shape: [1, 2] ";
constexpr char kIdNumbers[] = "inputs { name: 'ids' datatype: 'INT64' shape: [1] ";

TEST_F(KServe, AsksForOutputsByName) {
  Echo("mnist", {0, 1, 2});
  // The order of the signature's inputs, and so of the echoed outputs, is the model's.
  const auto request = [](const std::string& outputs) {
    return Text(absl::StrCat("model_name: 'mnist' ", kFloats,
                             "contents { fp32_contents: [1, 2] } } ", kIdNumbers,
                             "contents { int64_contents: 300 } } ", outputs));
  };
  registry_.models["mnist"]->on_submit = [](Request asked) {
    std::vector<TensorView> outputs;
    for (const SignatureTensor& output : asked.asked->signature->def().outputs) {
      const char* const from = output.key == "y" ? "x" : output.key == "label" ? "ids" : "training";
      outputs.push_back(asked.asked->Input(asked.asked->signature->FindInput(from)));
    }
    AnswerWith(asked, absl::OkStatus(), outputs);
  };
  ModelInferResponse reply = Infer(request("outputs { name: 'label' } outputs { name: 'y' }"));
  ASSERT_EQ(reply.outputs_size(), 2);
  EXPECT_EQ(reply.outputs(0).name(), "label");
  EXPECT_THAT(reply.outputs(0).contents().int64_contents(), testing::ElementsAre(300));
  EXPECT_THAT(reply.outputs(1).contents().fp32_contents(), testing::ElementsAre(1, 2));
  reply = Infer(request(""));
  EXPECT_EQ(reply.outputs_size(), 3);
  EXPECT_THAT(Refused(request("outputs { name: 'z' }")),
              AllOf(HasSubstr("model 'mnist'"), HasSubstr("no output 'z'")));
  EXPECT_THAT(Refused(request("outputs { name: 'y' } outputs { name: 'y' }")),
              HasSubstr("output 'y' is asked for twice"));
  EXPECT_THAT(Refused(request("outputs { name: 'y' parameters { key: 'classification' value { "
                              "int64_param: 3 } } }")),
              AllOf(HasSubstr("'y'"), HasSubstr("'classification'")));
}

TEST_F(KServe, ModelsAndVersions) {
  const auto refused = [this](const std::string& spec) {
    return Refused(Text(absl::StrCat(spec, kFloats, "} ", kIdNumbers, "}")));
  };
  EXPECT_THAT(refused("model_name: 'none' "), HasSubstr("NOT_FOUND"));
  EXPECT_THAT(refused("model_name: 'mnist' model_version: '5' "), HasSubstr("NOT_FOUND"));
  EXPECT_THAT(refused("model_name: 'mnist' model_version: '4.0' "),
              AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("'4.0'"), HasSubstr("newest")));
  EXPECT_THAT(refused(""), AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("'mnist'")));
  EXPECT_THAT(
      refused(
          "model_name: 'mnist' parameters { key: 'signature_name' value { string_param: 'u' } }"),
      AllOf(HasSubstr("FAILED_PRECONDITION"), HasSubstr("'u'")));
}

TEST_F(KServe, EveryMismatchNamesTheInput) {
  const struct {
    const char *x, *ids, *rest, *expected;
  } cases[] = {
      {"} ", "contents { int64_contents: 1 } }", "", "needs 2 values in fp32_contents"},
      {"contents { fp32_contents: [1, 2, 3] } }", "}", "", "got 3"},
      {"contents { fp32_contents: 1 } }", "}", "", "got 1"},
      {"contents { int_contents: [1, 2] } }", "}", "", "FP32 is read from fp32_contents"},
      {"contents { fp32_contents: 1 int_contents: 1 } }", "}", "", "more than one list"},
      {"contents { fp32_contents: [1, 2] } }", "}", "raw_input_contents: 'abcdefgh'",
       "1 entries for 2 inputs"},
      {"contents { fp32_contents: [1, 2] } }", "}",
       "raw_input_contents: 'abcdefgh' raw_input_contents: 'abcdefgh'",
       "both contents and raw_input_contents"},
      {"}", "}", "raw_input_contents: 'abcdefg' raw_input_contents: 'abcdefgh'",
       "needs 8 bytes of raw_input_contents, got 7"},
      {"}", "}", "raw_input_contents: 'abcdefgh' raw_input_contents: ''",
       "needs 8 bytes of raw_input_contents, got 0"},
      {"parameters { key: 'shared_memory_region' value { string_param: 'r' } } }", "}", "",
       "shared memory"},
  };
  for (const auto& test : cases) {
    const std::string error = Refused(Text(
        absl::StrCat("model_name: 'mnist' ", kFloats, test.x, kIdNumbers, test.ids, test.rest)));
    EXPECT_THAT(error, AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr(test.expected)));
    EXPECT_THAT(error, testing::AnyOf(HasSubstr("input 'x'"), HasSubstr("input 'ids'"),
                                      HasSubstr("2 inputs")));
  }
}

TEST_F(KServe, EveryWrongShapeAndType) {
  const struct {
    const char *x, *expected;
  } cases[] = {
      {"name: 'x' datatype: 'FP64' shape: [1, 2]", "takes FP32, but FP64 was sent; cast it"},
      {"name: 'x' datatype: 'FLOAT' shape: [1, 2]", "datatype 'FLOAT' is unknown; expected FP32"},
      {"name: 'x' shape: [1, 2]", "datatype '' is unknown; expected FP32"},
      {"name: 'x' datatype: 'FP32' shape: [1, 3]", "'x'"},
      {"name: 'x' datatype: 'FP32' shape: 2", "'x'"},
      {"name: 'x' datatype: 'FP32' shape: [-1, 2]", "'x'"},
      {"name: 'x' datatype: 'FP32' shape: [9223372036854775807, 2]", "'x'"},
      {"name: 'x' datatype: 'FP32' shape: [4611686018427387904, 4]", "'x'"},
      {"name: 'x' datatype: 'FP32' shape: [1, 2] } inputs { name: 'x' datatype: 'FP32'", "twice"},
      {"name: 'X' datatype: 'FP32' shape: [1, 2]", "unknown 'X'; nearest: 'x'"},
  };
  for (const auto& test : cases) {
    const auto raw = [](const char*) { return std::string("raw_input_contents: 'abcdefgh' "); };
    std::string text =
        absl::StrCat("model_name: 'mnist' inputs { ", test.x, " } ", kIdNumbers, "} ");
    for (const char* at = test.x; (at = std::strstr(at, "name:")) != nullptr; ++at) text += raw(at);
    EXPECT_THAT(Refused(Text(text + raw("ids"))),
                AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr(test.expected)))
        << test.x;
  }
  std::string deep = absl::StrCat("model_name: 'mnist' ", kIdNumbers,
                                  "} inputs { name: 'x' datatype: "
                                  "'FP32' shape: 1");
  for (int i = 0; i < 300; ++i) absl::StrAppend(&deep, " shape: 1");
  EXPECT_THAT(Refused(Text(deep + " } raw_input_contents: 'abcdefgh' raw_input_contents: 'a'")),
              HasSubstr("more than 254 dims"));
}

TEST_F(KServe, StringsAndNarrowNumbersAreCounted) {
  for (const TestType& type : kTestTypes)
    Serve(type.datatype, MakeEcho(type.datatype, type.tensorflow));
  const std::string six = Prefixed({"a", "b", "c", "d", "e", "f"});
  EXPECT_THAT(Refused(Raw("BYTES", "BYTES", six.substr(1))), HasSubstr("cut off"));
  EXPECT_THAT(Refused(Raw("BYTES", "BYTES", six + "abc")), HasSubstr("cut off"));
  EXPECT_THAT(Refused(Raw("BYTES", "BYTES", six, 2)), HasSubstr("needs 4 strings"));
  EXPECT_THAT(Refused(Raw("BYTES", "BYTES", std::string("\xff\xff\xff\xff", 4), 1)),
              HasSubstr("cut off"));
  EXPECT_THAT(Refused(Raw("BOOL", "BOOL", "\1\2\3\4\5\6")), HasSubstr("byte 2, not 0 or 1"));
  const auto typed = [](const char* datatype, const std::string& list) {
    return Text(absl::StrCat("model_name: '", datatype, "' inputs { name: 'x' datatype: '",
                             datatype, "' shape: [1, 2] contents { ", list, " } }"));
  };
  EXPECT_THAT(Refused(typed("INT8", "int_contents: [1, 128]")),
              HasSubstr("holds 128, but INT8 is -128 to 127"));
  EXPECT_THAT(Refused(typed("INT16", "int_contents: [1, -32769]")), HasSubstr("-32769"));
  EXPECT_THAT(Refused(typed("UINT8", "uint_contents: [1, 256]")), HasSubstr("0 to 255"));
  EXPECT_THAT(Refused(typed("UINT16", "uint_contents: [1, 65536]")), HasSubstr("0 to 65535"));
}

TEST_F(KServe, ParametersReachTheQueue) {
  Echo("mnist", {0, 1, 2});
  const auto with = [](const std::string& parameters) {
    return Text(absl::StrCat("model_name: 'mnist' outputs { name: 'y' } ", kFloats,
                             "contents { fp32_contents: [1, 2] } } ", kIdNumbers,
                             "contents { int64_contents: 1 } } ", parameters));
  };
  const auto parameter = [](const std::string& key, const std::string& value) {
    return absl::StrCat("parameters { key: '", key, "' value { ", value, " } } ");
  };
  const auto ask = [&](const std::string& parameters) {
    CallUnary(table_, InferPath("ModelInfer"), with(parameters).SerializeAsString());
  };
  ask("");
  EXPECT_EQ(last_priority_, kDefaultPriority);
  EXPECT_EQ(last_deadline_, TimePoint::max());
  ask(parameter("priority", "uint64_param: 1"));
  EXPECT_EQ(last_priority_, 1);
  ask(parameter("priority", "int64_param: 9"));
  EXPECT_EQ(last_priority_, kPriorities);
  ask(parameter("priority", "int64_param: 0"));
  EXPECT_EQ(last_priority_, kDefaultPriority);
  const TimePoint before = Clock::Steady().Now();
  ask(parameter("timeout", "int64_param: 1500000"));
  EXPECT_GE(last_deadline_, before + std::chrono::microseconds(1500000));
  EXPECT_LE(last_deadline_, Clock::Steady().Now() + std::chrono::microseconds(1500000));
  ask(parameter("timeout", "int64_param: 9223372036854775807"));
  EXPECT_GT(last_deadline_, before + std::chrono::hours(24));
  ask(parameter("anything", "double_param: 1.5"));
  EXPECT_EQ(last_deadline_, TimePoint::max());
  EXPECT_THAT(Refused(with(parameter("priority", "string_param: 'high'"))),
              AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("'priority'")));
  EXPECT_THAT(Refused(with(parameter("timeout", "int64_param: -1"))), HasSubstr("'timeout'"));
}

// What is read of any bytes that protobuf's classes accept is what they read.
TEST(InferFields, AgreeWithProtobuf) {
  std::mt19937 random(11);
  ModelInferRequest whole = Raw("model", "BYTES", Prefixed({"abc", "", "d"}));
  whole.set_model_version("12");
  whole.set_id("i");
  whole.add_outputs()->set_name("y");
  (*whole.mutable_parameters())["priority"].set_int64_param(2);
  FillContents("FP32", whole.add_inputs()->mutable_contents());
  const std::string bytes = whole.SerializeAsString();
  int valid = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string changed = bytes;
    for (uint32_t n = random() % 3; n > 0; --n)
      changed[random() % changed.size()] = static_cast<char>(random());
    if (random() % 4 == 0) changed.resize(random() % changed.size());
    ModelInferRequest proto;
    InferFields fields;
    InferWishes wishes;
    const absl::Status status = ReadInferFields(changed, &fields, &wishes);
    if (!proto.ParseFromString(changed) || !status.ok()) continue;
    ++valid;
    ASSERT_EQ(fields.model, proto.model_name());
    ASSERT_EQ(fields.version, proto.model_version());
    ASSERT_EQ(wishes.id, proto.id());
    ASSERT_EQ(fields.inputs.size(), static_cast<size_t>(proto.inputs_size()));
    ASSERT_EQ(fields.outputs.size(), static_cast<size_t>(proto.outputs_size()));
    ASSERT_EQ(fields.raw.size(), static_cast<size_t>(proto.raw_input_contents_size()));
    for (size_t i = 0; i < fields.inputs.size(); ++i) {
      const auto& input = proto.inputs(static_cast<int>(i));
      ASSERT_EQ(fields.inputs[i].name, input.name());
      ASSERT_EQ(fields.inputs[i].datatype, input.datatype());
      ASSERT_THAT(fields.inputs[i].shape.dims(), testing::ElementsAreArray(input.shape()));
    }
    for (size_t i = 0; i < fields.raw.size(); ++i)
      ASSERT_EQ(fields.raw[i], proto.raw_input_contents(static_cast<int>(i)));
  }
  EXPECT_GT(valid, 1000);
}

}  // namespace
}  // namespace floe::server
