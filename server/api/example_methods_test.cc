// Classify, Regress and MultiInference, from messages to what a model is asked, and from its
// outputs to replies that protobuf's classes read.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "server/api/api.h"
#include "server/api/fakes_for_test.h"
#include "server/request/decode_examples.h"
#include "tensorflow_serving/apis/classification.pb.h"
#include "tensorflow_serving/apis/inference.pb.h"
#include "tensorflow_serving/apis/regression.pb.h"

namespace floe::server {
namespace {

namespace pb = tensorflow::serving;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Outputs are the tests'; the graph only has their names.
constexpr char kGraph[] = R"(
node { name: "inputs" op: "Placeholder" attr { key: "dtype" value { type: DT_STRING } }
  attr { key: "shape" value { shape { dim { size: -1 } } } } }
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } } } } }
node { name: "classes" op: "Identity" input: "inputs" attr { key: "T" value { type: DT_STRING } } }
node { name: "scores" op: "StringToNumber" input: "inputs" attr { key: "out_type" value { type: DT_FLOAT } } }
node { name: "other" op: "Identity" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
)";

using Keys = std::vector<std::string>;

// "classes" and "scores" by their own names, or tensors under others: "outputs=scores".
SignatureDef Choose(const SignatureDef& all, const std::string& name, const std::string& method,
                    const Keys& inputs,
                    const std::vector<std::pair<std::string, std::string>>& outputs) {
  SignatureDef def;
  def.name = name;
  def.method = method;
  for (const SignatureTensor& tensor : all.inputs)
    for (const std::string& key : inputs)
      if (tensor.key == key) def.inputs.push_back(tensor);
  for (const auto& [key, node] : outputs)
    for (SignatureTensor tensor : all.outputs)
      if (tensor.key == node) {
        tensor.key = key;
        def.outputs.push_back(tensor);
      }
  return def;
}

std::shared_ptr<FakeServed> MakeServed() {
  auto imported = ImportBytes(kGraph, {});
  EXPECT_TRUE(imported.ok()) << imported.status();
  const SignatureDef all = imported->signatures.at(0);
  constexpr char kClassify[] = "tensorflow/serving/classify";
  constexpr char kRegress[] = "tensorflow/serving/regress";
  const std::vector<SignatureDef> signatures = {
      Choose(all, "serving_default", kClassify, {"inputs"},
             {{"classes", "classes"}, {"scores", "scores"}}),
      Choose(all, "scores", kClassify, {"inputs"}, {{"scores", "scores"}}),
      Choose(all, "regress", kRegress, {"inputs"}, {{"outputs", "scores"}}),
      Choose(all, "floats", kRegress, {"x"}, {{"outputs", "other"}}),
      Choose(all, "two", kClassify, {"inputs", "x"}, {{"scores", "scores"}, {"other", "other"}}),
      Choose(all, "named", "tensorflow/serving/predict", {"inputs"}, {{"y", "scores"}}),
  };
  auto model = Model::Create({{"m", 4, ""}, std::move(imported->graph), signatures}, {});
  EXPECT_TRUE(model.ok()) << model.status();
  return std::make_shared<FakeServed>(*model);
}

constexpr char kPrefix[] = "/tensorflow.serving.PredictionService/";
constexpr char kTwo[] =
    "input { example_list { examples { features { feature { key: 'x' value { int64_list { value: 7 "
    "} } } } } examples {} } }";

class ExampleMethods : public testing::Test {
 protected:
  ExampleMethods() {
    registry_.models["m"] = served_;
    RegisterApi({registry_, health_}, &table_);
    served_->on_submit = [this](const Request& request) {
      const Inference& asked = *request.asked;
      doors_.push_back(asked.door);
      std::vector<std::string>& sent = sent_.emplace_back();
      if (asked.pending != nullptr) {
        EXPECT_TRUE(asked.pending->Decode().ok());
      }
      for (int64_t i = 0; i < asked.inputs[0].elements(); ++i)
        sent.push_back(asked.inputs[0].as<std::string>()[i]);
      std::vector<TensorView> outputs;
      for (const SignatureTensor& output : asked.signature->def().outputs)
        outputs.push_back(output.key == "classes"   ? labels_
                          : output.key == "outputs" ? values_
                                                    : scores_);
      AnswerWith(request, answer_, outputs);
    };
  }

