#include "model/dtype.h"

#include "absl/strings/str_cat.h"

namespace floe {
namespace {

struct Info {
  DType dtype;
  size_t size;
  const char* name;
};

constexpr Info kInfos[] = {
    {DType::kFloat32, 4, "float32"}, {DType::kFloat64, 8, "float64"},
    {DType::kInt32, 4, "int32"},     {DType::kUInt8, 1, "uint8"},
    {DType::kInt16, 2, "int16"},     {DType::kInt8, 1, "int8"},
    {DType::kString, 0, "string"},   {DType::kComplex64, 8, "complex64"},
    {DType::kInt64, 8, "int64"},     {DType::kBool, 1, "bool"},
    {DType::kQInt8, 1, "qint8"},     {DType::kQUInt8, 1, "quint8"},
    {DType::kQInt32, 4, "qint32"},   {DType::kBFloat16, 2, "bfloat16"},
    {DType::kQInt16, 2, "qint16"},   {DType::kQUInt16, 2, "quint16"},
    {DType::kUInt16, 2, "uint16"},   {DType::kComplex128, 16, "complex128"},
    {DType::kFloat16, 2, "float16"}, {DType::kResource, 0, "resource"},
    {DType::kVariant, 0, "variant"}, {DType::kUInt32, 4, "uint32"},
    {DType::kUInt64, 8, "uint64"},
};

const Info* Find(DType dtype) {
  for (const Info& info : kInfos) {
    if (info.dtype == dtype) return &info;
  }
  return nullptr;
}

}  // namespace

size_t DTypeSize(DType dtype) {
  const Info* info = Find(dtype);
  return info == nullptr ? 0 : info->size;
}

const char* DTypeName(DType dtype) {
  const Info* info = Find(dtype);
  return info == nullptr ? "invalid" : info->name;
}

absl::StatusOr<DType> DTypeFromName(const std::string& name) {
  for (const Info& info : kInfos) {
    if (name == info.name) return info.dtype;
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown dtype '", name, "'"));
}

absl::StatusOr<DType> DTypeFromNumber(int number) {
  constexpr int kReferenceOffset = 100;
  const int plain = number > kReferenceOffset ? number - kReferenceOffset : number;
  if (plain > 0 && plain < 256 && Find(static_cast<DType>(plain)) != nullptr) {
    return static_cast<DType>(plain);
  }
  return absl::InvalidArgumentError(absl::StrCat("unsupported dtype number ", number));
}

bool IsFloating(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kFloat16 ||
         dtype == DType::kBFloat16;
}

bool IsHandle(DType dtype) { return dtype == DType::kVariant || dtype == DType::kResource; }

bool IsInteger(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUInt8:
    case DType::kUInt16:
    case DType::kUInt32:
    case DType::kUInt64:
      return true;
    default:
      return false;
  }
}

DType PlainDType(DType dtype) {
  switch (dtype) {
    case DType::kQInt8:
      return DType::kInt8;
    case DType::kQUInt8:
      return DType::kUInt8;
    case DType::kQInt16:
      return DType::kInt16;
    case DType::kQUInt16:
      return DType::kUInt16;
    case DType::kQInt32:
      return DType::kInt32;
    default:
      return dtype;
  }
}

}  // namespace floe
