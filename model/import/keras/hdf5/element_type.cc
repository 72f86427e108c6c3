#include "model/import/keras/hdf5/element_type.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"

namespace floe::keras::hdf5 {
namespace {

DType IntegerType(size_t size, bool is_signed) {
  switch (size) {
    case 1:
      return is_signed ? DType::kInt8 : DType::kUInt8;
    case 2:
      return is_signed ? DType::kInt16 : DType::kUInt16;
    case 4:
      return is_signed ? DType::kInt32 : DType::kUInt32;
    case 8:
      return is_signed ? DType::kInt64 : DType::kUInt64;
    default:
      return DType::kInvalid;
  }
}

DType FloatType(hid_t type) {
  size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
  if (H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) < 0)
    return DType::kInvalid;
  const size_t size = H5Tget_size(type);
  if (size == 4 && exponent_bits == 8 && mantissa_bits == 23) return DType::kFloat32;
  if (size == 8 && exponent_bits == 11 && mantissa_bits == 52) return DType::kFloat64;
  if (size == 2 && exponent_bits == 5 && mantissa_bits == 10) return DType::kFloat16;
  if (size == 2 && exponent_bits == 8 && mantissa_bits == 7) return DType::kBFloat16;
  return DType::kInvalid;
}

DType PlainType(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return IntegerType(H5Tget_size(type), H5Tget_sign(type) == H5T_SGN_2);
    case H5T_FLOAT:
      return FloatType(type);
    case H5T_ENUM:  // h5py's bool
      return H5Tget_size(type) == 1 && H5Tget_nmembers(type) == 2 ? DType::kBool : DType::kInvalid;
    default:
      return DType::kInvalid;
  }
}

// libhdf5's type for numbers that may have another byte order in the file.
hid_t MemoryType(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return H5T_NATIVE_FLOAT;
    case DType::kFloat64:
      return H5T_NATIVE_DOUBLE;
    case DType::kInt8:
      return H5T_NATIVE_INT8;
    case DType::kUInt8:
      return H5T_NATIVE_UINT8;
    case DType::kInt16:
      return H5T_NATIVE_INT16;
    case DType::kUInt16:
      return H5T_NATIVE_UINT16;
    case DType::kInt32:
      return H5T_NATIVE_INT32;
    case DType::kUInt32:
      return H5T_NATIVE_UINT32;
    case DType::kInt64:
      return H5T_NATIVE_INT64;
    case DType::kUInt64:
      return H5T_NATIVE_UINT64;
    default:
      return -1;  // as it is
  }
}

const char* ClassName(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_STRING:
      return "strings";
    case H5T_COMPOUND:
      return "compound values";
    case H5T_OPAQUE:
      return "opaque bytes";
    default:
      return "no numbers floe knows";
  }
}

bool BigEndian(hid_t type) {
  return H5Tget_size(type) > 1 && H5Tget_class(type) != H5T_OPAQUE &&
         H5Tget_order(type) != H5T_ORDER_LE;
}

}  // namespace

absl::StatusOr<ElementType> ElementTypeOf(hid_t type, const std::string& named) {
  ElementType element{.dtype = PlainType(type)};
  const H5T_class_t kind = H5Tget_class(type);
  if (named == "bfloat16" && H5Tget_size(type) == 2 &&
      (kind == H5T_OPAQUE || kind == H5T_INTEGER || kind == H5T_FLOAT))
    element.dtype = DType::kBFloat16;
  if (element.dtype == DType::kInvalid) {
    if (!named.empty())
      return absl::InvalidArgumentError(
          absl::StrCat("dtype ", Escaped(named), " is not supported"));
    return absl::InvalidArgumentError(absl::StrCat("its elements are ", ClassName(type)));
  }
  const bool half = element.dtype == DType::kFloat16 || element.dtype == DType::kBFloat16;
  if (half && BigEndian(type))
    return absl::InvalidArgumentError("16-bit numbers in big-endian order");
  const hid_t memory = MemoryType(element.dtype);
  element.memory = memory >= 0 ? memory : type;
  element.as_here = !BigEndian(type);
  return element;
}

}  // namespace floe::keras::hdf5
