// Any bytes as a PredictRequest, and as a ModelInferRequest (wire_infer.h): what is read of them
// against what is read of protobuf's own text of the same message; and what was read is written as
// a reply.
#include <algorithm>
#include <cstring>
#include <map>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "server/request/decode_predict.h"
#include "server/request/encode_predict.h"
#include "tensorflow_serving/apis/predict.pb.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/proto_mutator.h"
#include "tests/fuzz/wire_infer.h"

namespace floe::fuzz {
namespace {

using server::PredictFields;
using Input = PredictFields::Input;
using tensorflow::TensorProto;
using tensorflow::serving::PredictRequest;

constexpr int64_t kMaxBytes = 1 << 16;  // what a request's inputs may unfold to

// The tensor as text that is equal for equal tensors; the error where there is one.
std::string Describe(std::string_view key, const TensorView& view) {
  std::string text = std::string(key) + DTypeName(view.dtype) + view.shape.ToString() + ":";
  if (view.dtype != DType::kString) return text.append(view.as<char>(), view.bytes());
  for (int64_t i = 0; i < view.elements(); ++i) text += view.as<std::string>()[i] + "\n";
  return text;
}

struct ReadInputs {
  server::InputStorage storage{kMaxBytes};
  std::vector<server::ReplyOutput> tensors;
  std::map<std::string, std::string> text;  // of every input
};

absl::StatusOr<TensorView> ReadTensor(const Input& input, server::InputStorage* storage) {
  FLOE_ASSIGN_OR_RETURN(server::CheckedTensor checked,
                        server::CheckTensor(input.key, input.tensor));
  FLOE_RETURN_IF_ERROR(storage->Charge(checked.bytes));
  FLOE_RETURN_IF_ERROR(server::DecodeValues(input.tensor.values, storage, &checked.view));
  return checked.view;
}

void ReadAll(const PredictFields& request, ReadInputs* out) {
  for (const Input& input : request.inputs) {
    server::InputStorage storage(kMaxBytes);
    const auto alone = ReadTensor(input, &storage);
    out->text[std::string(input.key)] =
        alone.ok() ? Describe(input.key, *alone) : alone.status().ToString();
    const auto together = ReadTensor(input, &out->storage);
    if (together.ok()) out->tensors.push_back({input.key, *together});
  }
}

void Compare(const PredictFields& read, const PredictFields& usual) {
  if (read.model.name != usual.model.name || read.model.version != usual.model.version ||
      read.model.label != usual.model.label || read.signature != usual.signature ||
      read.output_filter != usual.output_filter)
    Fail("two forms of a request are read as different ones");
  ReadInputs a, b;
  ReadAll(read, &a);
  ReadAll(usual, &b);
  if (a.text != b.text) Fail("two forms of a request are read as different tensors");
}

// What was sent comes back as it was, read by protobuf's classes.
void CheckReply(const ReadInputs& inputs, server::ReplyEncoding encoding) {
  std::string bytes;
  const absl::Status status =
      server::EncodePredictReply({"m", 1, "s"}, inputs.tensors, encoding, &bytes);
  if (!status.ok()) Fail("a reply could not be written: " + status.ToString());
  tensorflow::serving::PredictResponse reply;
  if (!reply.ParseFromString(bytes)) Fail("a reply is not a PredictResponse");
  std::map<std::string, std::string> sent;  // of equal keys the last one counts
  for (const server::ReplyOutput& tensor : inputs.tensors)
    sent[std::string(tensor.key)] = Describe(tensor.key, tensor.value);
  for (const server::ReplyOutput& tensor : inputs.tensors) {
    const auto found = reply.outputs().find(std::string(tensor.key));
    if (found == reply.outputs().end()) Fail("a reply misses a tensor");
    const std::string message = found->second.SerializeAsString();
    Input again{tensor.key, {}};
    if (!server::ParseTensor(message, &again.tensor)) Fail("a reply's tensor cannot be read");
    server::InputStorage storage(INT64_MAX);
    const auto read = ReadTensor(again, &storage);
    if (!read.ok()) Fail("a reply's tensor is refused: " + read.status().ToString());
    if (sent[std::string(tensor.key)] != Describe(tensor.key, *read))
      Fail("a reply has other values");
  }
}

// The values that protobuf's classes hold, in order, as far as a list of numbers has them.
template <class Values>
void CompareList(const Values& values, const TensorView& view) {
  if (values.empty()) return;
  for (int64_t i = 0; i < view.elements(); ++i) {
    using Value = std::remove_cvref_t<decltype(values[0])>;
    const Value expected = values[static_cast<int>(std::min<int64_t>(i, values.size() - 1))];
    Value value;
    std::memcpy(&value, view.as<char>() + i * static_cast<int64_t>(sizeof(Value)), sizeof value);
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): NaN has its bits, too
    if (std::memcmp(&value, &expected, sizeof value) != 0) Fail("a value is not protobuf's");
  }
}

void CompareWithProtobuf(const PredictFields& request, const PredictRequest& proto) {
  const auto& spec = proto.model_spec();
  if (request.model.name != spec.name() || request.signature != spec.signature_name() ||
      request.model.label != spec.version_label() ||
      request.model.version.value_or(0) != spec.version().value())
    Fail("a request is for another model than protobuf's");
  for (const Input& input : request.inputs) {
    if (&input != &request.inputs.back()) continue;  // of equal keys the last one counts
    const auto found = proto.inputs().find(std::string(input.key));
    if (found == proto.inputs().end()) Fail("an input is not among protobuf's");
    server::InputStorage storage(kMaxBytes);
    const auto view = ReadTensor(input, &storage);
    if (!view.ok() || !found->second.tensor_content().empty()) continue;
    if (view->dtype == DType::kFloat32) CompareList(found->second.float_val(), *view);
    if (view->dtype == DType::kFloat64) CompareList(found->second.double_val(), *view);
    if (view->dtype == DType::kInt32) CompareList(found->second.int_val(), *view);
    if (view->dtype == DType::kInt64) CompareList(found->second.int64_val(), *view);
    if (view->dtype == DType::kUInt64) CompareList(found->second.uint64_val(), *view);
  }
}

absl::Status Read(const std::string& bytes) {
  static const bool silent = (google::protobuf::SetLogHandler(nullptr), true);
  (void)silent;
  PredictFields request;
  FLOE_RETURN_IF_ERROR(server::ReadPredictFields(bytes, &request));
  ReadInputs inputs;
  ReadAll(request, &inputs);
  PredictRequest proto;
  if (!proto.ParseFromString(bytes)) return absl::OkStatus();  // names that are not UTF-8
  const std::string usual = proto.SerializeAsString();
  PredictFields again;
  if (!server::ReadPredictFields(usual, &again).ok()) Fail("protobuf's own text is refused");
  Compare(request, again);
  CompareWithProtobuf(request, proto);
  CheckReply(inputs, server::ReplyEncoding::kTyped);
  CheckReply(inputs, server::ReplyEncoding::kContent);
  return absl::OkStatus();
}

// Values whose number, list and size fit dtype and shape, or nearly.
void Fit(TensorProto* tensor, Random& random) {
  int64_t elements = 1;
  constexpr int64_t kMaxElements = 16;
  for (const auto& dim : tensor->tensor_shape().dim())
    elements = std::min(kMaxElements, elements * std::clamp<int64_t>(dim.size(), 0, kMaxElements));
  const auto dtype = DTypeFromNumber(tensor->dtype());
  if (!dtype.ok()) return;
  const size_t bytes = static_cast<size_t>(elements) * DTypeSize(*dtype);
  if (random.OneIn(2) && bytes != 0) {
    const tensorflow::TensorShapeProto shape = tensor->tensor_shape();
    const auto number = tensor->dtype();
    tensor->Clear();
    tensor->set_dtype(number);
    *tensor->mutable_tensor_shape() = shape;
    tensor->set_tensor_content(std::string(bytes, static_cast<char>(random.Below(2))));
    return;
  }
  const auto* field =
      TensorProto::descriptor()->FindFieldByNumber(static_cast<int>(server::ListOf(*dtype)));
  if (field == nullptr) return;
  const int values = random.Below(static_cast<size_t>(elements) + 2);
  ProtoMutator fields(&random);
  for (int i = 0; i < values; ++i) fields.Add(tensor, field);
}

void Mutate(PredictRequest* request, Random& random) {
  ProtoMutator fields(&random);
  auto& inputs = *request->mutable_inputs();
  if (inputs.empty() || random.OneIn(10)) inputs["x" + std::to_string(random.Below(3))];
  TensorProto& tensor = std::next(inputs.begin(), random.Below(inputs.size()))->second;
  switch (random.Below(6)) {
    case 0:
      tensor.set_dtype(static_cast<tensorflow::DataType>(random.Below(26)));
      Fit(&tensor, random);
      break;
    case 1:
      Fit(&tensor, random);
      break;
    case 2:
      fields.Mutate(&tensor);
      break;
    case 3:
      tensor.mutable_tensor_shape()->add_dim()->set_size(random.OneIn(4) ? random.Integer()
                                                                         : random.Below(4));
      if (random.OneIn(2)) Fit(&tensor, random);
      break;
    default:
      fields.Mutate(request);
      break;
  }
}

}  // namespace

