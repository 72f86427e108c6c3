// Checks signatures and outputs as TensorFlow Serving's classifier and regressor do.
#include "server/request/examples.h"

#include <google/protobuf/wire_format_lite.h>

#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "server/request/input_reader.h"
#include "server/request/wire_writer.h"

namespace floe::server {
namespace {

constexpr char kLabels[] = "classes", kScores[] = "scores", kValues[] = "outputs";

absl::Status Wrong(const Inference& asked, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(ModelAndSignature(asked), ": ", what));
}

// The input that must be sent. Its name does not matter: it is the only one.
absl::StatusOr<size_t> InputOf(const ExampleCall& call, const Inference& asked) {
  const auto& inputs = asked.signature->def().inputs;
  size_t found = inputs.size(), required = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].optional) continue;
    found = i;
    ++required;
  }
  if (required != 1)
    return Wrong(asked, absl::StrCat("Expected one input Tensor, found ", required,
                                     "; it is to take serialized tf.Examples"));
  const DType dtype = inputs[found].type.dtype;
  if (dtype != DType::kString)
    return Wrong(asked, absl::StrCat("input ", Quoted(inputs[found].key), " takes ",
                                     DTypeName(dtype), ", and ", MethodNameOf(call.method),
                                     " gives it serialized tf.Examples, which are strings; call "
                                     "Predict"));
  return found;
}

absl::Status ChooseClassifyOutputs(Inference* asked) {
  const Signature& signature = *asked->signature;
  const size_t has = signature.def().outputs.size();
  if (has != 1 && has != 2)
    return Wrong(*asked, absl::StrCat("Expected one or two output Tensors, found ", has));
  for (const char* key : {kLabels, kScores})
    if (const int index = signature.FindOutput(key); index >= 0) asked->outputs.push_back(index);
  if (!asked->outputs.empty()) return absl::OkStatus();
  return Wrong(*asked, absl::StrCat("Expected classification signature outputs to contain at least "
                                    "one of \"",
                                    kLabels, "\" or \"", kScores, "\"; it has ",
                                    Quoted(signature.def().outputs[0].key)));
}

absl::Status ChooseRegressOutputs(Inference* asked) {
  const Signature& signature = *asked->signature;
  const size_t has = signature.def().outputs.size();
  if (has != 1) return Wrong(*asked, absl::StrCat("Expected one output Tensor, found ", has));
  const int index = signature.FindOutput(kValues);
  if (index < 0)
    return Wrong(*asked,
                 absl::StrCat("No regression outputs found in SignatureDef: it has ",
                              Quoted(signature.def().outputs[0].key), ", not \"", kValues, "\""));
  asked->outputs.push_back(index);
  return absl::OkStatus();
}

// How many Examples were sent.
int64_t ExamplesOf(const Inference& asked) {
  for (const TensorView& input : asked.inputs)
    if (input.dtype == DType::kString) return input.shape.dim(0);
  return 0;
}

const TensorView* OutputOf(const Inference& asked, Outputs outputs, const char* key) {
  const int index = asked.signature->FindOutput(key);
  return index < 0 ? nullptr : &outputs[static_cast<size_t>(index)];
}

// A matrix of that dtype, with a row for each Example.
absl::Status CheckClasses(const Inference& asked, const TensorView& view, const char* what,
                          DType dtype, int64_t rows) {
  if (view.shape.rank() != 2)
    return Wrong(asked, absl::StrCat("Expected Tensor shape: [batch_size num_classes] of ", what,
                                     " but got ", view.shape.ToString()));
  if (view.dtype != dtype)
    return Wrong(asked, absl::StrCat("Expected ", what, " Tensor of ", DTypeName(dtype),
                                     ". Got: ", DTypeName(view.dtype)));
  if (view.shape.dim(0) != rows)
    return Wrong(asked, absl::StrCat("Expected ", what, " output batch size of ", rows,
                                     ". Got: ", view.shape.dim(0)));
  return absl::OkStatus();
}

float FloatAt(const TensorView& view, int64_t index) {
  float value;  // the data may be unaligned
  std::memcpy(&value, view.as<char>() + index * static_cast<int64_t>(sizeof value), sizeof value);
  return value;
}

absl::Status CheckLabels(const Inference& asked, const ClassifyOutputs& out) {
  for (int64_t i = 0; i < out.labels->elements(); ++i) {
    const std::string& label = out.labels->as<std::string>()[i];
    if (!google::protobuf::internal::IsStructurallyValidUTF8(label.data(),
                                                             static_cast<int>(label.size())))
      return Wrong(asked, absl::StrCat("the label ", Quoted(label),
                                       " is no UTF-8, as labels must be; call Predict"));
  }
  return absl::OkStatus();
}

