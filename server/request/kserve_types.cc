// The two tables: datatypes, and the fields of InferTensorContents.
#include "server/request/kserve_types.h"

#include <iterator>

namespace floe::server {
namespace {

constexpr ContentsList kLists[] = {
    {},
    {1, ListKind::kVarint, "bool_contents"},
    {2, ListKind::kVarint, "int_contents"},
    {3, ListKind::kVarint, "int64_contents"},
    {4, ListKind::kVarint, "uint_contents"},
    {5, ListKind::kVarint, "uint64_contents"},
    {6, ListKind::kFixed32, "fp32_contents"},
    {7, ListKind::kFixed64, "fp64_contents"},
    {8, ListKind::kStrings, "bytes_contents"},
};

constexpr struct {
  DType dtype;
  const char* name;
  uint32_t list;
} kTypes[] = {
    {DType::kFloat32, "FP32", 6},  {DType::kInt64, "INT64", 3},   {DType::kInt32, "INT32", 2},
    {DType::kString, "BYTES", 8},  {DType::kUInt8, "UINT8", 4},   {DType::kFloat64, "FP64", 7},
    {DType::kFloat16, "FP16", 0},  {DType::kBFloat16, "BF16", 0}, {DType::kBool, "BOOL", 1},
    {DType::kInt8, "INT8", 2},     {DType::kInt16, "INT16", 2},   {DType::kUInt16, "UINT16", 4},
    {DType::kUInt32, "UINT32", 4}, {DType::kUInt64, "UINT64", 5},
};

}  // namespace

const char* KServeName(DType dtype) {
  for (const auto& type : kTypes)
    if (type.dtype == PlainDType(dtype)) return type.name;
  return "";
}

DType FromKServeName(std::string_view name) {
  for (const auto& type : kTypes)
    if (type.name == name) return type.dtype;
  return DType::kInvalid;
}

ContentsList ContentsListAt(uint32_t field) {
  return field < std::size(kLists) ? kLists[field] : ContentsList();
}

ContentsList ContentsListOf(DType dtype) {
  for (const auto& type : kTypes)
    if (type.dtype == PlainDType(dtype)) return kLists[type.list];
  return {};
}

}  // namespace floe::server
