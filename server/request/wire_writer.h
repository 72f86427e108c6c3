// Writes messages of known sizes field by field, the values of tensors straight from their buffers.
#pragma once

#include <google/protobuf/io/coded_stream.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/wire_reader.h"
#include "model/tensor.h"
#include "server/request/inference.h"
#include "server/request/value_list.h"

namespace floe::server {

using google::protobuf::io::CodedOutputStream;

inline size_t TagSize(uint32_t field) {
  return CodedOutputStream::VarintSize64(uint64_t{field} << 3);
}

// A length-delimited field with `size` bytes in it.
inline size_t BytesFieldSize(uint32_t field, size_t size) {
  return TagSize(field) + CodedOutputStream::VarintSize64(size) + size;
}

// A varint field, which proto3 leaves out when zero.
inline size_t NumberFieldSize(uint32_t field, uint64_t value) {
  return value == 0 ? 0 : TagSize(field) + CodedOutputStream::VarintSize64(value);
}

inline void WriteTag(uint32_t field, WireType type, CodedOutputStream& out) {
  out.WriteTag(field << 3 | static_cast<uint32_t>(type));
}

// Tag and length; the caller writes the bytes.
inline void BeginBytes(uint32_t field, size_t size, CodedOutputStream& out) {
  WriteTag(field, WireType::kBytes, out);
  out.WriteVarint64(size);
}

inline void WriteBytes(uint32_t field, std::string_view bytes, CodedOutputStream& out) {
  BeginBytes(field, bytes.size(), out);
  if (bytes.empty()) return;  // memcpy takes no null pointer
  out.WriteRaw(bytes.data(), static_cast<int>(bytes.size()));
}

inline void WriteNumber(uint32_t field, uint64_t value, CodedOutputStream& out) {
  if (value == 0) return;
  WriteTag(field, WireType::kVarint, out);
  out.WriteVarint64(value);
}

// Onto the end of a message of any size, for those that are made piece by piece.
void AppendVarint(uint64_t value, std::string* out);
void AppendBytesField(uint32_t field, std::string_view bytes, std::string* out);

// How a tensor's values are written: as a list of that kind, or, where that is kNone, as the
// tensor's own bytes. kPrefixed: strings in one piece, each behind its length.
struct WrittenValues {
  uint32_t field = 0;
  ListKind kind = ListKind::kNone;
  size_t bytes = 0;  // of the values alone
  size_t size = 0;   // of all that WriteValues writes; nothing when there are no values
};

WrittenValues MeasureValues(const TensorView& view, uint32_t field, ListKind kind);
void WriteValues(const TensorView& view, const WrittenValues& values, CodedOutputStream& out);
// The bytes of a field that is there although it is empty; not for lists of strings.
void WriteBareValues(const TensorView& view, const WrittenValues& values, CodedOutputStream& out);

// OUT_OF_RANGE beyond 2 GiB, which no protobuf message may exceed.
absl::Status CheckReplySize(size_t bytes);
// INTERNAL when a run gave other outputs than the signature has.
absl::Status CheckGiven(const Inference& asked, Outputs outputs);

}  // namespace floe::server
