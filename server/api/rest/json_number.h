// The C++ types of the dtypes that JSON has numbers for.
#pragma once

#include <cstdint>

#include "model/dtype.h"
#include "model/half.h"

namespace floe::server {

// Calls visit(T()) with the type of the dtype's elements. False: it is no such dtype.
template <typename Visit>
bool VisitNumbers(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::kFloat32:
      return visit(float()), true;
    case DType::kFloat64:
      return visit(double()), true;
    case DType::kFloat16:
      return visit(Half()), true;
    case DType::kBFloat16:
      return visit(BFloat16()), true;
    case DType::kInt8:
      return visit(int8_t()), true;
    case DType::kInt16:
      return visit(int16_t()), true;
    case DType::kInt32:
      return visit(int32_t()), true;
    case DType::kInt64:
      return visit(int64_t()), true;
    case DType::kUInt8:
      return visit(uint8_t()), true;
    case DType::kUInt16:
      return visit(uint16_t()), true;
    case DType::kUInt32:
      return visit(uint32_t()), true;
    case DType::kUInt64:
      return visit(uint64_t()), true;
    case DType::kBool:
      return visit(bool()), true;
    default:
      return false;
  }
}

}  // namespace floe::server