  template <typename Proto>
  static std::string Encode(const std::string& text) {
    Proto proto;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &proto)) << text;
    return proto.SerializeAsString();
  }
  static std::string ForModel(const std::string& signature, const std::string& rest = kTwo) {
    return absl::StrCat("model_spec { name: 'm' signature_name: '", signature, "' } ", rest);
  }

  template <typename Request, typename Reply>
  Reply Ok(const char* method, const std::string& text) {
    const auto responder = CallUnary(table_, absl::StrCat(kPrefix, method), Encode<Request>(text));
    EXPECT_TRUE(responder->status.ok()) << responder->status;
    EXPECT_EQ(responder->finishes, 1);
    Reply reply;
    EXPECT_EQ(responder->messages.size(), 1u);
    if (!responder->messages.empty()) {
      EXPECT_TRUE(reply.ParseFromString(responder->messages[0]));
    }
    return reply;
  }
  template <typename Request>
  std::string Refused(const char* method, const std::string& text) {
    const auto responder = CallUnary(table_, absl::StrCat(kPrefix, method), Encode<Request>(text));
    EXPECT_EQ(responder->finishes, 1);
    EXPECT_TRUE(responder->messages.empty());
    return responder->status.ToString();
  }
  std::string Classified(const std::string& signature) {
    return Refused<pb::ClassificationRequest>("Classify", ForModel(signature));
  }
  std::string Regressed(const std::string& signature) {
    return Refused<pb::RegressionRequest>("Regress", ForModel(signature));
  }

  std::string texts_[4] = {"a", "b", "", "d"};
  float numbers_[4] = {0.5f, 0, -0.0f, 2};
  TensorView labels_{DType::kString, Shape({2, 2}), texts_};
  TensorView scores_{DType::kFloat32, Shape({2, 2}), numbers_};
  TensorView values_{DType::kFloat32, Shape({2}), numbers_};
  absl::Status answer_;
  FakeRegistry registry_;
  HealthState health_;
  MethodTable table_;
  std::shared_ptr<FakeServed> served_ = MakeServed();
  std::vector<std::vector<std::string>> sent_;
  std::vector<Door> doors_;
};

TEST_F(ExampleMethods, Classifies) {
  const auto reply =
      Ok<pb::ClassificationRequest, pb::ClassificationResponse>("Classify", ForModel(""));
  EXPECT_EQ(reply.model_spec().name(), "m");
  EXPECT_EQ(reply.model_spec().version().value(), 4);
  EXPECT_EQ(reply.model_spec().signature_name(), "serving_default");
  ASSERT_EQ(reply.result().classifications_size(), 2);
  const auto& second = reply.result().classifications(1).classes();
  ASSERT_EQ(second.size(), 2);
  EXPECT_EQ(second[0].label(), "");
  EXPECT_TRUE(std::signbit(second[0].score()));
  EXPECT_EQ(second[1].label(), "d");
  EXPECT_EQ(second[1].score(), 2);
  EXPECT_EQ(reply.result().classifications(0).classes(0).score(), 0.5f);
  EXPECT_EQ(doors_, std::vector{Door::kClassify});
  // The model gets the bytes that were sent.
  const auto request = Encode<pb::ClassificationRequest>(kTwo);
  ASSERT_EQ(sent_.at(0).size(), 2u);
  EXPECT_THAT(request, HasSubstr(sent_[0][0]));
  EXPECT_EQ(sent_[0][1], "");
}

