// tensorflow.TensorProto -> a TensorView that can be fed: found in the message and checked.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "model/shape.h"
#include "model/tensor.h"
#include "server/request/input_reader.h"
#include "server/request/value_list.h"

namespace floe::server {

// TensorProto's field numbers.
enum class TensorField : uint8_t {
  kNone = 0,
  kDtype = 1,
  kShape = 2,
  kVersionNumber = 3,
  kContent = 4,
  kFloatVal = 5,
  kDoubleVal = 6,
  kIntVal = 7,
  kStringVal = 8,
  kScomplexVal = 9,
  kInt64Val = 10,
  kBoolVal = 11,
  kDcomplexVal = 12,
  kHalfVal = 13,
  kResourceHandleVal = 14,
  kVariantVal = 15,
  kUint32Val = 16,
  kUint64Val = 17,
  kFloat8Val = 18,
};

// The list that holds values of `dtype`; kNone for dtypes that requests cannot carry.
TensorField ListOf(DType dtype);
ListKind KindOf(TensorField list);

// A tensor as sent, nothing compared with a model yet. Views point into the message.
struct ParsedTensor {
  int dtype = 0;  // TensorFlow's number, unchecked
  Shape shape;    // dims may be negative or too large
  bool unknown_rank = false;
  std::string_view content;  // tensor_content
  // Its `field` is a TensorField; its `messages` are the TensorProto, which may come in pieces.
  ValueList values;
};

// False for bytes that are no TensorProto. A tensor read twice is merged, as by protobuf.
bool ParseTensor(std::string_view message, ParsedTensor* tensor);

// The tensor's dtype, or INVALID_ARGUMENT naming input and number.
absl::StatusOr<DType> DTypeOf(std::string_view key, const ParsedTensor& tensor);

// Allocates nothing, however large a shape was sent. INVALID_ARGUMENT names the input and what was
// expected. The shape must be known, and neither negative nor too large. tensor_content must have
// its size. Values must be in the list of the dtype alone, and no more than elements; no values at
// all mean zeros, as in TensorFlow.
absl::StatusOr<CheckedTensor> CheckTensor(std::string_view key, const ParsedTensor& tensor);

}  // namespace floe::server
