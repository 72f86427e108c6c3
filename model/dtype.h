// Element types. The numbers are TensorFlow's DataType numbers, so that wire and file formats need
// no table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace floe {

enum class DType : uint8_t {
  kInvalid = 0,
  kFloat32 = 1,
  kFloat64 = 2,
  kInt32 = 3,
  kUInt8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kString = 7,
  kComplex64 = 8,
  kInt64 = 9,
  kBool = 10,
  kQInt8 = 11,
  kQUInt8 = 12,
  kQInt32 = 13,
  kBFloat16 = 14,
  kQInt16 = 15,
  kQUInt16 = 16,
  kUInt16 = 17,
  kComplex128 = 18,
  kFloat16 = 19,
  kResource = 20,
  kVariant = 21,
  kUInt32 = 22,
  kUInt64 = 23,
};

// Bytes of one element; 0 for strings, handles and kInvalid.
size_t DTypeSize(DType dtype);

// NumPy's names: "float32", "bool", ...; "string", "resource", "variant", "invalid".
const char* DTypeName(DType dtype);
absl::StatusOr<DType> DTypeFromName(const std::string& name);

// From TensorFlow's number (reference types, 100 + n, become n); an error that names the number
// otherwise.
absl::StatusOr<DType> DTypeFromNumber(int number);

bool IsFloating(DType dtype);  // float16, bfloat16, float32, float64
bool IsHandle(DType dtype);    // variant, resource
bool IsInteger(DType dtype);   // any width, signed or not; bool and quantised types are not

// Of a quantised type the integer type with the same bits; other types as they are.
DType PlainDType(DType dtype);
inline bool IsQuantized(DType dtype) { return PlainDType(dtype) != dtype; }

}  // namespace floe
