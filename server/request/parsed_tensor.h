// tensorflow.TensorProto -> a TensorView that can be fed: found in the message, checked, decoded.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "model/shape.h"
#include "model/tensor.h"
#include "server/request/inference.h"

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

// How a list of values is written.
enum class ListKind : uint8_t { kNone, kFixed32, kFixed64, kVarint, kStrings };

// The list that holds values of `dtype`; kNone for dtypes that requests cannot carry.
TensorField ListOf(DType dtype);
ListKind KindOf(TensorField list);

// A tensor as sent, nothing compared with a model yet. Views point into the message.
struct ParsedTensor {
  int dtype = 0;  // TensorFlow's number, unchecked
  Shape shape;    // dims may be negative or too large
  bool unknown_rank = false;
  std::string_view content;               // tensor_content
  TensorField list = TensorField::kNone;  // the list with values; kNone when there is none
  bool several_lists = false;             // values in more than one list
  int64_t values = 0;                     // in the list; a complex number is two
  int64_t value_bytes = 0;                // of them on the wire
  std::string_view last;                  // of a list of strings
  std::string_view packed;                // the list's values, where they lie in one piece
  // The TensorProto, which may come in pieces; values that do, too, are read there.
  absl::InlinedVector<std::string_view, 1> messages;
};

// False for bytes that are no TensorProto. A tensor read twice is merged, as by protobuf.
bool ParseTensor(std::string_view message, ParsedTensor* tensor);

// The tensor's dtype, or INVALID_ARGUMENT naming input and number.
absl::StatusOr<DType> DTypeOf(std::string_view key, const ParsedTensor& tensor);

// A tensor that is right, though its values may have to be decoded yet.
struct CheckedTensor {
  TensorView view;       // data: in the message, or null where DecodeTensor has to provide it
  int64_t bytes = 0;     // that decoding takes beside the message
  bool repeats = false;  // few values, or none, stand for all: filling, not decoding
};

// Allocates nothing, however large a shape was sent. INVALID_ARGUMENT names the input and what was
// expected. The shape must be known, and neither negative nor too large. tensor_content must have
// its size. Values must be in the list of the dtype alone, and no more than elements.
absl::StatusOr<CheckedTensor> CheckTensor(std::string_view key, const ParsedTensor& tensor);

// Gives the view of a checked tensor its data, in `storage`, where it has none; no values at all
// mean zeros, as in TensorFlow. Its bytes are charged, and paid for here. The data may be
// unaligned.
absl::Status DecodeTensor(const ParsedTensor& tensor, InputStorage* storage, TensorView* view);

}  // namespace floe::server
