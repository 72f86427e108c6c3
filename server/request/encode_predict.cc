// Writes a PredictResponse from the outputs' bytes, without protobuf's classes.
#include "server/request/encode_predict.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "server/request/parsed_tensor.h"
#include "server/request/wire_writer.h"

namespace floe::server {
namespace {

using google::protobuf::io::ArrayOutputStream;
using google::protobuf::io::CodedOutputStream;

// Field numbers of PredictResponse and PredictRequest, and of their map entries.
struct MessageFields {
  uint32_t tensors, model_spec;
};
constexpr MessageFields kResponse = {1, 2}, kRequest = {2, 1};
constexpr uint32_t kRequestFilter = 3;
constexpr uint32_t kEntryKey = 1, kEntryValue = 2;
constexpr uint32_t kShapeDim = 2, kDimSize = 1;

// What is known of an output before its bytes are written.
struct Measured {
  WrittenValues values;
  size_t shape = 0;
  size_t tensor = 0;
  size_t entry = 0;
};

size_t ShapeSize(const Shape& shape) {
  size_t size = 0;
  for (const int64_t dim : shape.dims()) {
    size += BytesFieldSize(kShapeDim, NumberFieldSize(kDimSize, static_cast<uint64_t>(dim)));
  }
  return size;
}

Measured Measure(const ReplyOutput& output, ReplyEncoding encoding) {
  const TensorView& view = output.value;
  const bool content = encoding == ReplyEncoding::kContent && view.dtype != DType::kString;
  Measured m;
  m.values = MeasureValues(
      view, static_cast<uint32_t>(content ? TensorField::kContent : ListOf(view.dtype)),
      content ? ListKind::kNone : KindOf(ListOf(view.dtype)));
  m.shape = ShapeSize(view.shape);
  m.tensor = NumberFieldSize(static_cast<uint32_t>(TensorField::kDtype),
                             static_cast<uint64_t>(view.dtype)) +
             BytesFieldSize(static_cast<uint32_t>(TensorField::kShape), m.shape) + m.values.size;
  m.entry = BytesFieldSize(kEntryKey, output.key.size()) + BytesFieldSize(kEntryValue, m.tensor);
  return m;
}

void WriteShape(const Shape& shape, size_t size, CodedOutputStream& out) {
  BeginBytes(static_cast<uint32_t>(TensorField::kShape), size, out);
  for (const int64_t dim : shape.dims()) {
    const auto number = static_cast<uint64_t>(dim);
    BeginBytes(kShapeDim, NumberFieldSize(kDimSize, number), out);
    WriteNumber(kDimSize, number, out);
  }
}

void WriteOutput(uint32_t field, const ReplyOutput& output, const Measured& m,
                 CodedOutputStream& out) {
  BeginBytes(field, m.entry, out);
  WriteBytes(kEntryKey, output.key, out);
  BeginBytes(kEntryValue, m.tensor, out);
  WriteNumber(static_cast<uint32_t>(TensorField::kDtype), static_cast<uint64_t>(output.value.dtype),
              out);
  WriteShape(output.value.shape, m.shape, out);
  WriteValues(output.value, m.values, out);
}

absl::Status Encode(const MessageFields& fields, const ReplySpec& spec,
                    absl::Span<const ReplyOutput> outputs, ReplyEncoding encoding,
                    std::string* reply) {
  size_t total = SpecFieldSize(fields.model_spec, spec);
  absl::InlinedVector<Measured, kUsualTensors> measured;
  for (const ReplyOutput& output : outputs) {
    if (ListOf(output.value.dtype) == TensorField::kNone) {
      return absl::InternalError(absl::StrCat("output ", Quoted(output.key), " of dtype ",
                                              DTypeName(output.value.dtype), " cannot be sent"));
    }
    measured.push_back(Measure(output, encoding));
    total += BytesFieldSize(fields.tensors, measured.back().entry);
  }
  FLOE_RETURN_IF_ERROR(CheckReplySize(total));
  reply->resize(total);
  ArrayOutputStream bytes(reply->data(), static_cast<int>(total));
  CodedOutputStream out(&bytes);
  for (size_t i = 0; i < outputs.size(); ++i)
    WriteOutput(fields.tensors, outputs[i], measured[i], out);
  WriteSpecField(fields.model_spec, spec, out);
  return absl::OkStatus();
}

}  // namespace

absl::Status EncodePredictReply(const ReplySpec& spec, absl::Span<const ReplyOutput> outputs,
                                ReplyEncoding encoding, std::string* reply) {
  return Encode(kResponse, spec, outputs, encoding, reply);
}

absl::Status EncodeAsked(const Inference& asked, std::string* request) {
  const SignatureDef& def = asked.signature->def();
  absl::InlinedVector<ReplyOutput, kUsualTensors> fed;
  for (size_t i = 0; i < asked.inputs.size(); ++i)
    if (asked.inputs[i].dtype != DType::kInvalid)
      fed.push_back({def.inputs[i].key, asked.inputs[i]});
  ReplySpec spec = ReplySpecOf(asked);
  spec.version.reset();  // it is sent to other versions, too
  FLOE_RETURN_IF_ERROR(Encode(kRequest, spec, fed, ReplyEncoding::kContent, request));
  if (asked.outputs.size() == def.outputs.size()) return absl::OkStatus();
  for (const int index : asked.outputs)
    AppendBytesField(kRequestFilter, def.outputs[static_cast<size_t>(index)].key, request);
  return absl::OkStatus();
}

absl::Status EncodePredict(const Inference& asked, Outputs outputs, ReplyEncoding encoding,
                           std::string* reply) {
  const SignatureDef& def = asked.signature->def();
  FLOE_RETURN_IF_ERROR(CheckGiven(asked, outputs));
  absl::InlinedVector<ReplyOutput, kUsualTensors> chosen;
  for (const int index : asked.outputs)
    chosen.push_back(
        {def.outputs[static_cast<size_t>(index)].key, outputs[static_cast<size_t>(index)]});
  return EncodePredictReply(ReplySpecOf(asked), chosen, encoding, reply);
}

}  // namespace floe::server
