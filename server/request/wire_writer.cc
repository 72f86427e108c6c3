// Values on the wire: in lists of their type, or as the bytes that they are.
#include "server/request/wire_writer.h"

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

namespace floe::server {
namespace {

constexpr size_t kLengthSize = 4;  // before each string of a kPrefixed list

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

// Whether the list's bytes are the tensor's own.
bool SameBytes(const TensorView& view, ListKind kind) {
  return kind != ListKind::kVarint || view.dtype == DType::kBool;
}

}  // namespace

WrittenValues MeasureValues(const TensorView& view, uint32_t field, ListKind kind) {
  WrittenValues m{field, kind};
  if (view.dtype == DType::kString) {
    const bool prefixed = kind == ListKind::kPrefixed;
    for (int64_t i = 0, n = view.elements(); i < n; ++i) {
      const size_t size = view.as<std::string>()[i].size();
      m.bytes += prefixed ? kLengthSize + size : BytesFieldSize(field, size);
    }
    m.size = m.bytes != 0 && prefixed ? BytesFieldSize(field, m.bytes) : m.bytes;
    return m;
  }
  if (SameBytes(view, kind)) {
    m.bytes = view.bytes();
  } else {
    ForEachVarint(view,
                  [&m](uint64_t value) { m.bytes += CodedOutputStream::VarintSize64(value); });
  }
  if (m.bytes != 0) m.size = BytesFieldSize(field, m.bytes);
  return m;
}

void WriteValues(const TensorView& view, const WrittenValues& values, CodedOutputStream& out) {
  if (values.kind != ListKind::kStrings) {
    if (values.bytes != 0) WriteBareValues(view, values, out);
    return;
  }
  for (int64_t i = 0, n = view.elements(); i < n; ++i)
    WriteBytes(values.field, view.as<std::string>()[i], out);
}

void WriteBareValues(const TensorView& view, const WrittenValues& values, CodedOutputStream& out) {
  BeginBytes(values.field, values.bytes, out);
  if (values.bytes == 0) return;
  if (view.dtype == DType::kString) {
    for (int64_t i = 0, n = view.elements(); i < n; ++i) {
      const std::string& text = view.as<std::string>()[i];
      out.WriteLittleEndian32(static_cast<uint32_t>(text.size()));
      out.WriteRaw(text.data(), static_cast<int>(text.size()));
    }
    return;
  }
  if (SameBytes(view, values.kind)) return out.WriteRaw(view.data, static_cast<int>(values.bytes));
  ForEachVarint(view, [&out](uint64_t value) { out.WriteVarint64(value); });
}

void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

void AppendBytesField(uint32_t field, std::string_view bytes, std::string* out) {
  AppendVarint(field << 3 | static_cast<uint32_t>(WireType::kBytes), out);
  AppendVarint(bytes.size(), out);
  out->append(bytes);
}

absl::Status CheckReplySize(size_t bytes) {
  if (bytes <= INT32_MAX) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat("the reply has ", bytes,
                                            " bytes and a message at most ", INT32_MAX,
                                            "; ask for fewer rows or outputs"));
}

absl::Status CheckGiven(const Inference& asked, Outputs outputs) {
  const SignatureDef& def = asked.signature->def();
  if (outputs.size() == def.outputs.size()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(ModelAndSignature(asked), " gave ", outputs.size(),
                                          " outputs instead of ", def.outputs.size()));
}

}  // namespace floe::server
