// Tensors as text and as the bytes of a protocol buffer.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

absl::StatusOr<Types> InferText(const InferContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (IsHandle(c.dtype(i))) return Bad(absl::StrCat("input ", i, " is ", DTypeName(c.dtype(i))));
  }
  if (c.node.op->name == "StringFormat" && c.attrs().String("placeholder", "%s").empty())
    return Bad("placeholder is empty");
  return ops::One(DType::kString, {});
}

absl::StatusOr<Types> InferBytesParse(const InferContext& c) {
  const DType dtype = ops::TypeAttr(c, "out_type", DType::kInvalid);
  if (dtype == DType::kInvalid || IsHandle(dtype))
    return Bad(absl::StrCat("out_type is ", DTypeName(dtype)));
  return ops::One(dtype, SymShape::UnknownRank());
}

const OpRegistrar kBytes[] = {
    OpRegistrar({.name = "StringFormat",
                 .infer = InferText,
                 .rows = RowsNever,
                 .input_types = "?",
                 .limits = "complex numbers are refused"}),
    OpRegistrar(ops::Simple("SerializeTensor", InferText, RowsNever), "T"),
    OpRegistrar(ops::Allocating("ParseTensor", {"output"}, InferBytesParse), "string[]"),
};

}  // namespace
}  // namespace floe
