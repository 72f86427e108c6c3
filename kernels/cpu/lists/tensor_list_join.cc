// TensorList: between lists and whole tensors.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/lists/tensor_list.h"

namespace floe::kernels {
namespace {

// A list of the elements of input 0, declared by input 1 or 2.
absl::StatusOr<std::shared_ptr<TensorListObject>> NewList(const KernelContext& ctx, int shape_input,
                                                          const Shape& element) {
  FLOE_ASSIGN_OR_RETURN(SymShape shape, ReadShape(ctx.in(shape_input)));
  FLOE_RETURN_IF_ERROR(
      CheckElement(ctx.in(0).dtype, shape, {ctx.in(0).dtype, element, nullptr}, 0));
  return std::make_shared<TensorListObject>(ctx.in(0).dtype, std::move(shape));
}

absl::Status CheckRank(const TensorView& tensor) {
  return tensor.shape.rank() > 0 ? absl::OkStatus()
                                 : absl::InvalidArgumentError("a scalar cannot be taken apart");
}

absl::Status FromTensor(const KernelContext& ctx) {
  FLOE_RETURN_IF_ERROR(CheckRank(ctx.in(0)));
  FLOE_RETURN_IF_ERROR(CheckListSize(ctx.in(0).shape.dim(0)));
  FLOE_ASSIGN_OR_RETURN(std::shared_ptr<TensorListObject> list,
                        NewList(ctx, 1, WithoutDim0(ctx.in(0).shape)));
  list->elements = Unstacked(ctx.in(0));
  return GiveList(ctx, std::move(list));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeStack(const KernelArgs& args) {
  const DType dtype = args.node.attrs.Type("element_dtype");
  const int64_t wanted = args.node.attrs.Int("num_elements", -1);
  return FromFunction([dtype, wanted](const KernelContext& ctx) -> absl::Status {
    FLOE_ASSIGN_OR_RETURN(const TensorListObject* const list, ListIn(ctx.in(0)));
    FLOE_RETURN_IF_ERROR(CheckDType(list->dtype, dtype));
    FLOE_ASSIGN_OR_RETURN(const SymShape declared, ReadShape(ctx.in(1)));
    if (wanted >= 0 && wanted != static_cast<int64_t>(list->elements.size())) {
      return absl::InvalidArgumentError(absl::StrCat("the list has ", list->elements.size(),
                                                     " elements, the op expects ", wanted));
    }
    FLOE_ASSIGN_OR_RETURN(const SymShape shape, MergeShapes(list->element_shape, declared));
    return GiveStack(ctx, dtype, list->elements, shape);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeListJoinGather(const KernelArgs& args) {
  const DType dtype = args.node.attrs.Type("element_dtype");
  return FromFunction([dtype](const KernelContext& ctx) -> absl::Status {
    FLOE_ASSIGN_OR_RETURN(const TensorListObject* const list, ListIn(ctx.in(0)));
    FLOE_RETURN_IF_ERROR(CheckDType(list->dtype, dtype));
    IntList indices;
    FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &indices));
    FLOE_ASSIGN_OR_RETURN(const SymShape declared, ReadShape(ctx.in(2)));
    FLOE_RETURN_IF_ERROR(CheckListSize(static_cast<int64_t>(indices.size())));
    std::vector<Tensor> elements;
    for (const int64_t index : indices) {
      if (index < 0 || index >= static_cast<int64_t>(list->elements.size())) {
        return absl::InvalidArgumentError(absl::StrCat("index ", index, " is outside a list of ",
                                                       list->elements.size(), " elements"));
      }
      elements.push_back(list->elements[index]);
    }
    FLOE_ASSIGN_OR_RETURN(const SymShape shape, MergeShapes(list->element_shape, declared));
    return GiveStack(ctx, dtype, elements, shape);
  });
}

// Elements never written are zeros: as long as `leading` says, as wide as the others.
absl::Status FillUnwritten(const IntList& leading, SymShape shape, DType dtype,
                           std::vector<Tensor>* elements) {
  if (shape.rank_known() && shape.rank() > 0) shape.set_dim(0, Dim::Unknown());
  for (const Tensor& element : *elements) {
    if (!element.valid() || element.shape().rank() == 0) continue;
    SymShape rest(element.shape());
    rest.set_dim(0, Dim::Unknown());
    FLOE_ASSIGN_OR_RETURN(shape, MergeShapes(shape, rest));
  }
  for (size_t i = 0; i < elements->size(); ++i) {
    if ((*elements)[i].valid()) continue;
    if (i >= leading.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "element ", i, " was never written, and leading_dims has ", leading.size(), " elements"));
    }
    SymShape whole = shape;
    if (whole.rank_known() && whole.rank() > 0) whole.set_dim(0, leading[i]);
    if (!whole.concrete() || leading[i] < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "element ", i, " was never written and its shape is only known as ", whole.ToString()));
    }
    const Shape zeros = whole.At(0);
    FLOE_RETURN_IF_ERROR(
        CheckedElements(zeros.dims(), std::max<size_t>(DTypeSize(dtype), 1), int64_t{1} << 36)
            .status());
    (*elements)[i] = Tensor::Allocate(dtype, zeros);
    SetZero((*elements)[i].view());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeListJoinConcat(const KernelArgs& args) {
  const DType dtype = args.node.attrs.Type("element_dtype");
  const SymShape attribute =
      args.node.attrs.Get<SymShape>("element_shape", SymShape::UnknownRank());
  return FromFunction([dtype, attribute](const KernelContext& ctx) -> absl::Status {
    FLOE_ASSIGN_OR_RETURN(const TensorListObject* const list, ListIn(ctx.in(0)));
    FLOE_RETURN_IF_ERROR(CheckDType(list->dtype, dtype));
    SymShape declared = attribute;
    IntList leading;
    if (ctx.inputs.size() > 2) {
      FLOE_ASSIGN_OR_RETURN(declared, ReadShape(ctx.in(1)));
      FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(2), &leading));
    }
    FLOE_ASSIGN_OR_RETURN(const SymShape shape, MergeShapes(list->element_shape, declared));
    std::vector<Tensor> elements = list->elements;
    FLOE_RETURN_IF_ERROR(FillUnwritten(leading, shape, dtype, &elements));
    return GiveConcat(ctx, dtype, elements, shape);
  });
}

