// Packs strings into bytes, and checks the lengths when it unpacks them.
#include "cli/string_array.h"

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace floe::cli {

absl::StatusOr<Tensor> DecodeStrings(const Tensor& bytes) {
  if (bytes.dtype() != DType::kUInt8 || bytes.shape().rank() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("strings are a uint8 array of rank 1 (a u32 length before each), not ",
                     DTypeName(bytes.dtype()), bytes.shape().ToString()));
  }
  const uint8_t* const data = bytes.as<uint8_t>();
  const int64_t size = bytes.elements();
  std::vector<std::string> values;
  for (int64_t at = 0; at < size;) {
    uint32_t length = 0;
    const bool has_length = size - at >= static_cast<int64_t>(sizeof length);
    if (has_length) std::memcpy(&length, data + at, sizeof length);
    if (!has_length || length > size - at - static_cast<int64_t>(sizeof length)) {
      return absl::InvalidArgumentError(absl::StrCat("string ", values.size(), " at byte ", at,
                                                     " of ", size, " runs past the end"));
    }
    at += sizeof length;
    values.emplace_back(reinterpret_cast<const char*>(data + at), length);
    at += length;
  }
  Tensor strings = Tensor::Allocate(DType::kString, Shape({static_cast<int64_t>(values.size())}));
  auto* out = static_cast<std::string*>(strings.mutable_data());
  for (std::string& value : values) *out++ = std::move(value);
  return strings;
}

Tensor EncodeStrings(const TensorView& strings) {
  std::string bytes;
  for (int64_t i = 0; i < strings.elements(); ++i) {
    const std::string& value = strings.as<std::string>()[i];
    const auto length = static_cast<uint32_t>(value.size());
    bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
    bytes += value;
  }
  return Tensor::Vector(DType::kUInt8, std::vector<uint8_t>(bytes.begin(), bytes.end()));
}

absl::StatusOr<Tensor> ShapeStrings(const Tensor& flat, const SymShape& declared) {
  if (!declared.rank_known()) return flat;
  const int64_t elements = flat.elements();
  int64_t known = 1;
  int unknown_axis = -1;
  for (int axis = 0; axis < declared.rank(); ++axis) {
    if (declared.dim(axis).concrete()) {
      known *= declared.dim(axis).size();
    } else if (unknown_axis < 0) {
      unknown_axis = axis;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("the shape of ", elements, " strings does not follow from ",
                       declared.ToString(), "; give it with --shape"));
    }
  }
  const bool fits = unknown_axis < 0 ? known == elements : known != 0 && elements % known == 0;
  if (!fits) {
    return absl::InvalidArgumentError(
        absl::StrCat(elements, " strings do not fit the shape ", declared.ToString()));
  }
  Shape shape;
  for (int axis = 0; axis < declared.rank(); ++axis) {
    shape.push_back(axis == unknown_axis ? elements / known : declared.dim(axis).size());
  }
  return flat.Reshaped(shape);
}

}  // namespace floe::cli
