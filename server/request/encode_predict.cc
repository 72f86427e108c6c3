// Writes a PredictResponse from the outputs' bytes, without protobuf's classes.
#include "server/request/encode_predict.h"

#include <google/protobuf/io/coded_stream.h>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "base/wire_reader.h"
#include "server/request/names.h"
#include "server/request/request.h"
#include "server/request/tensor_fields.h"

namespace floe::server {
namespace {

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

class Writer {
 public:
  explicit Writer(std::string* out) : out_(*out) {}

  void Varint(uint64_t value) {
    uint8_t bytes[10];
    const uint8_t* const end = CodedOutputStream::WriteVarint64ToArray(value, bytes);
    out_.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(end - bytes));
  }
  void Tag(uint32_t field, WireType type) {
    Varint(uint64_t{field} << 3 | static_cast<uint64_t>(type));
  }
  // Tag and length; the caller writes the bytes.
  void BeginBytes(uint32_t field, size_t size) {
    Tag(field, WireType::kBytes);
    Varint(size);
  }
  void Bytes(uint32_t field, std::string_view bytes) {
    BeginBytes(field, bytes.size());
    out_.append(bytes);
  }
  void Number(uint32_t field, uint64_t value) {
    if (value == 0) return;
    Tag(field, WireType::kVarint);
    Varint(value);
  }
  void Raw(const void* data, size_t size) { out_.append(static_cast<const char*>(data), size); }

 private:
  std::string& out_;
};

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

void WriteShape(const Shape& shape, size_t size, Writer& writer) {
  writer.BeginBytes(static_cast<uint32_t>(TensorField::kShape), size);
  for (const int64_t dim : shape.dims()) {
    const auto number = static_cast<uint64_t>(dim);
    writer.BeginBytes(kShapeDim, NumberFieldSize(kDimSize, number));
    writer.Number(kDimSize, number);
  }
}

void WriteValues(const TensorView& view, const Measured& m, Writer& writer) {
  const auto field = static_cast<uint32_t>(m.list);
  if (view.dtype == DType::kString) {
    for (int64_t i = 0, n = view.elements(); i < n; ++i) {
      writer.Bytes(field, view.as<std::string>()[i]);
    }
    return;
  }
  if (m.values == 0) return;
  writer.BeginBytes(field, m.values);
  if (SameBytes(m.list)) return writer.Raw(view.data, m.values);
  ForEachVarint(view, [&writer](uint64_t value) { writer.Varint(value); });
}

void WriteOutput(const ReplyOutput& output, const Measured& m, Writer& writer) {
  writer.BeginBytes(kOutputs, m.entry);
  writer.Bytes(kEntryKey, output.key);
  writer.BeginBytes(kEntryValue, m.tensor);
  writer.Number(static_cast<uint32_t>(TensorField::kDtype),
                static_cast<uint64_t>(output.value.dtype));
  WriteShape(output.value.shape, m.shape, writer);
  WriteValues(output.value, m, writer);
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
  reply->clear();
  reply->reserve(total);
  Writer writer(reply);
  for (size_t i = 0; i < outputs.size(); ++i) WriteOutput(outputs[i], measured[i], writer);
  writer.BeginBytes(kModelSpec, spec_size);
  writer.Bytes(kSpecName, spec.model);
  writer.BeginBytes(kSpecVersion, version_size);
  writer.Number(kWrappedValue, version);
  writer.Bytes(kSpecSignature, spec.signature);
  return absl::OkStatus();
}

}  // namespace floe::server
