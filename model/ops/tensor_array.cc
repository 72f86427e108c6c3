// TensorArray: an object behind a resource handle, written in place. Each op takes the flow (a
// float scalar that orders them) and writers give the next one; what is known of the elements
// travels with the flow.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/list_ops.h"

namespace floe {
namespace {

using ops::ListOp;
using ops::MakeList;

TensorType Flow(ListTypePtr list) { return {DType::kFloat32, SymShape(), std::move(list)}; }

SymShape DeclaredShape(const InferContext& c) {
  return c.attrs().Get<SymShape>("element_shape", SymShape::UnknownRank());
}

// TensorArrayV3(size) -> handle, flow
absl::StatusOr<Types> InferArray(const InferContext& c) {
  std::vector<Dim> size;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.DimsOf(0, &size));
  if (known && size.size() != 1)
    return Bad(absl::StrCat("the size has ", size.size(), " elements, expected a scalar"));
  const Dim fixed = known && !c.attrs().Bool("dynamic_size") ? size[0] : Dim::Unknown();
  return Types{TensorType{DType::kResource, SymShape()},
               Flow(MakeList(fixed, false, DeclaredShape(c)))};
}

// TensorArrayWriteV3(handle, index, value, flow)
absl::StatusOr<Types> InferWrite(const InferContext& c) {
  return Types{Flow(ops::Written(c.inputs[3].type.list, c.shape(2)))};
}

// TensorArrayReadV3(handle, index, flow)
absl::StatusOr<Types> InferRead(const InferContext& c) {
  return ops::One(ops::TypeAttr(c, "dtype", DType::kInvalid),
                  ops::ElementShape(c.inputs[2].type.list, SymShape::UnknownRank()));
}

// TensorArrayGatherV3(handle, indices, flow)
absl::StatusOr<Types> InferArrayGather(const InferContext& c) {
  const Dim size = ops::DimOf(c, 1, 0);
  return ops::One(ops::TypeAttr(c, "dtype", DType::kInvalid),
                  ops::WithDim0(size, ops::ElementShape(c.inputs[2].type.list, DeclaredShape(c))));
}

// TensorArrayScatterV3(handle, indices, value, flow)
absl::StatusOr<Types> InferScatter(const InferContext& c) {
  if (c.shape(2).rank_known() && c.shape(2).rank() == 0)
    return Bad("a scalar cannot be taken apart into an array");
  return Types{Flow(ops::Written(c.inputs[3].type.list, ops::WithoutDim0(c.shape(2))))};
}

// TensorArraySizeV3(handle, flow)
absl::StatusOr<Types> InferArraySize(const InferContext&) { return ops::One(DType::kInt32, {}); }

// TensorArrayConcatV3(handle, flow) -> value, lengths
absl::StatusOr<Types> InferArrayConcat(const InferContext& c) {
  const ListTypePtr& list = c.inputs[1].type.list;
  SymShape out = ops::ElementShape(list, SymShape::UnknownRank());
  if (out.rank_known() && out.rank() == 0) return Bad("elements of rank 0 cannot be concatenated");
  if (out.rank_known()) out.set_dim(0, Dim::Unknown());
  return Types{TensorType{ops::TypeAttr(c, "dtype", DType::kInvalid), std::move(out)},
               TensorType{DType::kInt64, {list == nullptr ? Dim::Unknown() : list->size}}};
}

// TensorArraySplitV3(handle, value, lengths, flow)
absl::StatusOr<Types> InferArraySplit(const InferContext& c) {
  SymShape element = c.shape(1);
  if (element.rank_known() && element.rank() == 0)
    return Bad("a scalar cannot be split into an array");
  if (element.rank_known()) element.set_dim(0, Dim::Unknown());
  return Types{Flow(ops::Written(c.inputs[3].type.list, element))};
}

// The handle is neither constant nor rows of anything; what matters is the flow. It counts as
// constant so that loops may carry it.
RowMark ArrayRows(const RowContext& c) { return ops::MarkOfNew(c, ops::kNone, 0); }
RowMark WriteRows(const RowContext& c) {
  return ops::MarkOfWrite(c, {.list = 3, .data = 2, .index = 1, .array = 0});
}
RowMark ReadRows(const RowContext& c) {
  return ops::MarkOfRead(c, {.list = 2, .index = 1, .array = 0});
}
RowMark ArrayGatherRows(const RowContext& c) {
  return ops::MarkOfStack(c, {.list = 2, .index = 1, .array = 0});
}
RowMark ArrayScatterRows(const RowContext& c) {
  return ops::MarkOfUnstack(c, {.list = 3, .data = 2, .index = 1, .array = 0});
}
RowMark SizeRows(const RowContext& c) {
  const RowMark flow = c.marks[1];
  return c.marks[0] == RowMark::kConstant && flow == RowMark::kRows ? RowMark::kConstant
                                                                    : RowsNever(c);
}

OpDef CloseArray() {
  OpDef def = ListOp("TensorArrayCloseV3", ops::InferNothing, RowsNever);
  def.outputs = 0;
  return def;
}

const OpRegistrar kArrays[] = {
    OpRegistrar(ListOp("TensorArrayV3", InferArray, ArrayRows, {"handle", "flow"}), "int32"),
    OpRegistrar(ListOp("TensorArrayWriteV3", InferWrite, WriteRows), "resource int32 T float32"),
    OpRegistrar(ListOp("TensorArrayReadV3", InferRead, ReadRows), "resource int32 float32"),
    OpRegistrar(ListOp("TensorArrayGatherV3", InferArrayGather, ArrayGatherRows),
                "resource int32[_] float32"),
    OpRegistrar(ListOp("TensorArrayScatterV3", InferScatter, ArrayScatterRows),
                "resource int32 T float32"),
    OpRegistrar(ListOp("TensorArraySizeV3", InferArraySize, SizeRows), "resource float32"),
    OpRegistrar(ListOp("TensorArrayConcatV3", InferArrayConcat, RowsNever, {"value", "lengths"}),
                "resource float32"),
    OpRegistrar(ListOp("TensorArraySplitV3", InferArraySplit, RowsNever),
                "resource T int64 float32"),
    OpRegistrar(CloseArray(), "resource"),
};

}  // namespace
}  // namespace floe
