// TensorArray: one object a run, written in place; the flow between the ops orders them.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/lists/tensor_list.h"

namespace floe::kernels {
namespace {

// Handles lead to const objects elsewhere; an array is the exception (model/lists.h).
absl::StatusOr<TensorArrayObject*> ArrayIn(const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(const TensorArrayObject* const array,
                        ObjectIn<TensorArrayObject>(ctx.in(0), "TensorArray"));
  return const_cast<TensorArrayObject*>(array);
}

absl::Status GiveFlow(const KernelContext& ctx, int output = 0) {
  FLOE_ASSIGN_OR_RETURN(const TensorView out,
                        ctx.allocator->Allocate(output, DType::kFloat32, Shape()));
  *out.as<float>() = 0;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeArray(const KernelArgs& args) {
  TensorArrayObject fresh;
  fresh.dtype = args.node.attrs.Type("dtype");
  fresh.element_shape = args.node.attrs.Get<SymShape>("element_shape", SymShape::UnknownRank());
  fresh.dynamic_size = args.node.attrs.Bool("dynamic_size");
  fresh.clear_after_read = args.node.attrs.Bool("clear_after_read", true);
  fresh.identical_shapes = args.node.attrs.Bool("identical_element_shapes");
  return FromFunction([fresh](const KernelContext& ctx) -> absl::Status {
    FLOE_ASSIGN_OR_RETURN(const int64_t size, ReadInt(ctx.in(0)));
    FLOE_RETURN_IF_ERROR(CheckListSize(size));
    auto array = std::make_shared<TensorArrayObject>(fresh);
    array->elements.resize(size);
    FLOE_RETURN_IF_ERROR(GiveHandle(ctx, 0, DType::kResource, std::move(array)));
    return GiveFlow(ctx, 1);
  });
}

absl::Status OutOfRange(int64_t index, const TensorArrayObject& array) {
  return absl::InvalidArgumentError(absl::StrCat("index ", index, " is outside an array of ",
                                                 array.elements.size(), " elements"));
}

absl::Status Put(TensorArrayObject* array, int64_t index, Tensor value) {
  if (index >= static_cast<int64_t>(array->elements.size()) && array->dynamic_size) {
    FLOE_RETURN_IF_ERROR(CheckListSize(index + 1));
    array->elements.resize(index + 1);
  }
  if (index < 0 || index >= static_cast<int64_t>(array->elements.size()))
    return OutOfRange(index, *array);
  FLOE_RETURN_IF_ERROR(CheckElement(array->dtype, array->element_shape, value.view(), index));
  TensorArrayObject::Element& element = array->elements[index];
  if (element.written)
    return absl::InvalidArgumentError(
        absl::StrCat("element ", index, " of the array was written before"));
  if (array->identical_shapes) array->element_shape = SymShape(value.shape());
  element.value = std::move(value);
  element.written = true;
  return absl::OkStatus();
}

// The element, which a read may take away. Unwritten ones are zeros where their shape is known.
absl::StatusOr<Tensor> Get(TensorArrayObject* array, int64_t index) {
  if (index < 0 || index >= static_cast<int64_t>(array->elements.size()))
    return OutOfRange(index, *array);
  TensorArrayObject::Element& element = array->elements[index];
  if (element.cleared) {
    return absl::InvalidArgumentError(absl::StrCat(
        "element ", index, " of the array was read before, which cleared it (clear_after_read)"));
  }
  Tensor value = element.value;
  if (!element.written) {
    if (!array->element_shape.concrete()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "element ", index, " of an array of ", array->elements.size(),
          " was never written, and its shape is only known as ", array->element_shape.ToString()));
    }
    const Shape shape = array->element_shape.At(0);
    FLOE_RETURN_IF_ERROR(CheckedElements(shape.dims(), std::max<size_t>(DTypeSize(array->dtype), 1),
                                         int64_t{1} << 36)
                             .status());
    value = Tensor::Allocate(array->dtype, shape);
    SetZero(value.view());
  }
  if (array->clear_after_read) {
    element.value = Tensor();
    element.cleared = true;
  }
  return value;
}

absl::Status Write(const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(TensorArrayObject* const array, ArrayIn(ctx));
  FLOE_ASSIGN_OR_RETURN(const int64_t index, ReadInt(ctx.in(1)));
  FLOE_RETURN_IF_ERROR(Put(array, index, Tensor::Copy(ctx.in(2))));
  return GiveFlow(ctx);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeRead(const KernelArgs& args) {
  const DType dtype = args.node.attrs.Type("dtype");
  return FromFunction([dtype](const KernelContext& ctx) -> absl::Status {
    FLOE_ASSIGN_OR_RETURN(TensorArrayObject* const array, ArrayIn(ctx));
    FLOE_RETURN_IF_ERROR(CheckDType(array->dtype, dtype));
    FLOE_ASSIGN_OR_RETURN(const int64_t index, ReadInt(ctx.in(1)));
    FLOE_ASSIGN_OR_RETURN(const Tensor value, Get(array, index));
    return GiveTensor(ctx, 0, value.view());
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeArrayGather(const KernelArgs& args) {
  const DType dtype = args.node.attrs.Type("dtype");
  const SymShape declared = args.node.attrs.Get<SymShape>("element_shape", SymShape::UnknownRank());
  return FromFunction([dtype, declared](const KernelContext& ctx) -> absl::Status {
    FLOE_ASSIGN_OR_RETURN(TensorArrayObject* const array, ArrayIn(ctx));
    FLOE_RETURN_IF_ERROR(CheckDType(array->dtype, dtype));
    IntList indices;
    FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &indices));
    FLOE_ASSIGN_OR_RETURN(const SymShape shape, MergeShapes(array->element_shape, declared));
    FLOE_RETURN_IF_ERROR(CheckListSize(static_cast<int64_t>(indices.size())));
    std::vector<Tensor> values;
    for (const int64_t index : indices) {
      FLOE_ASSIGN_OR_RETURN(Tensor value, Get(array, index));
      values.push_back(std::move(value));
    }
    return GiveStack(ctx, dtype, values, shape);
  });
}

absl::Status Scatter(const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(TensorArrayObject* const array, ArrayIn(ctx));
  IntList indices;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &indices));
  const TensorView& value = ctx.in(2);
  if (value.shape.rank() == 0 || static_cast<int64_t>(indices.size()) != value.shape.dim(0)) {
    return absl::InvalidArgumentError(
        absl::StrCat(indices.size(), " indices for a value of shape ", value.shape.ToString()));
  }
  FLOE_RETURN_IF_ERROR(CheckListSize(value.shape.dim(0)));
  std::vector<Tensor> elements = Unstacked(value);
  for (size_t i = 0; i < indices.size(); ++i)
    FLOE_RETURN_IF_ERROR(Put(array, indices[i], std::move(elements[i])));
  return GiveFlow(ctx);
}

absl::Status ArraySize(const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(const TensorArrayObject* const array, ArrayIn(ctx));
  FLOE_ASSIGN_OR_RETURN(const TensorView out, ctx.allocator->Allocate(0, DType::kInt32, Shape()));
  *out.as<int32_t>() = static_cast<int32_t>(array->elements.size());
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeArrayConcat(const KernelArgs& args) {
  const DType dtype = args.node.attrs.Type("dtype");
  return FromFunction([dtype](const KernelContext& ctx) -> absl::Status {
    FLOE_ASSIGN_OR_RETURN(TensorArrayObject* const array, ArrayIn(ctx));
    FLOE_RETURN_IF_ERROR(CheckDType(array->dtype, dtype));
    std::vector<Tensor> values;
    for (size_t i = 0; i < array->elements.size(); ++i) {
      FLOE_ASSIGN_OR_RETURN(Tensor value, Get(array, static_cast<int64_t>(i)));
      values.push_back(std::move(value));
    }
    return GiveConcat(ctx, dtype, values, array->element_shape);
  });
}

absl::Status Split(const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(TensorArrayObject* const array, ArrayIn(ctx));
  if (ctx.in(1).shape.rank() == 0)
    return absl::InvalidArgumentError("a scalar cannot be split into an array");
  IntList lengths;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(2), &lengths));
  FLOE_RETURN_IF_ERROR(CheckLengths(lengths, ctx.in(1).shape.dim(0)));
  if (!array->dynamic_size && lengths.size() != array->elements.size()) {
    return absl::InvalidArgumentError(absl::StrCat(lengths.size(), " lengths for an array of ",
                                                   array->elements.size(), " elements"));
  }
  std::vector<Tensor> elements = Banded(ctx.in(1), lengths);
  for (size_t i = 0; i < elements.size(); ++i)
    FLOE_RETURN_IF_ERROR(Put(array, static_cast<int64_t>(i), std::move(elements[i])));
  return GiveFlow(ctx);
}

absl::Status Close(const KernelContext&) { return absl::OkStatus(); }

FLOE_REGISTER_KERNEL(TensorArrayV3, kCpu, MakeArray);
FLOE_REGISTER_KERNEL(TensorArrayWriteV3, kCpu, MakeFunction<Write>);
FLOE_REGISTER_KERNEL(TensorArrayReadV3, kCpu, MakeRead);
FLOE_REGISTER_KERNEL(TensorArrayGatherV3, kCpu, MakeArrayGather);
FLOE_REGISTER_KERNEL(TensorArrayScatterV3, kCpu, MakeFunction<Scatter>);
FLOE_REGISTER_KERNEL(TensorArraySizeV3, kCpu, MakeFunction<ArraySize>);
FLOE_REGISTER_KERNEL(TensorArrayConcatV3, kCpu, MakeArrayConcat);
FLOE_REGISTER_KERNEL(TensorArraySplitV3, kCpu, MakeFunction<Split>);
FLOE_REGISTER_KERNEL(TensorArrayCloseV3, kCpu, MakeFunction<Close>);

}  // namespace
}  // namespace floe::kernels
