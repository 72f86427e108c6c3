// tensorflow.TensorProto as the wire knows it: which list of values belongs to which dtype.
#pragma once

#include <cstdint>

#include "model/dtype.h"

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
const char* FieldName(TensorField field);  // "float_val"

}  // namespace floe::server
