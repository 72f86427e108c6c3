// Writes a ModelInferResponse from the outputs' bytes, without protobuf's classes.
#include "server/request/encode_infer.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "server/request/kserve_types.h"
#include "server/request/wire_writer.h"

namespace floe::server {
namespace {

using google::protobuf::io::ArrayOutputStream;

// Field numbers of ModelInferResponse, of its tensors, and of ModelStreamInferResponse.
constexpr uint32_t kModelName = 1, kModelVersion = 2, kId = 3, kParameters = 4, kTensors = 5,
                   kRaw = 6;
constexpr uint32_t kName = 1, kDatatype = 2, kDims = 3, kContents = 5;
constexpr uint32_t kInferResponse = 2;

// In streams Triton's clients are told so that no more replies to the request follow: an entry of
// the map of parameters, {"triton_final_response": {bool_param: true}}.
constexpr std::string_view kFinal("\x0a\x15triton_final_response\x12\x02\x08\x01", 27);

struct InferOutput {
  std::string_view name, datatype;
  const TensorView* view;
  WrittenValues values;
  size_t dims = 0;    // bytes of the packed shape
  size_t tensor = 0;  // bytes of the InferOutputTensor
};

bool HasLists(const Inference& asked) {
  const auto& outputs = asked.signature->def().outputs;
  return std::all_of(asked.outputs.begin(), asked.outputs.end(), [&outputs](int index) {
    return ContentsListOf(outputs[static_cast<size_t>(index)].type.dtype).field != 0;
  });
}

InferOutput MeasureOutput(std::string_view name, const TensorView& view, bool typed) {
  InferOutput out{name, KServeName(view.dtype), &view, {}};
  const ContentsList list = ContentsListOf(view.dtype);
  const bool strings = view.dtype == DType::kString;
  out.values = typed ? MeasureValues(view, list.field, list.kind)
                     : MeasureValues(view, kRaw, strings ? ListKind::kPrefixed : ListKind::kNone);
  for (const int64_t dim : view.shape.dims())
    out.dims += CodedOutputStream::VarintSize64(static_cast<uint64_t>(dim));
  out.tensor = BytesFieldSize(kName, name.size()) + BytesFieldSize(kDatatype, out.datatype.size());
  if (out.dims != 0) out.tensor += BytesFieldSize(kDims, out.dims);
  if (typed) out.tensor += BytesFieldSize(kContents, out.values.size);
  return out;
}

void WriteTensor(const InferOutput& output, bool typed, CodedOutputStream& out) {
  BeginBytes(kTensors, output.tensor, out);
  WriteBytes(kName, output.name, out);
  WriteBytes(kDatatype, output.datatype, out);
  if (output.dims != 0) {
    BeginBytes(kDims, output.dims, out);
    for (const int64_t dim : output.view->shape.dims())
      out.WriteVarint64(static_cast<uint64_t>(dim));
  }
  if (!typed) return;
  BeginBytes(kContents, output.values.size, out);
  WriteValues(*output.view, output.values, out);
}

}  // namespace

absl::Status EncodeInfer(const Inference& asked, Outputs outputs, const InferReplyForm& form,
                         std::string* reply) {
  FLOE_RETURN_IF_ERROR(CheckGiven(asked, outputs));
  const bool typed = form.typed && HasLists(asked);
  const ModelInfo& info = asked.model->info();
  const absl::AlphaNum version(info.version);
  const std::string_view version_text(version.Piece().data(), version.Piece().size());
  size_t body = BytesFieldSize(kModelName, info.name.size()) +
                BytesFieldSize(kModelVersion, version_text.size());
  if (!form.id.empty()) body += BytesFieldSize(kId, form.id.size());
  if (form.in_stream) body += BytesFieldSize(kParameters, kFinal.size());
  absl::InlinedVector<InferOutput, kUsualTensors> chosen;
  for (const int index : asked.outputs) {
    const auto i = static_cast<size_t>(index);
    chosen.push_back(MeasureOutput(asked.signature->def().outputs[i].key, outputs[i], typed));
    body += BytesFieldSize(kTensors, chosen.back().tensor);
    if (!typed) body += BytesFieldSize(kRaw, chosen.back().values.bytes);
  }
  const size_t total = form.in_stream ? BytesFieldSize(kInferResponse, body) : body;
  FLOE_RETURN_IF_ERROR(CheckReplySize(total));
  reply->resize(total);
  ArrayOutputStream bytes(reply->data(), static_cast<int>(total));
  CodedOutputStream out(&bytes);
  if (form.in_stream) BeginBytes(kInferResponse, body, out);
  WriteBytes(kModelName, info.name, out);
  WriteBytes(kModelVersion, version_text, out);
  if (!form.id.empty()) WriteBytes(kId, form.id, out);
  if (form.in_stream) WriteBytes(kParameters, kFinal, out);
  for (const InferOutput& output : chosen) WriteTensor(output, typed, out);
  if (typed) return absl::OkStatus();
  for (const InferOutput& output : chosen) WriteBareValues(*output.view, output.values, out);
  return absl::OkStatus();
}

}  // namespace floe::server