absl::Status Feed(size_t input, const CheckedTensor& checked, ValueList&& values, size_t held_bytes,
                  Inference* asked) {
  if (checked.view.elements() == 0)
    return absl::InvalidArgumentError("Input is empty: it has no Examples");
  const std::string_view key = asked->signature->def().inputs[input].key;
  TensorIndices sent;
  FLOE_RETURN_IF_ERROR(PlaceInputs({&key, 1}, asked, &sent));
  asked->held_bytes = held_bytes;
  InputReader reader(asked);
  FLOE_RETURN_IF_ERROR(reader.Take(input, checked, std::move(values)));
  return reader.Decode();
}

}  // namespace

const char* MethodNameOf(ExampleMethod method) {
  return method == ExampleMethod::kClassify ? "tensorflow/serving/classify"
                                            : "tensorflow/serving/regress";
}

absl::StatusOr<size_t> ChooseExampleSignature(ModelHandle model, std::string_view name,
                                              const ExampleCall& call, Inference* asked) {
  FLOE_RETURN_IF_ERROR(ChooseSignature(std::move(model), name, asked));
  const std::string& method = asked->signature->def().method;
  const bool classify = call.method == ExampleMethod::kClassify;
  if (call.check_method_name && method != MethodNameOf(call.method))
    return Wrong(*asked, absl::StrCat("Expected ", classify ? "classification" : "regression",
                                      " signature method_name to be ", MethodNameOf(call.method),
                                      ". Was: ", Escaped(method)));
  FLOE_ASSIGN_OR_RETURN(const size_t input, InputOf(call, *asked));
  FLOE_RETURN_IF_ERROR(classify ? ChooseClassifyOutputs(asked) : ChooseRegressOutputs(asked));
  return input;
}

absl::Status FeedExamples(size_t input, ValueList&& examples, size_t message_bytes,
                          Inference* asked) {
  CheckedTensor checked;
  checked.view = {DType::kString, Shape({examples.values}), nullptr};
  checked.bytes = DecodedBytes(examples, DType::kString, examples.values);
  checked.repeats = !examples.before.empty();
  return Feed(input, checked, std::move(examples), message_bytes, asked);
}

absl::Status FeedExamples(size_t input, std::string* examples, int64_t count, size_t held_bytes,
                          Inference* asked) {
  CheckedTensor checked;
  checked.view = {DType::kString, Shape({count}), examples};
  return Feed(input, checked, {}, held_bytes, asked);
}

std::string_view ClassifyOutputs::Label(int64_t row, int64_t index) const {
  return labels == nullptr ? std::string_view()
                           : std::string_view(labels->as<std::string>()[row * classes + index]);
}

float ClassifyOutputs::Score(int64_t row, int64_t index) const {
  return scores == nullptr ? 0 : FloatAt(*scores, row * classes + index);
}

float RegressOutputs::Value(int64_t row) const { return FloatAt(*values, row); }

absl::StatusOr<ClassifyOutputs> ReadClassifyOutputs(const Inference& asked, Outputs outputs) {
  FLOE_RETURN_IF_ERROR(CheckGiven(asked, outputs));
  ClassifyOutputs out;
  out.rows = ExamplesOf(asked);
  out.labels = OutputOf(asked, outputs, kLabels);
  out.scores = OutputOf(asked, outputs, kScores);
  if (out.labels != nullptr) {
    FLOE_RETURN_IF_ERROR(CheckClasses(asked, *out.labels, kLabels, DType::kString, out.rows));
    out.classes = out.labels->shape.dim(1);
    FLOE_RETURN_IF_ERROR(CheckLabels(asked, out));
  }
  if (out.scores == nullptr) return out;
  FLOE_RETURN_IF_ERROR(CheckClasses(asked, *out.scores, kScores, DType::kFloat32, out.rows));
  const int64_t scored = out.scores->shape.dim(1);
  if (out.labels != nullptr && scored != out.classes)
    return Wrong(asked, absl::StrCat("Tensors class and score should match in dim_size(1). Got ",
                                     out.classes, " vs. ", scored));
  out.classes = scored;
  return out;
}

absl::StatusOr<RegressOutputs> ReadRegressOutputs(const Inference& asked, Outputs outputs) {
  FLOE_RETURN_IF_ERROR(CheckGiven(asked, outputs));
  RegressOutputs out;
  out.rows = ExamplesOf(asked);
  out.values = OutputOf(asked, outputs, kValues);
  const Shape& shape = out.values->shape;
  if (shape.rank() != 1 && !(shape.rank() == 2 && shape.dim(1) == 1))
    return Wrong(asked, absl::StrCat("Expected output Tensor shape to be either [batch_size] or "
                                     "[batch_size, 1] but got ",
                                     shape.ToString()));
  if (shape.dim(0) != out.rows)
    return Wrong(asked, absl::StrCat("Input batch size did not match output batch size: ", out.rows,
                                     " vs. ", shape.dim(0)));
  if (out.values->dtype != DType::kFloat32)
    return Wrong(asked, absl::StrCat("Expected output Tensor of float32. Got: ",
                                     DTypeName(out.values->dtype)));
  return out;
}

}  // namespace floe::server