absl::Status ListJoinSplit(const KernelContext& ctx) {
  FLOE_RETURN_IF_ERROR(CheckRank(ctx.in(0)));
  FLOE_ASSIGN_OR_RETURN(SymShape shape, ReadShape(ctx.in(1)));
  IntList lengths;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(2), &lengths));
  FLOE_RETURN_IF_ERROR(CheckLengths(lengths, ctx.in(0).shape.dim(0)));
  auto list = std::make_shared<TensorListObject>(ctx.in(0).dtype, std::move(shape));
  list->elements = Banded(ctx.in(0), lengths);
  for (size_t i = 0; i < list->elements.size(); ++i) {
    FLOE_RETURN_IF_ERROR(CheckElement(list->dtype, list->element_shape, list->elements[i].view(),
                                      static_cast<int64_t>(i)));
  }
  return GiveList(ctx, std::move(list));
}

// Writes the elements of `tensor` where `indices` say. `fixed`: the list may not grow.
absl::Status ScatterInto(const TensorView& tensor, const TensorView& indices, bool fixed,
                         TensorListObject* list) {
  FLOE_RETURN_IF_ERROR(CheckRank(tensor));
  IntList at;
  FLOE_RETURN_IF_ERROR(ReadInts(indices, &at));
  if (static_cast<int64_t>(at.size()) != tensor.shape.dim(0)) {
    return absl::InvalidArgumentError(
        absl::StrCat(at.size(), " indices for ", tensor.shape.dim(0), " elements"));
  }
  FLOE_RETURN_IF_ERROR(CheckListSize(tensor.shape.dim(0)));
  const std::vector<Tensor> items = Unstacked(tensor);
  for (size_t i = 0; i < at.size(); ++i) {
    if (at[i] < 0 || (fixed && at[i] >= static_cast<int64_t>(list->elements.size()))) {
      return absl::InvalidArgumentError(absl::StrCat("index ", at[i], " is outside a list of ",
                                                     list->elements.size(), " elements"));
    }
    FLOE_RETURN_IF_ERROR(CheckElement(list->dtype, list->element_shape, items[i].view(), at[i]));
    if (at[i] >= static_cast<int64_t>(list->elements.size())) {
      FLOE_RETURN_IF_ERROR(CheckListSize(at[i] + 1));
      list->elements.resize(at[i] + 1);
    }
    list->elements[at[i]] = items[i];
  }
  return absl::OkStatus();
}

absl::Status ListJoinScatter(const KernelContext& ctx) {
  FLOE_RETURN_IF_ERROR(CheckRank(ctx.in(0)));
  FLOE_ASSIGN_OR_RETURN(std::shared_ptr<TensorListObject> list,
                        NewList(ctx, 2, WithoutDim0(ctx.in(0).shape)));
  int64_t size = -1;
  if (ctx.inputs.size() > 3) {
    FLOE_ASSIGN_OR_RETURN(size, ReadInt(ctx.in(3)));
  }
  if (size >= 0) {
    FLOE_RETURN_IF_ERROR(CheckListSize(size));
    list->elements.resize(size);
  }
  FLOE_RETURN_IF_ERROR(ScatterInto(ctx.in(0), ctx.in(1), size >= 0, list.get()));
  return GiveList(ctx, std::move(list));
}

absl::Status ScatterIntoExisting(const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(std::shared_ptr<TensorListObject> list, TakeList(ctx, 0));
  FLOE_RETURN_IF_ERROR(ScatterInto(ctx.in(1), ctx.in(2), false, list.get()));
  return GiveList(ctx, std::move(list));
}

FLOE_REGISTER_KERNEL(TensorListFromTensor, kCpu, MakeFunction<FromTensor>);
FLOE_REGISTER_KERNEL(TensorListStack, kCpu, MakeStack);
FLOE_REGISTER_KERNEL(TensorListGather, kCpu, MakeListJoinGather);
FLOE_REGISTER_KERNEL(TensorListConcat, kCpu, MakeListJoinConcat);
FLOE_REGISTER_KERNEL(TensorListConcatV2, kCpu, MakeListJoinConcat);
FLOE_REGISTER_KERNEL(TensorListSplit, kCpu, MakeFunction<ListJoinSplit>);
FLOE_REGISTER_KERNEL(TensorListScatter, kCpu, MakeFunction<ListJoinScatter>);
FLOE_REGISTER_KERNEL(TensorListScatterV2, kCpu, MakeFunction<ListJoinScatter>);
FLOE_REGISTER_KERNEL(TensorListScatterIntoExistingList, kCpu, MakeFunction<ScatterIntoExisting>);

}  // namespace
}  // namespace floe::kernels