TEST_F(ExampleMethods, ScoresNeedNoLabels) {
  const auto reply =
      Ok<pb::ClassificationRequest, pb::ClassificationResponse>("Classify", ForModel("scores"));
  EXPECT_EQ(reply.result().classifications(0).classes(0).label(), "");
  EXPECT_EQ(reply.result().classifications(0).classes(0).score(), 0.5f);
}

TEST_F(ExampleMethods, Regresses) {
  for (const Shape& shape : {Shape({2}), Shape({2, 1})}) {
    values_.shape = shape;
    const auto reply =
        Ok<pb::RegressionRequest, pb::RegressionResponse>("Regress", ForModel("regress"));
    EXPECT_EQ(reply.model_spec().signature_name(), "regress");
    ASSERT_EQ(reply.result().regressions_size(), 2);
    EXPECT_EQ(reply.result().regressions(0).value(), 0.5f);
    EXPECT_EQ(reply.result().regressions(1).value(), 0);
  }
  EXPECT_EQ(doors_[0], Door::kRegress);
}

TEST_F(ExampleMethods, EveryExampleHasTheContext) {
  constexpr char kContext[] =
      "input { example_list_with_context { context { features { feature { key: 'c' value { "
      "float_list { value: 1 } } } feature { key: 'x' value { int64_list { value: 1 } } } } } "
      "examples { features { feature { key: 'x' value { int64_list { value: 7 } } } } } "
      "examples {} } }";
  Ok<pb::RegressionRequest, pb::RegressionResponse>("Regress", ForModel("regress", kContext));
  ASSERT_EQ(sent_.at(0).size(), 2u);
  tensorflow::Example first, second;
  ASSERT_TRUE(first.ParseFromString(sent_[0][0]) && second.ParseFromString(sent_[0][1]));
  EXPECT_EQ(first.features().feature().at("c").float_list().value(0), 1);
  EXPECT_EQ(first.features().feature().at("x").int64_list().value(0), 7) << "its own counts";
  EXPECT_EQ(second.features().feature().at("x").int64_list().value(0), 1);
}

