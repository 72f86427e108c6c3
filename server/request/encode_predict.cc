// Writes a PredictResponse from the outputs' bytes, without protobuf's classes.
#include "server/request/encode_predict.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cstring>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/wire_reader.h"
#include "server/request/parsed_tensor.h"

namespace floe::server {
namespace {

using google::protobuf::io::ArrayOutputStream;
using google::protobuf::io::CodedOutputStream;

// Field numbers of PredictResponse, of its map entries, and of ModelSpec.
constexpr uint32_t kOutputs = 1, kModelSpec = 2;
constexpr uint32_t kEntryKey = 1, kEntryValue = 2;
constexpr uint32_t kSpecName = 1, kSpecVersion = 2, kSpecSignature = 3;
constexpr uint32_t kWrappedValue = 1;
constexpr uint32_t kShapeDim = 2, kDimSize = 1;

size_t TagSize(uint32_t field) { return CodedOutputStream::VarintSize64(uint64_t{field} << 3); }
size_t TagSize(TensorField field) { return TagSize(static_cast<uint32_t>(field)); }

// A length-delimited field with `size` bytes in it.
size_t BytesFieldSize(uint32_t field, size_t size) {
  return TagSize(field) + CodedOutputStream::VarintSize64(size) + size;
}

// A varint field, which proto3 leaves out when zero.
size_t NumberFieldSize(uint32_t field, uint64_t value) {
  return value == 0 ? 0 : TagSize(field) + CodedOutputStream::VarintSize64(value);
}

void WriteTag(uint32_t field, WireType type, CodedOutputStream& out) {
  out.WriteTag(field << 3 | static_cast<uint32_t>(type));
}

// Tag and length; the caller writes the bytes.
void BeginBytes(uint32_t field, size_t size, CodedOutputStream& out) {
  WriteTag(field, WireType::kBytes, out);
  out.WriteVarint64(size);
}

void WriteBytes(uint32_t field, std::string_view bytes, CodedOutputStream& out) {
  BeginBytes(field, bytes.size(), out);
  if (bytes.empty()) return;  // memcpy takes no null pointer
  out.WriteRaw(bytes.data(), static_cast<int>(bytes.size()));
}

void WriteNumber(uint32_t field, uint64_t value, CodedOutputStream& out) {
  if (value == 0) return;
  WriteTag(field, WireType::kVarint, out);
  out.WriteVarint64(value);
}

// Calls visit(varint) for each element, as protobuf writes it: int32 lists are extended with their
// sign.
template <typename Visit>
void ForEachVarint(const TensorView& view, Visit visit) {
  const auto each = [&view, visit]<typename T>(T) {
    const char* at = static_cast<const char*>(view.data);
    for (int64_t i = 0, n = view.elements(); i < n; ++i, at += sizeof(T)) {
      T value;
      std::memcpy(&value, at, sizeof(T));
      visit(static_cast<uint64_t>(static_cast<int64_t>(value)));
    }
  };
  switch (PlainDType(view.dtype)) {
    case DType::kInt8:
      return each(int8_t{});
    case DType::kUInt8:
      return each(uint8_t{});
    case DType::kInt16:
      return each(int16_t{});
    case DType::kUInt16:
    case DType::kFloat16:
    case DType::kBFloat16:
      return each(uint16_t{});
    case DType::kInt32:
      return each(int32_t{});
    case DType::kUInt32:
      return each(uint32_t{});
    default:
      return each(int64_t{});  // uint64 has the same bits
  }
}

// What is known of an output before its bytes are written.
struct Measured {
  TensorField list = TensorField::kNone;
  size_t values = 0;  // bytes of the list or of tensor_content
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

size_t StringsSize(const TensorView& view) {
  size_t size = 0;
  for (int64_t i = 0, n = view.elements(); i < n; ++i) {
    size += BytesFieldSize(static_cast<uint32_t>(TensorField::kStringVal),
                           view.as<std::string>()[i].size());
  }
  return size;
}

// Whether the list's bytes are the tensor's own.
bool SameBytes(TensorField list) {
  return list == TensorField::kContent || list == TensorField::kBoolVal ||
         KindOf(list) == ListKind::kFixed32 || KindOf(list) == ListKind::kFixed64;
}

Measured Measure(const ReplyOutput& output, ReplyEncoding encoding) {
  const TensorView& view = output.value;
  Measured m;
  m.list = ListOf(view.dtype);
  if (encoding == ReplyEncoding::kContent && view.dtype != DType::kString) {
    m.list = TensorField::kContent;
  }
  m.shape = ShapeSize(view.shape);
  m.tensor = NumberFieldSize(static_cast<uint32_t>(TensorField::kDtype),
                             static_cast<uint64_t>(view.dtype)) +
             BytesFieldSize(static_cast<uint32_t>(TensorField::kShape), m.shape);
  if (view.dtype == DType::kString) {
    m.values = StringsSize(view);
    m.tensor += m.values;
  } else {
    if (SameBytes(m.list)) {
      m.values = view.bytes();
    } else {
      ForEachVarint(view,
                    [&m](uint64_t value) { m.values += CodedOutputStream::VarintSize64(value); });
    }
    if (m.values != 0)
      m.tensor += TagSize(m.list) + CodedOutputStream::VarintSize64(m.values) + m.values;
  }
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

void WriteValues(const TensorView& view, const Measured& m, CodedOutputStream& out) {
  const auto field = static_cast<uint32_t>(m.list);
  if (view.dtype == DType::kString) {
    for (int64_t i = 0, n = view.elements(); i < n; ++i) {
      WriteBytes(field, view.as<std::string>()[i], out);
    }
    return;
  }
  if (m.values == 0) return;
  BeginBytes(field, m.values, out);
  if (SameBytes(m.list)) return out.WriteRaw(view.data, static_cast<int>(m.values));
  ForEachVarint(view, [&out](uint64_t value) { out.WriteVarint64(value); });
}

void WriteOutput(const ReplyOutput& output, const Measured& m, CodedOutputStream& out) {
  BeginBytes(kOutputs, m.entry, out);
  WriteBytes(kEntryKey, output.key, out);
  BeginBytes(kEntryValue, m.tensor, out);
  WriteNumber(static_cast<uint32_t>(TensorField::kDtype), static_cast<uint64_t>(output.value.dtype),
              out);
  WriteShape(output.value.shape, m.shape, out);
  WriteValues(output.value, m, out);
}

size_t SpecSize(const ReplySpec& spec, size_t version_size) {
  return BytesFieldSize(kSpecName, spec.model.size()) + BytesFieldSize(kSpecVersion, version_size) +
         BytesFieldSize(kSpecSignature, spec.signature.size());
}

}  // namespace

absl::Status EncodePredictReply(const ReplySpec& spec, absl::Span<const ReplyOutput> outputs,
                                ReplyEncoding encoding, std::string* reply) {
  const auto version = static_cast<uint64_t>(spec.version);
  const size_t version_size = NumberFieldSize(kWrappedValue, version);
  const size_t spec_size = SpecSize(spec, version_size);
  size_t total = BytesFieldSize(kModelSpec, spec_size);
  absl::InlinedVector<Measured, kUsualTensors> measured;
  for (const ReplyOutput& output : outputs) {
    if (ListOf(output.value.dtype) == TensorField::kNone) {
      return absl::InternalError(absl::StrCat("output ", Quoted(output.key), " of dtype ",
                                              DTypeName(output.value.dtype), " cannot be sent"));
    }
    measured.push_back(Measure(output, encoding));
    total += BytesFieldSize(kOutputs, measured.back().entry);
  }
  if (total > INT32_MAX) {
    return absl::OutOfRangeError(absl::StrCat("the reply has ", total,
                                              " bytes and a message at most ", INT32_MAX,
                                              "; ask for fewer rows or outputs"));
  }
  reply->resize(total);
  ArrayOutputStream bytes(reply->data(), static_cast<int>(total));
  CodedOutputStream out(&bytes);
  for (size_t i = 0; i < outputs.size(); ++i) WriteOutput(outputs[i], measured[i], out);
  BeginBytes(kModelSpec, spec_size, out);
  WriteBytes(kSpecName, spec.model, out);
  BeginBytes(kSpecVersion, version_size, out);
  WriteNumber(kWrappedValue, version, out);
  WriteBytes(kSpecSignature, spec.signature, out);
  return absl::OkStatus();
}

absl::Status EncodePredict(const Inference& asked, Outputs outputs, ReplyEncoding encoding,
                           std::string* reply) {
  const SignatureDef& def = asked.signature->def();
  if (outputs.size() != def.outputs.size())
    return absl::InternalError(absl::StrCat(ModelAndSignature(asked), " gave ", outputs.size(),
                                            " outputs instead of ", def.outputs.size()));
  absl::InlinedVector<ReplyOutput, kUsualTensors> chosen;
  for (const int index : asked.outputs)
    chosen.push_back(
        {def.outputs[static_cast<size_t>(index)].key, outputs[static_cast<size_t>(index)]});
  const ModelInfo& info = asked.model->info();
  return EncodePredictReply({info.name, info.version, def.name}, chosen, encoding, reply);
}

}  // namespace floe::server
