#include "tests/fuzz/wire_infer.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/import/import.h"
#include "server/request/decode_infer.h"
#include "server/request/encode_infer.h"
#include "server/request/kserve_types.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/proto_mutator.h"

namespace floe::fuzz {
namespace {

using inference::ModelInferRequest;
using inference::ModelInferResponse;
using server::Inference;
using server::InferFields;
using server::InferWishes;

constexpr int64_t kMostBytes = 1 << 16;  // what a request's inputs may unfold to

constexpr std::pair<const char*, const char*> kDatatypes[] = {
    {"FP32", "DT_FLOAT"}, {"FP64", "DT_DOUBLE"},   {"INT64", "DT_INT64"}, {"INT32", "DT_INT32"},
    {"INT8", "DT_INT8"},  {"UINT16", "DT_UINT16"}, {"UINT8", "DT_UINT8"}, {"UINT64", "DT_UINT64"},
    {"BOOL", "DT_BOOL"},  {"BYTES", "DT_STRING"},  {"FP16", "DT_HALF"},   {"BF16", "DT_BFLOAT16"}};

std::string InputNode(std::string_view name, std::string_view dtype) {
  return absl::StrCat("node { name: '", std::string(name),
                      "' op: 'Placeholder' attr { key: 'dtype' value { type: ", std::string(dtype),
                      " } } attr { key: 'shape' value { shape { unknown_rank: true } } } }\n",
                      "node { name: '", std::string(name), "_out' op: 'Identity' input: '",
                      std::string(name), "' attr { key: 'T' value { type: ", std::string(dtype),
                      " } } }\n");
}

ModelHandle MakeModel(const std::string& graph) {
  auto imported = ImportBytes(graph, {});
  if (!imported.ok()) Fail("a graph is none: " + imported.status().ToString());
  auto model = Model::Create(
      {{"m", 1, ""}, std::move(imported->graph), std::move(imported->signatures)}, {});
  if (!model.ok()) Fail("a graph is no model: " + model.status().ToString());
  return *model;
}

// A model of each datatype, by its name, with the input "x" and the output "x_out"; and "two".
const std::map<std::string, ModelHandle, std::less<>>& Models() {
  static const auto* models = [] {
    auto* made = new std::map<std::string, ModelHandle, std::less<>>;
    for (const auto& [name, dtype] : kDatatypes) (*made)[name] = MakeModel(InputNode("x", dtype));
    (*made)["two"] = MakeModel(InputNode("x", "DT_FLOAT") + InputNode("y", "DT_STRING"));
    return made;
  }();
  return *models;
}

struct ReadInfer {
  absl::Status status;
  Inference asked;
  InferWishes wishes;
};

std::unique_ptr<ReadInfer> Decode(std::string_view message) {
  auto read = std::make_unique<ReadInfer>();
  read->asked.storage = server::InputStorage(kMostBytes);
  const auto find = [](const server::ModelSpec& spec) -> absl::StatusOr<ModelHandle> {
    const auto found = Models().find(spec.name);
    return found != Models().end() ? found->second : Models().begin()->second;
  };
  read->status = server::DecodeInfer(message, find, &read->asked, &read->wishes);
  if (read->status.ok() && read->asked.pending != nullptr)
    read->status = read->asked.pending->Decode();
  return read;
}

void CompareFields(const InferFields& read, const InferFields& usual) {
  const auto same = [](const InferFields::Input& a, const InferFields::Input& b) {
    return a.name == b.name && a.datatype == b.datatype && a.shape == b.shape &&
           a.shape_too_long == b.shape_too_long && a.contents.values == b.contents.values &&
           a.contents.several_fields == b.contents.several_fields;
  };
  if (read.model != usual.model || read.version != usual.version ||
      read.signature != usual.signature || read.outputs != usual.outputs || read.raw != usual.raw ||
      !std::equal(read.inputs.begin(), read.inputs.end(), usual.inputs.begin(), usual.inputs.end(),
                  same))
    Fail("two forms of a ModelInferRequest are read as different ones");
}

void CompareWithProtobuf(const InferFields& read, const ModelInferRequest& proto) {
  if (read.model != proto.model_name() || read.version != proto.model_version() ||
      read.inputs.size() != static_cast<size_t>(proto.inputs_size()) ||
      read.outputs.size() != static_cast<size_t>(proto.outputs_size()))
    Fail("a ModelInferRequest is another one than protobuf's");
  const auto& parameters = proto.parameters();
  const auto found = parameters.find("signature_name");
  if (read.signature != (found == parameters.end() ? "" : found->second.string_param()))
    Fail("a signature's name is another one than protobuf's");
  for (int i = 0; i < proto.inputs_size(); ++i) {
    const InferFields::Input& input = read.inputs[static_cast<size_t>(i)];
    const auto& shape = proto.inputs(i).shape();
    if (input.name != proto.inputs(i).name() || input.datatype != proto.inputs(i).datatype())
      Fail("an input is another one than protobuf's");
    if (!input.shape_too_long && !std::equal(shape.begin(), shape.end(), input.shape.dims().begin(),
                                             input.shape.dims().end()))
      Fail("a shape is another one than protobuf's");
  }
}

// The inputs as a run would give them back, each as the output of its name.
ModelInferResponse Reply(const ReadInfer& read) {
  const SignatureDef& def = read.asked.signature->def();
  std::vector<TensorView> outputs;
  for (const SignatureTensor& output : def.outputs)
    for (size_t i = 0; i < def.inputs.size(); ++i)
      if (output.key == def.inputs[i].key + "_out") outputs.push_back(read.asked.inputs[i]);
  std::string bytes;
  const absl::Status status =
      server::EncodeInfer(read.asked, outputs, {read.wishes.id, read.wishes.typed}, &bytes);
  if (!status.ok()) Fail("a reply could not be written: " + status.ToString());
  ModelInferResponse reply;
  if (!reply.ParseFromString(bytes)) Fail("a reply is no ModelInferResponse");
  return reply;
}

// What was sent comes back as it was, raw or in lists.
void CheckReply(const ReadInfer& read, const ModelInferRequest& sent) {
  const ModelInferResponse reply = Reply(read);
  if (reply.id() != sent.id()) Fail("a reply has another id");
  for (int i = 0; i < reply.outputs_size(); ++i) {
    const auto& output = reply.outputs(i);
    const auto input =
        std::find_if(sent.inputs().begin(), sent.inputs().end(),
                     [&](const auto& one) { return one.name() + "_out" == output.name(); });
    if (input == sent.inputs().end()) Fail("a reply has an output that nobody asked for");
    if (output.datatype() != input->datatype() ||
        !std::equal(output.shape().begin(), output.shape().end(), input->shape().begin(),
                    input->shape().end()))
      Fail("a reply has another datatype or shape");
    if (output.contents().SerializeAsString() != input->contents().SerializeAsString())
      Fail("a reply has other contents");
    const auto at = static_cast<int>(input - sent.inputs().begin());
    if (!read.wishes.typed && reply.raw_output_contents(i) != sent.raw_input_contents(at))
      Fail("a reply has other bytes");
  }
}

// `elements` values in the list of the datatype, or nearly as many.
void FillContents(const std::string& datatype, int elements,
                  inference::InferTensorContents* contents, Random& random) {
  const uint32_t list = server::ContentsListOf(server::FromKServeName(datatype)).field;
  contents->Clear();
  if (list == 0) return;
  const auto* const field =
      inference::InferTensorContents::descriptor()->FindFieldByNumber(static_cast<int>(list));
  ProtoMutator fields(&random);
  const int values = random.OneIn(8) ? random.Below(static_cast<size_t>(elements) + 2) : elements;
  for (int i = 0; i < values; ++i) fields.Add(contents, field);
  if (list == 2 || list == 4)  // of narrow integers, too
    for (int i = 0; i < values && !random.OneIn(4); ++i)
      list == 2 ? contents->set_int_contents(i, random.Below(128))
                : contents->set_uint_contents(i, static_cast<uint32_t>(random.Below(256)));
}

std::string RawOf(const std::string& datatype, int elements, Random& random) {
  const DType dtype = server::FromKServeName(datatype);
  std::string raw;
  if (dtype != DType::kString)
    return std::string(static_cast<size_t>(elements) * DTypeSize(dtype),
                       static_cast<char>(random.Below(2)));
  for (int i = 0; i < elements; ++i) {
    const size_t size = static_cast<size_t>(random.Below(4));
    raw += std::string{static_cast<char>(size), 0, 0, 0} + std::string(size, 'a');
  }
  return raw;
}

// All inputs with values that fit, either raw or in lists.
void FitAll(ModelInferRequest* request, Random& random) {
  const bool raw = random.OneIn(2);
  request->clear_raw_input_contents();
  for (auto& input : *request->mutable_inputs()) {
    int64_t elements = 1;
    for (const int64_t dim : input.shape())
      elements = std::min<int64_t>(16, elements * std::clamp<int64_t>(dim, 0, 16));
    input.clear_contents();
    if (raw)
      request->add_raw_input_contents(RawOf(input.datatype(), static_cast<int>(elements), random));
    else
      FillContents(input.datatype(), static_cast<int>(elements), input.mutable_contents(), random);
  }
}

}  // namespace

absl::Status RunInfer(const std::string& bytes) {
  const auto read = Decode(bytes);
  if (!read->status.ok() && read->status.message().empty()) Fail("a refusal has no reason");
  InferFields fields;
  InferWishes wishes;
  ModelInferRequest proto;
  if (!server::ReadInferFields(bytes, &fields, &wishes).ok() || !proto.ParseFromString(bytes))
    return read->status;  // names that are not UTF-8
  const std::string usual = proto.SerializeAsString();
  InferFields usual_fields;
  InferWishes usual_wishes;
  if (!server::ReadInferFields(usual, &usual_fields, &usual_wishes).ok())
    Fail("protobuf's own text is refused");
  CompareFields(fields, usual_fields);
  CompareWithProtobuf(fields, proto);
  if (wishes.id != usual_wishes.id || wishes.priority != usual_wishes.priority ||
      wishes.timeout != usual_wishes.timeout)
    Fail("two forms of a ModelInferRequest wish different things");
  const auto again = Decode(usual);
  if (again->status.ok() != read->status.ok() && read->status.ok())
    Fail("protobuf's own text is refused: " + again->status.ToString());
  proto.DiscardUnknownFields();
  if (read->status.ok()) CheckReply(*read, proto);
  return read->status;
}

bool IsInfer(const std::string& bytes, ModelInferRequest* request) {
  return request->ParseFromString(bytes) && request->inputs_size() > 0;
}

void MutateInfer(ModelInferRequest* request, Random& random) {
  if (request->inputs_size() == 0) request->add_inputs()->set_name("x");
  ProtoMutator fields(&random);
  auto& input = *request->mutable_inputs(random.Below(static_cast<size_t>(request->inputs_size())));
  switch (random.Below(6)) {
    case 0: {
      const auto& [datatype, dtype] = random.Pick(kDatatypes);
      input.set_datatype(datatype);
      request->set_model_name(datatype);
      FitAll(request, random);
      break;
    }
    case 1:
      FitAll(request, random);
      break;
    case 2:
      input.add_shape(random.OneIn(4) ? random.Integer() : random.Below(4));
      if (random.OneIn(2)) FitAll(request, random);
      break;
    case 3: {
      static constexpr const char* kNames[] = {"priority", "timeout", "signature_name",
                                               "shared_memory_region", "other"};
      auto& parameters =
          random.OneIn(3) ? *input.mutable_parameters() : *request->mutable_parameters();
      auto& parameter = parameters[random.Pick(kNames)];
      random.OneIn(2) ? parameter.set_int64_param(random.Integer())
                      : parameter.set_string_param("serving_default");
      break;
    }
    case 4:
      fields.Mutate(&input);
      break;
    default:
      fields.Mutate(request);
      break;
  }
}

}  // namespace floe::fuzz