TEST_F(ExampleMethods, AContextIsPaidForEachExample) {
  MethodTable table;
  RegisterApi({.registry = registry_, .health = health_, .max_input_bytes = 1 << 20}, &table);
  pb::RegressionRequest request;
  request.mutable_model_spec()->set_name("m");
  request.mutable_model_spec()->set_signature_name("regress");
  auto& list = *request.mutable_input()->mutable_example_list_with_context();
  (*list.mutable_context()->mutable_features()->mutable_feature())["c"]
      .mutable_bytes_list()
      ->add_value(std::string(100'000, 'c'));
  for (int i = 0; i < 100; ++i) list.add_examples();
  const auto responder =
      CallUnary(table, absl::StrCat(kPrefix, "Regress"), request.SerializeAsString());
  EXPECT_EQ(responder->status.code(), absl::StatusCode::kResourceExhausted) << responder->status;
  EXPECT_TRUE(sent_.empty());
}

TEST_F(ExampleMethods, WrongSignaturesAreNamed) {
  EXPECT_THAT(Classified("none"), AllOf(HasSubstr("FAILED_PRECONDITION"), HasSubstr("'none'")));
  EXPECT_THAT(Classified("named"),
              HasSubstr("to contain at least one of \"classes\" or \"scores\""));
  EXPECT_THAT(Classified("two"), HasSubstr("Expected one input Tensor"));
  EXPECT_THAT(Regressed(""), HasSubstr("Expected one output Tensor, found 2"));
  EXPECT_THAT(Regressed("named"), HasSubstr("No regression outputs found in SignatureDef"));
  EXPECT_THAT(Regressed("floats"), AllOf(HasSubstr("signature 'floats': input 'x' takes float32"),
                                         HasSubstr("call Predict")));
  EXPECT_THAT(Refused<pb::ClassificationRequest>("Classify", ForModel("", "")),
              AllOf(StartsWith("INVALID_ARGUMENT"), HasSubstr("Input is empty")));
  EXPECT_THAT(
      Refused<pb::ClassificationRequest>("Classify", ForModel("", "input { example_list {} }")),
      HasSubstr("Input is empty"));
  EXPECT_TRUE(sent_.empty());
}

TEST_F(ExampleMethods, MethodNamesCountWhereTheyAreChecked) {
  Ok<pb::ClassificationRequest, pb::ClassificationResponse>("Classify", ForModel("scores"));
  MethodTable table;
  RegisterApi({.registry = registry_, .health = health_, .check_method_names = true}, &table);
  const auto status = [&](const char* method, const char* signature) {
    return CallUnary(table, absl::StrCat(kPrefix, method),
                     Encode<pb::ClassificationRequest>(ForModel(signature)))
        ->status.ToString();
  };
  EXPECT_EQ(status("Classify", "scores"), "OK");
  EXPECT_THAT(status("Classify", "regress"),
              HasSubstr("Expected classification signature method_name to be "
                        "tensorflow/serving/classify. Was: tensorflow/serving/regress"));
  EXPECT_THAT(status("Regress", "named"),
              HasSubstr("Expected regression signature method_name to be "
                        "tensorflow/serving/regress. Was: tensorflow/serving/predict"));
}

TEST_F(ExampleMethods, WrongOutputsAreNamed) {
  scores_.shape = Shape({4});
  EXPECT_THAT(Classified(""),
              HasSubstr("Expected Tensor shape: [batch_size num_classes] of scores"));
  scores_.shape = Shape({1, 4});
  EXPECT_THAT(Classified(""), HasSubstr("Expected scores output batch size of 2. Got: 1"));
  scores_.shape = Shape({2, 1});
  EXPECT_THAT(Classified(""),
              HasSubstr("Tensors class and score should match in dim_size(1). Got 2 vs. 1"));
  scores_ = {DType::kInt32, Shape({2, 2}), numbers_};
  EXPECT_THAT(Classified("scores"), HasSubstr("Expected scores Tensor of float32. Got: int32"));
  texts_[1] = "\xff";
  EXPECT_THAT(Classified(""), HasSubstr("is no UTF-8"));
  labels_.shape = Shape({4, 1});
  EXPECT_THAT(Classified(""), HasSubstr("Expected classes output batch size of 2. Got: 4"));
  values_.shape = Shape({2, 2});
  EXPECT_THAT(Regressed("regress"), HasSubstr("to be either [batch_size] or [batch_size, 1]"));
  values_.shape = Shape({1});
  EXPECT_THAT(Regressed("regress"),
              HasSubstr("Input batch size did not match output batch size: 2 vs. 1"));
  answer_ = absl::UnavailableError("full");
  EXPECT_THAT(Regressed("regress"), StartsWith("UNAVAILABLE: full"));
}

TEST_F(ExampleMethods, BrokenMessages) {
  const auto refused = [&](const std::string& bytes) {
    return CallUnary(table_, absl::StrCat(kPrefix, "Classify"), bytes)->status.ToString();
  };
  EXPECT_THAT(refused("\x0a\x05"), HasSubstr("not a valid tensorflow.serving.Classif"));
  // An Example that is cut off would take the bytes of what follows it.
  const std::string list = "\x0a\x02\x0a\x09";  // its only field has nine bytes, and ends at once
  const std::string input =
      absl::StrCat("\x0a", std::string(1, static_cast<char>(list.size())), list);
  std::string bytes = "\x0a\x03\x0a\x01m";
  absl::StrAppend(&bytes, "\x12", std::string(1, static_cast<char>(input.size())), input);
  EXPECT_THAT(refused(bytes), HasSubstr("Example 0 is no tf.Example"));
}

constexpr char kTasks[] = R"(
    tasks { model_spec { name: 'm' signature_name: 'regress' }
            method_name: 'tensorflow/serving/regress' }
    tasks { model_spec { name: 'm' } method_name: 'tensorflow/serving/classify' } )";

TEST_F(ExampleMethods, SeveralTasks) {
  const auto reply = Ok<pb::MultiInferenceRequest, pb::MultiInferenceResponse>(
      "MultiInference", absl::StrCat(kTasks, kTwo));
  ASSERT_EQ(reply.results_size(), 2);
  EXPECT_EQ(reply.results(0).model_spec().signature_name(), "regress");
  EXPECT_EQ(reply.results(0).model_spec().version().value(), 4);
  EXPECT_EQ(reply.results(0).regression_result().regressions(0).value(), 0.5f);
  EXPECT_EQ(reply.results(1).model_spec().signature_name(), "serving_default");
  EXPECT_EQ(reply.results(1).classification_result().classifications(1).classes(1).label(), "d");
  EXPECT_THAT(doors_, ElementsAre(Door::kMultiInference, Door::kMultiInference));
  EXPECT_EQ(sent_[0], sent_[1]);
}

TEST_F(ExampleMethods, TasksEndTogether) {
  // The answers come later, in the other order; the first task's error is the call's.
  std::vector<Request> held;
  served_->on_submit = [&](Request request) { held.push_back(std::move(request)); };
  const auto responder = CallUnary(table_, absl::StrCat(kPrefix, "MultiInference"),
                                   Encode<pb::MultiInferenceRequest>(absl::StrCat(kTasks, kTwo)));
  ASSERT_EQ(held.size(), 2u);
  AnswerWith(held[1], absl::InternalError("second"));
  EXPECT_EQ(responder->finishes, 0);
  AnswerWith(held[0], absl::UnavailableError("first"));
  EXPECT_EQ(responder->finishes, 1);
  EXPECT_THAT(responder->status.ToString(), StartsWith("UNAVAILABLE: first"));
  EXPECT_TRUE(responder->messages.empty());
}

TEST_F(ExampleMethods, WrongTasksAreNamed) {
  const auto refused = [this](const std::string& tasks) {
    return Refused<pb::MultiInferenceRequest>("MultiInference", absl::StrCat(tasks, kTwo));
  };
  const std::string regress = "method_name: 'tensorflow/serving/regress'";
  EXPECT_THAT(refused(""), HasSubstr("no tasks"));
  EXPECT_THAT(refused("tasks { model_spec {} }"), HasSubstr("empty model name"));
  EXPECT_THAT(refused(absl::StrCat(kTasks, "tasks { model_spec { name: 'n' } ", regress, "}")),
              HasSubstr("must access the same model name; there are 'm' and 'n'"));
  EXPECT_THAT(refused(absl::StrCat(kTasks,
                                   "tasks { model_spec { name: 'm' version { value: 4 } "
                                   "signature_name: 'scores' } ",
                                   regress, "}")),
              HasSubstr("the same version or label"));
  EXPECT_THAT(refused(absl::StrCat(
                  kTasks, "tasks { model_spec { name: 'm' signature_name: 'serving_default' } ",
                  regress, "}")),
              HasSubstr("Duplicate evaluation of signature: 'serving_default'"));
  EXPECT_THAT(
      refused("tasks { model_spec { name: 'm' } method_name: 'other' }"),
      AllOf(StartsWith("UNIMPLEMENTED"), HasSubstr("Unsupported signature method_name: 'other'")));
  EXPECT_THAT(refused(absl::StrCat("tasks { model_spec { name: 'n' } ", regress, "}")),
              HasSubstr("no model 'n'"));
  EXPECT_THAT(refused(absl::StrCat("tasks { model_spec { name: 'm' } ", regress, "}")),
              HasSubstr("Expected one output Tensor"));
  std::string many;
  for (size_t i = 0; i <= kMostTasks; ++i)
    absl::StrAppend(&many, "tasks { model_spec { name: 'm' signature_name: 's", i, "' } ", regress,
                    "}");
  EXPECT_THAT(refused(many), HasSubstr("more than 64 tasks"));
  EXPECT_TRUE(sent_.empty());
}

}  // namespace
}  // namespace floe::server
