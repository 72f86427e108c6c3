// TensorList: making lists, and reading and writing elements.
#include "kernels/cpu/lists/tensor_list.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/function_kernel.h"

namespace floe::kernels {
namespace {

absl::Status OutOfRange(int64_t index, size_t size) {
  return absl::InvalidArgumentError(
      absl::StrCat("index ", index, " is outside a list of ", size, " elements"));
}

bool Inside(int64_t index, const TensorListObject& list) {
  return index >= 0 && index < static_cast<int64_t>(list.elements.size());
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeReserve(const KernelArgs& args) {
  const DType dtype = args.node.attrs.Type("element_dtype");
  return FromFunction([dtype](const KernelContext& ctx) -> absl::Status {
    FLOE_ASSIGN_OR_RETURN(SymShape shape, ReadShape(ctx.in(0)));
    FLOE_ASSIGN_OR_RETURN(const int64_t count, ReadInt(ctx.in(1)));
    FLOE_RETURN_IF_ERROR(CheckListSize(count));
    auto list = std::make_shared<TensorListObject>(dtype, std::move(shape));
    list->elements.resize(count);
    return GiveList(ctx, std::move(list));
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeEmpty(const KernelArgs& args) {
  const DType dtype = args.node.attrs.Type("element_dtype");
  return FromFunction([dtype](const KernelContext& ctx) -> absl::Status {
    FLOE_ASSIGN_OR_RETURN(SymShape shape, ReadShape(ctx.in(0)));
    auto list = std::make_shared<TensorListObject>(dtype, std::move(shape));
    FLOE_ASSIGN_OR_RETURN(list->max_elements, ReadInt(ctx.in(1)));
    return GiveList(ctx, std::move(list));
  });
}

// An element that was never written: zeros, of the shape that declarations and the other elements
// give.
absl::Status GiveUnwritten(const KernelContext& ctx, int output, const TensorListObject& list,
                           const SymShape& declared) {
  FLOE_ASSIGN_OR_RETURN(SymShape shape, MergeShapes(list.element_shape, declared));
  for (const Tensor& element : list.elements) {
    if (shape.concrete() || !element.valid()) continue;
    FLOE_ASSIGN_OR_RETURN(shape, MergeShapes(shape, SymShape(element.shape())));
  }
  if (!shape.concrete()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the element was never written and its shape is only known as ", shape.ToString()));
  }
  return GiveZeros(ctx, output, list.dtype, shape.At(0));
}

absl::Status GiveElement(const KernelContext& ctx, int output, const TensorListObject& list,
                         int64_t index, const TensorView& declared) {
  FLOE_ASSIGN_OR_RETURN(const SymShape shape, ReadShape(declared));
  const Tensor& element = list.elements[index];
  if (!element.valid()) return GiveUnwritten(ctx, output, list, shape);
  // Inference has promised the declared shape.
  FLOE_RETURN_IF_ERROR(CheckElement(list.dtype, shape, element.view(), index));
  return GiveTensor(ctx, output, element.view());
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeGetItem(const KernelArgs& args) {
  const DType dtype = args.node.attrs.Type("element_dtype");
  return FromFunction([dtype](const KernelContext& ctx) -> absl::Status {
    FLOE_ASSIGN_OR_RETURN(const TensorListObject* const list, ListIn(ctx.in(0)));
    FLOE_RETURN_IF_ERROR(CheckDType(list->dtype, dtype));
    FLOE_ASSIGN_OR_RETURN(const int64_t index, ReadInt(ctx.in(1)));
    if (!Inside(index, *list)) return OutOfRange(index, list->elements.size());
    return GiveElement(ctx, 0, *list, index, ctx.in(2));
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSetItem(const KernelArgs& args) {
  const bool resize = args.node.attrs.Bool("resize_if_index_out_of_bounds");
  return FromFunction([resize](const KernelContext& ctx) -> absl::Status {
    FLOE_ASSIGN_OR_RETURN(const std::shared_ptr<TensorListObject> list, TakeList(ctx, 0));
    FLOE_ASSIGN_OR_RETURN(const int64_t index, ReadInt(ctx.in(1)));
    if (resize && index >= static_cast<int64_t>(list->elements.size())) {
      FLOE_RETURN_IF_ERROR(CheckListSize(index + 1));
      list->elements.resize(index + 1);
    }
    if (!Inside(index, *list)) return OutOfRange(index, list->elements.size());
    FLOE_RETURN_IF_ERROR(CheckElement(list->dtype, list->element_shape, ctx.in(2), index));
    list->elements[index] = Tensor::Copy(ctx.in(2));
    return GiveList(ctx, list);
  });
}

absl::Status PushBack(const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(const std::shared_ptr<TensorListObject> list, TakeList(ctx, 0));
  const auto size = static_cast<int64_t>(list->elements.size());
  FLOE_RETURN_IF_ERROR(CheckListSize(size + 1));
  if (list->max_elements >= 0 && size >= list->max_elements) {
    return absl::InvalidArgumentError(
        absl::StrCat("the list is full: it may have ", list->max_elements, " elements"));
  }
  FLOE_RETURN_IF_ERROR(CheckElement(list->dtype, list->element_shape, ctx.in(1), size));
  list->elements.push_back(Tensor::Copy(ctx.in(1)));
  return GiveList(ctx, list);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakePopBack(const KernelArgs& args) {
  const DType dtype = args.node.attrs.Type("element_dtype");
  return FromFunction([dtype](const KernelContext& ctx) -> absl::Status {
    FLOE_ASSIGN_OR_RETURN(const std::shared_ptr<TensorListObject> list, TakeList(ctx, 0));
    FLOE_RETURN_IF_ERROR(CheckDType(list->dtype, dtype));
    if (list->elements.empty())
      return absl::InvalidArgumentError("the list is empty, nothing can be popped");
    FLOE_RETURN_IF_ERROR(
        GiveElement(ctx, 1, *list, static_cast<int64_t>(list->elements.size()) - 1, ctx.in(1)));
    list->elements.pop_back();
    return GiveList(ctx, list);
  });
}

absl::Status Length(const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(const TensorListObject* const list, ListIn(ctx.in(0)));
  FLOE_ASSIGN_OR_RETURN(const TensorView out, ctx.allocator->Allocate(0, DType::kInt32, Shape()));
  *out.as<int32_t>() = static_cast<int32_t>(list->elements.size());
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeElementShape(const KernelArgs& args) {
  const DType dtype = args.node.attrs.Type("shape_type", DType::kInt32);
  if (dtype != DType::kInt32 && dtype != DType::kInt64)
    return absl::InvalidArgumentError(absl::StrCat("shapes of ", DTypeName(dtype)));
  return FromFunction([dtype](const KernelContext& ctx) -> absl::Status {
    FLOE_ASSIGN_OR_RETURN(const TensorListObject* const list, ListIn(ctx.in(0)));
    const SymShape& shape = list->element_shape;
    FLOE_ASSIGN_OR_RETURN(
        const TensorView out,
        ctx.allocator->Allocate(0, dtype, shape.rank_known() ? Shape({shape.rank()}) : Shape()));
    for (int64_t i = 0; i < out.elements(); ++i) {
      const int64_t dim = shape.rank_known() && shape.dim(static_cast<int>(i)).known()
                              ? shape.dim(static_cast<int>(i)).size()
                              : -1;
      if (dtype == DType::kInt32) {
        out.as<int32_t>()[i] = static_cast<int32_t>(dim);
      } else {
        out.as<int64_t>()[i] = dim;
      }
    }
    return absl::OkStatus();
  });
}

absl::Status Resize(const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(const std::shared_ptr<TensorListObject> list, TakeList(ctx, 0));
  FLOE_ASSIGN_OR_RETURN(const int64_t size, ReadInt(ctx.in(1)));
  FLOE_RETURN_IF_ERROR(CheckListSize(size));
  list->elements.resize(size);
  return GiveList(ctx, list);
}

FLOE_REGISTER_KERNEL(EmptyTensorList, kCpu, MakeEmpty);
FLOE_REGISTER_KERNEL(TensorListReserve, kCpu, MakeReserve);
FLOE_REGISTER_KERNEL(TensorListGetItem, kCpu, MakeGetItem);
FLOE_REGISTER_KERNEL(TensorListSetItem, kCpu, MakeSetItem);
FLOE_REGISTER_KERNEL(TensorListPushBack, kCpu, MakeFunction<PushBack>);
FLOE_REGISTER_KERNEL(TensorListPopBack, kCpu, MakePopBack);
FLOE_REGISTER_KERNEL(TensorListLength, kCpu, MakeFunction<Length>);
FLOE_REGISTER_KERNEL(TensorListElementShape, kCpu, MakeElementShape);
FLOE_REGISTER_KERNEL(TensorListResize, kCpu, MakeFunction<Resize>);

}  // namespace
}  // namespace floe::kernels
