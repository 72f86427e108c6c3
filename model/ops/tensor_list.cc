// TensorList: a list of tensors as a value. Ops that change a list give a new one; kernels reuse
// the old where they may.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/list_ops.h"

namespace floe {
namespace {

using ops::ListHandle;
using ops::ListOp;
using ops::MakeList;
using ops::SpelledShape;

DType ElementType(const InferContext& c) {
  return ops::TypeAttr(c, "element_dtype", DType::kInvalid);
}
const ListTypePtr& ListOf(const InferContext& c) { return c.inputs[0].type.list; }

// A scalar's value as a dim; unknown when it is not known, or negative.
absl::StatusOr<Dim> Count(const InferContext& c, int i) {
  std::vector<Dim> value;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.DimsOf(i, &value));
  if (!known) return Dim::Unknown();
  if (value.size() != 1)
    return Bad(absl::StrCat("input ", i, " has ", value.size(), " elements, expected a scalar"));
  return value[0].concrete() && value[0].size() < 0 ? Dim::Unknown() : value[0];
}

// EmptyTensorList(element_shape, max_num_elements)
absl::StatusOr<Types> InferEmpty(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(SymShape element, SpelledShape(c, 0));
  return Types{ListHandle(MakeList(0, false, std::move(element)))};
}

// TensorListReserve(element_shape, num_elements)
absl::StatusOr<Types> InferReserve(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(SymShape element, SpelledShape(c, 0));
  FLOE_ASSIGN_OR_RETURN(const Dim size, Count(c, 1));
  return Types{ListHandle(MakeList(size, false, std::move(element)))};
}

// TensorListFromTensor(tensor, element_shape)
absl::StatusOr<Types> InferFromTensor(const InferContext& c) {
  const SymShape& tensor = c.shape(0);
  if (tensor.rank_known() && tensor.rank() == 0)
    return Bad("a scalar cannot be taken apart into a list");
  return Types{ListHandle(MakeList(tensor.rank_known() ? tensor.dim(0) : Dim::Unknown(), true,
                                   ops::WithoutDim0(tensor)))};
}

// TensorListGetItem(list, index, element_shape)
absl::StatusOr<Types> InferGetItem(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const SymShape declared, SpelledShape(c, 2));
  return ops::One(ElementType(c), ops::ElementShape(ListOf(c), declared));
}

// TensorListSetItem(list, index, item)
absl::StatusOr<Types> InferSetItem(const InferContext& c) {
  ListTypePtr list = ops::Written(ListOf(c), c.shape(2));
  if (list != nullptr && c.attrs().Bool("resize_if_index_out_of_bounds"))
    list = MakeList(Dim::Unknown(), true, list->element);
  return Types{ListHandle(std::move(list))};
}

// TensorListPushBack(list, item)
absl::StatusOr<Types> InferPushBack(const InferContext& c) {
  ListTypePtr list = ops::Written(ListOf(c), c.shape(1));
  if (list != nullptr) list = MakeList(list->size + Dim(1), true, list->element);
  return Types{ListHandle(std::move(list))};
}

// TensorListPopBack(list, element_shape) -> list, item
absl::StatusOr<Types> InferPopBack(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const SymShape declared, SpelledShape(c, 1));
  ListTypePtr list = ListOf(c);
  SymShape item = ops::ElementShape(list, declared);
  if (list != nullptr) list = MakeList(list->size + Dim(-1), list->written, list->element);
  return Types{ListHandle(std::move(list)), TensorType{ElementType(c), std::move(item)}};
}

absl::StatusOr<Types> InferLength(const InferContext&) { return ops::One(DType::kInt32, {}); }

// TensorListElementShape(list): a vector, or the scalar -1
absl::StatusOr<Types> InferElementShape(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const DType dtype, ops::IndexTypeAttr(c, "shape_type", DType::kInt32));
  return ops::One(dtype, SymShape::UnknownRank());
}

// TensorListResize(list, size)
absl::StatusOr<Types> InferListResize(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const Dim size, Count(c, 1));
  ListTypePtr list = ListOf(c);
  if (list != nullptr) list = MakeList(size, list->written, list->element);
  return Types{ListHandle(std::move(list))};
}

// TensorListStack(list, element_shape)
absl::StatusOr<Types> InferStack(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const SymShape declared, SpelledShape(c, 1));
  const int64_t wanted = c.attrs().Int("num_elements", -1);
  Dim size = ListOf(c) == nullptr ? Dim::Unknown() : ListOf(c)->size;
  if (wanted >= 0) size = wanted;
  return ops::One(ElementType(c), ops::WithDim0(size, ops::ElementShape(ListOf(c), declared)));
}

// TensorListGather(list, indices, element_shape)
absl::StatusOr<Types> InferListGather(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const SymShape declared, SpelledShape(c, 2));
  const Dim size = ops::DimOf(c, 1, 0);
  return ops::One(ElementType(c), ops::WithDim0(size, ops::ElementShape(ListOf(c), declared)));
}

// TensorListConcatV2(list, element_shape, leading_dims) -> tensor, lengths
absl::StatusOr<Types> InferListConcat(const InferContext& c) {
  SymShape declared = c.attrs().Get<SymShape>("element_shape", SymShape::UnknownRank());
  if (c.num_inputs() > 1) {
    FLOE_ASSIGN_OR_RETURN(declared, SpelledShape(c, 1));
  }
  SymShape out = ops::ElementShape(ListOf(c), declared);
  if (out.rank_known() && out.rank() == 0) return Bad("elements of rank 0 cannot be concatenated");
  if (out.rank_known()) out.set_dim(0, Dim::Unknown());
  const Dim size = ListOf(c) == nullptr ? Dim::Unknown() : ListOf(c)->size;
  return Types{TensorType{ElementType(c), std::move(out)}, TensorType{DType::kInt64, {size}}};
}

