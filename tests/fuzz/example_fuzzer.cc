// Any bytes as a request with tf.Examples: as Classify, as MultiInference, and as the body of
// REST's classify. What is read of a message has the Examples that protobuf's classes read of it,
// each merged with the context; what is read of JSON are Examples for protobuf's classes; and
// scores that are written as a reply are read again.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/import/import.h"
#include "server/api/rest/examples_json.h"
#include "server/api/rest/json_text.h"
#include "server/request/decode_examples.h"
#include "server/request/encode_examples.h"
#include "tensorflow_serving/apis/classification.pb.h"
#include "tensorflow_serving/apis/inference.pb.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/proto_mutator.h"
#include "tests/fuzz/served.h"

namespace floe::fuzz {
namespace {

using server::Inference;
using server::kJsonPadding;
using tensorflow::Example;
using tensorflow::serving::ClassificationRequest;
using tensorflow::serving::ClassificationResponse;
using tensorflow::serving::Input;
using tensorflow::serving::MultiInferenceRequest;

constexpr int64_t kMostBytes = int64_t{1} << 20;

constexpr char kGraph[] = R"(
node { name: "inputs" op: "Placeholder" attr { key: "dtype" value { type: DT_STRING } }
  attr { key: "shape" value { shape { dim { size: -1 } } } } }
node { name: "scores" op: "StringToNumber" input: "inputs" attr { key: "out_type" value { type: DT_FLOAT } } }
node { name: "classes" op: "Identity" input: "inputs" attr { key: "T" value { type: DT_STRING } } }
)";

const Served& TheModel() {
  static const auto* served = [] {
    auto imported = ImportBytes(kGraph, {});
    if (!imported.ok()) Fail("the graph is none: " + imported.status().ToString());
    auto model = Model::Create(
        {{"m", 1, ""}, std::move(imported->graph), std::move(imported->signatures)}, {});
    if (!model.ok()) Fail("the graph is no model: " + model.status().ToString());
    return new Served(*model);
  }();
  return *served;
}

// What the request's only input holds.
std::vector<std::string> Sent(const Inference& asked) {
  if (asked.pending != nullptr && !asked.pending->Decode().ok()) Fail("an input is not decoded");
  const TensorView& view = asked.inputs[0];
  return {view.as<std::string>(), view.as<std::string>() + view.elements()};
}

// Equal for messages with equal features.
std::string Sorted(const Example& example) {
  std::string text;
  google::protobuf::io::StringOutputStream bytes(&text);
  google::protobuf::io::CodedOutputStream out(&bytes);
  out.SetSerializationDeterministic(true);
  example.SerializeToCodedStream(&out);
  out.Trim();
  return text;
}

void CompareExamples(const Input& input, const std::vector<std::string>& read) {
  const bool with_context = input.has_example_list_with_context();
  const auto& list =
      with_context ? input.example_list_with_context().examples() : input.example_list().examples();
  if (static_cast<size_t>(list.size()) != read.size()) Fail("the number of Examples is another");
  for (int i = 0; i < list.size(); ++i) {
    Example expected = with_context ? input.example_list_with_context().context() : Example();
    // Not MergeFrom: of a feature that both have, it would keep more than the later one.
    if (!expected.MergeFromString(list[i].SerializeAsString())) Fail("an Example is none");
    Example got;
    if (!got.ParseFromString(read[static_cast<size_t>(i)])) Fail("what is fed is no Example");
    if (Sorted(got) != Sorted(expected)) Fail("an Example is another one");
  }
}

// Each Example's label and score, written and read by protobuf's classes.
void CheckReply(const Inference& asked, const std::vector<std::string>& labels) {
  std::vector<float> numbers(labels.size());
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(labels[i].size());
  const auto rows = static_cast<int64_t>(labels.size());
  std::vector<std::string> texts = labels;
  std::vector<TensorView> outputs;
  for (const SignatureTensor& output : asked.signature->def().outputs)
    outputs.push_back(output.key == "scores"
                          ? TensorView{DType::kFloat32, Shape({rows, 1}), numbers.data()}
                          : TensorView{DType::kString, Shape({rows, 1}), texts.data()});
  std::string bytes;
  if (!server::EncodeExamples(asked, outputs, server::ExampleMethod::kClassify, false, &bytes).ok())
    return;  // a label is no UTF-8
  ClassificationResponse reply;
  if (!reply.ParseFromString(bytes)) Fail("a reply is no ClassificationResponse");
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto& written = reply.result().classifications(static_cast<int>(i)).classes(0);
    if (written.label() != labels[i] || written.score() != numbers[i]) Fail("a class is another");
  }
}

absl::Status RunClassify(std::string_view message) {
  Inference asked;
  asked.storage = server::InputStorage(kMostBytes);
  const auto find = [](const server::ModelSpec&) -> absl::StatusOr<ModelHandle> {
    return TheModel().model();
  };
  absl::Status status = server::DecodeExamples(message, {}, find, &asked);
  ClassificationRequest proto;
  const bool valid = proto.ParseFromArray(message.data(), static_cast<int>(message.size()));
  if (!status.ok()) {
    // Of messages that protobuf reads, only those without Examples, for signatures that are none,
    // or with too much are refused.
    if (valid && absl::IsInvalidArgument(status) &&
        status.message().find("empty") == std::string::npos)
      Fail("a valid message is refused: " + status.ToString());
    return status;
  }
  const std::vector<std::string> sent = Sent(asked);
  if (valid) CompareExamples(proto.input(), sent);
  CheckReply(asked, sent);
  return status;
}

