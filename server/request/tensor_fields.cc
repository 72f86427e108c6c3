#include "server/request/tensor_fields.h"

namespace floe::server {

TensorField ListOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return TensorField::kFloatVal;
    case DType::kFloat64:
      return TensorField::kDoubleVal;
    case DType::kInt32:
    case DType::kInt16:
    case DType::kInt8:
    case DType::kUInt16:
    case DType::kUInt8:
    case DType::kQInt8:
    case DType::kQUInt8:
    case DType::kQInt16:
    case DType::kQUInt16:
    case DType::kQInt32:
      return TensorField::kIntVal;
    case DType::kString:
      return TensorField::kStringVal;
    case DType::kComplex64:
      return TensorField::kScomplexVal;
    case DType::kInt64:
      return TensorField::kInt64Val;
    case DType::kBool:
      return TensorField::kBoolVal;
    case DType::kComplex128:
      return TensorField::kDcomplexVal;
    case DType::kFloat16:
    case DType::kBFloat16:
      return TensorField::kHalfVal;
    case DType::kUInt32:
      return TensorField::kUint32Val;
    case DType::kUInt64:
      return TensorField::kUint64Val;
    case DType::kInvalid:
    case DType::kResource:
    case DType::kVariant:
      return TensorField::kNone;
  }
  return TensorField::kNone;
}

ListKind KindOf(TensorField list) {
  switch (list) {
    case TensorField::kFloatVal:
    case TensorField::kScomplexVal:
      return ListKind::kFixed32;
    case TensorField::kDoubleVal:
    case TensorField::kDcomplexVal:
      return ListKind::kFixed64;
    case TensorField::kIntVal:
    case TensorField::kInt64Val:
    case TensorField::kBoolVal:
    case TensorField::kHalfVal:
    case TensorField::kUint32Val:
    case TensorField::kUint64Val:
      return ListKind::kVarint;
    case TensorField::kStringVal:
      return ListKind::kStrings;
    default:
      return ListKind::kNone;
  }
}

const char* FieldName(TensorField field) {
  switch (field) {
    case TensorField::kFloatVal:
      return "float_val";
    case TensorField::kDoubleVal:
      return "double_val";
    case TensorField::kIntVal:
      return "int_val";
    case TensorField::kStringVal:
      return "string_val";
    case TensorField::kScomplexVal:
      return "scomplex_val";
    case TensorField::kInt64Val:
      return "int64_val";
    case TensorField::kBoolVal:
      return "bool_val";
    case TensorField::kDcomplexVal:
      return "dcomplex_val";
    case TensorField::kHalfVal:
      return "half_val";
    case TensorField::kResourceHandleVal:
      return "resource_handle_val";
    case TensorField::kVariantVal:
      return "variant_val";
    case TensorField::kUint32Val:
      return "uint32_val";
    case TensorField::kUint64Val:
      return "uint64_val";
    case TensorField::kFloat8Val:
      return "float8_val";
    default:
      return "no values";
  }
}

}  // namespace floe::server