// TensorListSplit(tensor, element_shape, lengths)
absl::StatusOr<Types> InferListSplit(const InferContext& c) {
  SymShape element = c.shape(0);
  if (element.rank_known() && element.rank() == 0)
    return Bad("a scalar cannot be split into a list");
  if (element.rank_known()) element.set_dim(0, Dim::Unknown());
  const Dim size =
      c.shape(2).rank_known() && c.shape(2).rank() == 1 ? c.shape(2).dim(0) : Dim::Unknown();
  return Types{ListHandle(MakeList(size, true, std::move(element)))};
}

// TensorListScatter(tensor, indices, element_shape), V2: (..., num_elements)
absl::StatusOr<Types> InferListScatter(const InferContext& c) {
  Dim size = Dim::Unknown();
  if (c.num_inputs() > 3) {
    FLOE_ASSIGN_OR_RETURN(size, Count(c, 3));
  }
  return Types{ListHandle(MakeList(size, true, ops::WithoutDim0(c.shape(0))))};
}

// TensorListScatterIntoExistingList(list, tensor, indices)
absl::StatusOr<Types> InferScatterInto(const InferContext& c) {
  ListTypePtr list = ops::Written(ListOf(c), ops::WithoutDim0(c.shape(1)));
  if (list != nullptr) list = MakeList(Dim::Unknown(), true, list->element);
  return Types{ListHandle(std::move(list))};
}

RowMark EmptyRows(const RowContext& c) { return ops::MarkOfNew(c, 0, ops::kNone); }
RowMark ReserveRows(const RowContext& c) { return ops::MarkOfNew(c, 0, 1); }
RowMark SetItemRows(const RowContext& c) {
  return ops::MarkOfWrite(c, {.list = 0, .data = 2, .index = 1});
}
RowMark PushBackRows(const RowContext& c) { return ops::MarkOfWrite(c, {.list = 0, .data = 1}); }
RowMark GetItemRows(const RowContext& c) {
  return ops::MarkOfRead(c, {.list = 0, .index = 1, .shape = 2});
}
RowMark PopBackRows(const RowContext& c) { return ops::MarkOfRead(c, {.list = 0, .shape = 1}, 1); }
RowMark StackRows(const RowContext& c) { return ops::MarkOfStack(c, {.list = 0, .shape = 1}); }
RowMark ListGatherRows(const RowContext& c) {
  return ops::MarkOfStack(c, {.list = 0, .index = 1, .shape = 2});
}
RowMark FromTensorRows(const RowContext& c) {
  return ops::MarkOfUnstack(c, {.data = 0, .shape = 1});
}
RowMark ListScatterRows(const RowContext& c) {
  return ops::MarkOfUnstack(c, {.data = 0, .index = 1, .shape = 2});
}
RowMark ScatterIntoRows(const RowContext& c) {
  return ops::MarkOfUnstack(c, {.list = 0, .data = 1, .index = 2});
}

// The number of elements is the same whatever they hold.
RowMark LengthRows(const RowContext& c) {
  const RowMark list = c.marks[0];
  if (list == RowMark::kRowList) return RowMark::kMixed;
  return list == RowMark::kRows ? RowMark::kConstant : list;
}

// Another length of the same list.
RowMark ListResizeRows(const RowContext& c) {
  return c.OthersConstant(1) && c.marks[0] != RowMark::kRowList ? c.marks[0] : RowsNever(c);
}

const OpRegistrar kLists[] = {
    OpRegistrar(ListOp("EmptyTensorList", InferEmpty, EmptyRows), "i int32"),
    OpRegistrar(ListOp("TensorListReserve", InferReserve, ReserveRows), "i int32"),
    OpRegistrar(ListOp("TensorListFromTensor", InferFromTensor, FromTensorRows), "T i"),
    OpRegistrar(ListOp("TensorListGetItem", InferGetItem, GetItemRows), "variant int32 i"),
    OpRegistrar(ListOp("TensorListSetItem", InferSetItem, SetItemRows), "variant int32 T"),
    OpRegistrar(ListOp("TensorListPushBack", InferPushBack, PushBackRows), "variant T"),
    OpRegistrar(ListOp("TensorListPopBack", InferPopBack, PopBackRows, {"output_handle", "tensor"}),
                "variant int32"),
    OpRegistrar(ListOp("TensorListLength", InferLength, LengthRows), "variant"),
    OpRegistrar(ListOp("TensorListElementShape", InferElementShape, RowsNever), "variant"),
    OpRegistrar(ListOp("TensorListResize", InferListResize, ListResizeRows), "variant int32"),
    OpRegistrar(ListOp("TensorListStack", InferStack, StackRows), "variant int32"),
    OpRegistrar(ListOp("TensorListGather", InferListGather, ListGatherRows),
                "variant int32[_] int32"),
    OpRegistrar(ListOp("TensorListConcat", InferListConcat, RowsNever, {"tensor", "lengths"}),
                "variant"),
    OpRegistrar(ListOp("TensorListConcatV2", InferListConcat, RowsNever, {"tensor", "lengths"}),
                "variant i int64"),
    OpRegistrar(ListOp("TensorListSplit", InferListSplit, RowsNever), "T i int64"),
    OpRegistrar(ListOp("TensorListScatter", InferListScatter, ListScatterRows), "T int32 i"),
    OpRegistrar(ListOp("TensorListScatterV2", InferListScatter, ListScatterRows),
                "T int32 i int32"),
    OpRegistrar(ListOp("TensorListScatterIntoExistingList", InferScatterInto, ScatterIntoRows),
                "variant T int32"),
};

}  // namespace
}  // namespace floe