absl::Status RunUnit(const std::string& bytes) {
  absl::Status predict = Read(bytes), infer = RunInfer(bytes);
  return predict.ok() ? predict : infer;
}

std::string MutateUnit(const std::string& bytes, size_t max_size, Random& random) {
  PredictRequest request;
  inference::ModelInferRequest infer;
  if (random.OneIn(3)) return MutateBytes(bytes, max_size);
  if (IsInfer(bytes, &infer)) {
    for (int changes = 1 + random.Below(3); changes > 0; --changes) MutateInfer(&infer, random);
    return infer.SerializeAsString();
  }
  if (!request.ParseFromString(bytes)) return MutateBytes(bytes, max_size);
  for (int changes = 1 + random.Below(3); changes > 0; --changes) Mutate(&request, random);
  return request.SerializeAsString();
}

std::string CrossUnits(const std::string& one, const std::string& other, Random& random) {
  PredictRequest request, second;
  inference::ModelInferRequest infer, other_infer;
  if (random.OneIn(2) && IsInfer(one, &infer) && IsInfer(other, &other_infer)) {
    ProtoMutator(&random).CrossOver(&infer, other_infer);
    return infer.SerializeAsString();
  }
  if (random.OneIn(2) || !request.ParseFromString(one) || !second.ParseFromString(other))
    return one + other;  // protobuf merges two messages written one after the other
  ProtoMutator(&random).CrossOver(&request, second);
  return request.SerializeAsString();
}

}  // namespace floe::fuzz