absl::Status RunTasks(std::string_view message) {
  server::MultiInferenceFields fields;
  absl::Status status = server::ReadMultiInferenceFields(message, &fields);
  if (!status.ok()) return status;
  MultiInferenceRequest proto;
  const bool valid = proto.ParseFromArray(message.data(), static_cast<int>(message.size()));
  if (valid && static_cast<size_t>(proto.tasks_size()) != fields.tasks.size())
    Fail("the number of tasks is another");
  const auto find = [](const server::ModelSpec&) -> absl::StatusOr<ModelHandle> {
    return TheModel().model();
  };
  for (const server::InferenceTask& task : fields.tasks) {
    Inference asked;
    asked.storage = server::InputStorage(kMostBytes);
    status = server::DecodeTask(task, fields.input, message.size(), false, find, &asked);
    if (status.ok() && valid) CompareExamples(proto.input(), Sent(asked));
  }
  return status;
}

struct ReadJson {
  absl::Status status;
  Inference asked;
};

std::unique_ptr<ReadJson> ReadBody(std::string_view body) {
  auto read = std::make_unique<ReadJson>();
  read->asked.storage = server::InputStorage(kMostBytes);
  const std::string padded = absl::StrCat(std::string(body), std::string(kJsonPadding, '\0'));
  const auto find = [](const server::ModelSpec&) -> absl::StatusOr<const server::ServedModel*> {
    return &TheModel();
  };
  read->status = server::DecodeExamplesJson(std::string_view(padded).substr(0, body.size()),
                                            {"m", {}, {}}, {}, nullptr, find, &read->asked);
  return read;
}

absl::Status RunJson(std::string_view body) {
  const auto read = ReadBody(body);
  const auto spaced = ReadBody(absl::StrCat(" \n", std::string(body), "\t "));
  if (read->status.ok() != spaced->status.ok()) Fail("space makes a difference");
  if (!read->status.ok() && read->status.message().empty()) Fail("a refusal has no reason");
  if (!read->status.ok()) return read->status;
  const std::vector<std::string> sent = Sent(read->asked);
  if (sent != Sent(spaced->asked)) Fail("space makes another Example");
  for (const std::string& bytes : sent)
    if (Example example; !example.ParseFromString(bytes)) Fail("what is read is no Example");
  std::string reply;
  std::vector<float> zeros(sent.size());
  std::vector<std::string> labels(sent.size(), "a");
  const Shape shape({static_cast<int64_t>(sent.size()), 1});
  std::vector<TensorView> outputs;
  for (const SignatureTensor& output : read->asked.signature->def().outputs)
    outputs.push_back(output.key == "scores" ? TensorView{DType::kFloat32, shape, zeros.data()}
                                             : TensorView{DType::kString, shape, labels.data()});
  const absl::Status written = server::EncodeExamplesJson(
      read->asked, outputs, server::ExampleMethod::kClassify, nullptr, &reply);
  if (!written.ok()) Fail("a reply could not be written: " + written.ToString());
  return read->status;
}

enum class Form : uint8_t { kClassify, kTasks, kJson };
Form FormOf(char first) { return static_cast<Form>(static_cast<unsigned char>(first) % 3); }

}  // namespace

absl::Status RunUnit(const std::string& bytes) {
  if (bytes.empty()) return absl::InvalidArgumentError("no form");
  const std::string_view rest = std::string_view(bytes).substr(1);
  switch (FormOf(bytes[0])) {
    case Form::kClassify:
      return RunClassify(rest);
    case Form::kTasks:
      return RunTasks(rest);
    default:
      return RunJson(rest);
  }
}

namespace {

template <typename Proto>
std::string MutateMessage(const std::string& bytes, size_t max_size, Random& random) {
  Proto message;
  if (!message.ParseFromArray(bytes.data() + 1, static_cast<int>(bytes.size()) - 1)) return "";
  ProtoMutator(&random).Mutate(&message);
  const std::string mutated = bytes.substr(0, 1) + message.SerializeAsString();
  return mutated.size() <= max_size ? mutated : "";
}

}  // namespace

std::string MutateUnit(const std::string& bytes, size_t max_size, Random& random) {
  static constexpr std::string_view kParts[] = {"[",
                                                "]",
                                                "{",
                                                "}",
                                                ",",
                                                ":",
                                                "\"",
                                                "\"x\":[1]",
                                                "{}",
                                                "1.5",
                                                "-1",
                                                "true",
                                                "null",
                                                "NaN",
                                                "\"a\"",
                                                "{\"b64\":\"AA==\"}",
                                                "\"context\":{\"c\":[2]}",
                                                "\"examples\":[{\"x\":1}]",
                                                "\"signature_name\":\"\"",
                                                "9223372036854775808",
                                                "[]",
                                                "\\u00e9"};
  if (bytes.empty() || random.OneIn(4)) return MutateBytes(bytes, max_size);
  switch (FormOf(bytes[0])) {
    case Form::kClassify:
      return MutateMessage<ClassificationRequest>(bytes, max_size, random);
    case Form::kTasks:
      return MutateMessage<MultiInferenceRequest>(bytes, max_size, random);
    default:
      return PutInto(bytes, random.Pick(kParts), random);
  }
}

std::string CrossUnits(const std::string& one, const std::string& other, Random& random) {
  return SpliceBytes(one, other, random);
}

}  // namespace floe::fuzz
