// What the kernels of TensorLists and TensorArrays share.
#pragma once

#include <memory>

#include "kernels/cpu/move/grid_copy.h"
#include "kernels/kernel.h"
#include "model/lists.h"

namespace floe::kernels {

// A list takes memory before anything is in it; more elements are refused.
inline constexpr int64_t kMaxListElements = int64_t{1} << 22;

// INVALID_ARGUMENT, or RESOURCE_EXHAUSTED past kMaxListElements.
absl::Status CheckListSize(int64_t elements);

// The object behind a handle, which must be a scalar of the right kind.
template <typename T>
absl::StatusOr<const T*> ObjectIn(const TensorView& handle, const char* what) {
  const bool one = IsHandle(handle.dtype) && handle.data != nullptr && handle.elements() == 1;
  const T* object = one ? dynamic_cast<const T*>(handle.as<Handle>()->get()) : nullptr;
  if (object == nullptr)
    return absl::InvalidArgumentError(std::string("the handle is not that of a ") + what);
  return object;
}

inline absl::StatusOr<const TensorListObject*> ListIn(const TensorView& handle) {
  return ObjectIn<TensorListObject>(handle, "TensorList");
}

// The list of input i, to be changed: taken over when nobody else sees it, otherwise a copy.
absl::StatusOr<std::shared_ptr<TensorListObject>> TakeList(const KernelContext& ctx, int i);

absl::Status GiveHandle(const KernelContext& ctx, int output, DType dtype, Handle handle);
inline absl::Status GiveList(const KernelContext& ctx, std::shared_ptr<TensorListObject> list) {
  return GiveHandle(ctx, 0, DType::kVariant, std::move(list));
}
absl::Status GiveTensor(const KernelContext& ctx, int output, const TensorView& value);
absl::Status GiveZeros(const KernelContext& ctx, int output, DType dtype, const Shape& shape);

void SetZero(const TensorView& view);

// A vector of dims (-1: unknown) or the scalar -1, as a shape.
absl::StatusOr<SymShape> ReadShape(const TensorView& view);

// What both shapes say; INVALID_ARGUMENT when they contradict each other.
absl::StatusOr<SymShape> MergeShapes(const SymShape& a, const SymShape& b);

// INVALID_ARGUMENT when an element of this dtype and shape does not belong into the list. `index`:
// where it was to go.
absl::Status CheckElement(DType dtype, const SymShape& declared, const TensorView& item,
                          int64_t index);

absl::Status CheckDType(DType list, DType op);

// Rows [at, at + count) of a tensor, under `shape`.
TensorView Rows(const TensorView& whole, int64_t at, const Shape& shape);

// Dim 0 of a tensor as elements that share one copy of its bytes; the caller has checked their
// number (CheckListSize).
std::vector<Tensor> Unstacked(const TensorView& whole);
// The same in bands of these lengths.
std::vector<Tensor> Banded(const TensorView& whole, const IntList& lengths);

// The shape without dim 0, and with another one.
Shape WithoutDim0(const Shape& shape);
Shape WithDim0(int64_t size, const Shape& shape);

// Lengths that are not negative and add up to `rows`, as many as a list may have elements.
absl::Status CheckLengths(const IntList& lengths, int64_t rows);

// Copies elements one after the other into output 0, under [elements, element...]. Invalid ones are
// zeros of that shape.
absl::Status GiveStack(const KernelContext& ctx, DType dtype, const std::vector<Tensor>& elements,
                       const SymShape& element_shape);
// Joins elements along dim 0 into output 0, their lengths into output 1.
absl::Status GiveConcat(const KernelContext& ctx, DType dtype, const std::vector<Tensor>& elements,
                        const SymShape& element_shape);

}  // namespace floe::kernels
