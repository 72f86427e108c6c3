#include <algorithm>
#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "kernels/cpu/element_type.h"
#include "kernels/cpu/lists/tensor_list.h"

namespace floe::kernels {

absl::Status CheckListSize(int64_t elements) {
  if (elements < 0)
    return absl::InvalidArgumentError(absl::StrCat("a list cannot have ", elements, " elements"));
  if (elements > kMaxListElements)
    return absl::ResourceExhaustedError(absl::StrCat("a list of ", elements, " elements; at most ",
                                                     kMaxListElements, " are allowed"));
  return CheckBlockBytes(elements * static_cast<int64_t>(sizeof(Tensor)));
}

absl::StatusOr<std::shared_ptr<TensorListObject>> TakeList(const KernelContext& ctx, int i) {
  FLOE_ASSIGN_OR_RETURN(const TensorListObject* const list, ListIn(ctx.in(i)));
  Handle& handle = *ctx.in(i).as<Handle>();
  if (!ctx.Donatable(i) || handle.use_count() != 1)
    return std::make_shared<TensorListObject>(*list);
  return std::static_pointer_cast<TensorListObject>(std::move(handle));
}

absl::Status GiveHandle(const KernelContext& ctx, int output, DType dtype, Handle handle) {
  FLOE_ASSIGN_OR_RETURN(const TensorView out, ctx.allocator->Allocate(output, dtype, Shape()));
  *out.as<Handle>() = std::move(handle);
  return absl::OkStatus();
}

absl::Status GiveTensor(const KernelContext& ctx, int output, const TensorView& value) {
  FLOE_ASSIGN_OR_RETURN(const TensorView out,
                        ctx.allocator->Allocate(output, value.dtype, value.shape));
  floe::CopyElements(value, out.data);
  return absl::OkStatus();
}

absl::Status GiveZeros(const KernelContext& ctx, int output, DType dtype, const Shape& shape) {
  FLOE_ASSIGN_OR_RETURN(const TensorView out, ctx.allocator->Allocate(output, dtype, shape));
  SetZero(out);
  return absl::OkStatus();
}

void SetZero(const TensorView& view) {
  if (view.bytes() != 0)
    std::memset(view.data, 0, view.bytes());  // strings and handles begin empty
}

absl::StatusOr<SymShape> ReadShape(const TensorView& view) {
  IntList dims;
  FLOE_RETURN_IF_ERROR(ReadInts(view, &dims));
  if (view.shape.rank() == 0) {
    if (dims[0] == -1) return SymShape::UnknownRank();
    return absl::InvalidArgumentError(
        absl::StrCat("the element shape is the scalar ", dims[0], ", expected -1 or a vector"));
  }
  SymShape shape;
  for (const int64_t d : dims) {
    if (d < -1)
      return absl::InvalidArgumentError(
          absl::StrCat("dimension ", d, " of the element shape is negative"));
    shape.push_back(d == -1 ? Dim::Unknown() : Dim(d));
  }
  return shape;
}

absl::StatusOr<SymShape> MergeShapes(const SymShape& a, const SymShape& b) {
  if (!a.rank_known()) return b;
  if (!b.rank_known()) return a;
  SymShape merged = a;
  bool fits = a.rank() == b.rank();
  for (int i = 0; fits && i < a.rank(); ++i) {
    if (!a.dim(i).known()) merged.set_dim(i, b.dim(i));
    fits = !a.dim(i).known() || !b.dim(i).known() || a.dim(i) == b.dim(i);
  }
  if (!fits)
    return absl::InvalidArgumentError(absl::StrCat("element shapes ", a.ToString(), " and ",
                                                   b.ToString(), " contradict each other"));
  return merged;
}

absl::Status CheckDType(DType list, DType op) {
  if (list == op) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the elements are ", DTypeName(list), ", the op is for ", DTypeName(op)));
}

absl::Status CheckElement(DType dtype, const SymShape& declared, const TensorView& item,
                          int64_t index) {
  FLOE_RETURN_IF_ERROR(CheckDType(dtype, item.dtype));
  if (MergeShapes(declared, SymShape(item.shape)).ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("element ", index, " would have shape ",
                                                 item.shape.ToString(), ", elements have ",
                                                 declared.ToString()));
}

TensorView Rows(const TensorView& whole, int64_t at, const Shape& shape) {
  TensorView band{whole.dtype, shape, whole.data};
  const int64_t row = whole.shape.dim(0) == 0 ? 0 : whole.elements() / whole.shape.dim(0);
  if (whole.data != nullptr)
    band.data =
        static_cast<char*>(whole.data) + at * row * static_cast<int64_t>(ElementBytes(whole.dtype));
  return band;
}

std::vector<Tensor> Unstacked(const TensorView& whole) {
  std::vector<Tensor> elements;
  const auto copy = std::make_shared<const Tensor>(Tensor::Copy(whole));
  const Shape shape = WithoutDim0(whole.shape);
  elements.reserve(whole.shape.dim(0));
  for (int64_t i = 0; i < whole.shape.dim(0); ++i) {
    elements.push_back(Tensor::Borrow(whole.dtype, shape, copy, Rows(copy->view(), i, shape).data));
  }
  return elements;
}

std::vector<Tensor> Banded(const TensorView& whole, const IntList& lengths) {
  std::vector<Tensor> elements;
  const auto copy = std::make_shared<const Tensor>(Tensor::Copy(whole));
  int64_t at = 0;
  for (const int64_t length : lengths) {
    Shape shape = whole.shape;
    shape.set_dim(0, length);
    elements.push_back(
        Tensor::Borrow(whole.dtype, shape, copy, Rows(copy->view(), at, shape).data));
    at += length;
  }
  return elements;
}

Shape WithoutDim0(const Shape& shape) { return Shape(shape.dims().subspan(1)); }

Shape WithDim0(int64_t size, const Shape& shape) {
  Shape whole({size});
  for (const int64_t d : shape.dims()) whole.push_back(d);
  return whole;
}

absl::Status CheckLengths(const IntList& lengths, int64_t rows) {
  FLOE_RETURN_IF_ERROR(CheckListSize(static_cast<int64_t>(lengths.size())));
  int64_t total = 0;
  for (const int64_t length : lengths) {
    if (length < 0)
      return absl::InvalidArgumentError(absl::StrCat("length ", length, " is negative"));
    if (__builtin_add_overflow(total, length, &total)) break;
  }
  if (total == rows) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the lengths add up to ", total, ", the tensor has ", rows, " in dimension 0"));
}

namespace {

// The one shape of all elements; those never written follow the others.
absl::StatusOr<Shape> CommonShape(const std::vector<Tensor>& elements, SymShape shape) {
  for (size_t i = 0; i < elements.size(); ++i) {
    if (!elements[i].valid()) continue;
    auto merged = MergeShapes(shape, SymShape(elements[i].shape()));
    if (!merged.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("element ", i, " of ", elements.size(),
                                                     " has shape ", elements[i].shape().ToString(),
                                                     ", the others ", shape.ToString()));
    }
    shape = *std::move(merged);
  }
  if (shape.concrete()) return shape.At(0);
  return absl::InvalidArgumentError(
      absl::StrCat("none of ", elements.size(),
                   " elements was written and their shape is only known as ", shape.ToString()));
}

void CopyInto(const TensorView& out, int64_t at, int64_t rows, const Tensor& element) {
  Shape shape = out.shape;
  shape.set_dim(0, rows);
  const TensorView place = Rows(out, at, shape);
  if (place.elements() == 0) return;
  if (element.valid()) {
    floe::CopyElements(element.view(), place.data);
  } else {
    SetZero(place);
  }
}

}  // namespace

absl::Status GiveStack(const KernelContext& ctx, DType dtype, const std::vector<Tensor>& elements,
                       const SymShape& element_shape) {
  FLOE_ASSIGN_OR_RETURN(const Shape shape, CommonShape(elements, element_shape));
  const auto count = static_cast<int64_t>(elements.size());
  FLOE_ASSIGN_OR_RETURN(const TensorView out,
                        ctx.allocator->Allocate(0, dtype, WithDim0(count, shape)));
  for (int64_t i = 0; i < count; ++i) CopyInto(out, i, 1, elements[i]);
  return absl::OkStatus();
}

absl::Status GiveConcat(const KernelContext& ctx, DType dtype, const std::vector<Tensor>& elements,
                        const SymShape& element_shape) {
  // Dim 0 may differ.
  SymShape open = element_shape;
  if (open.rank_known() && open.rank() > 0) open.set_dim(0, Dim::Unknown());
  int64_t total = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    SymShape shape(elements[i].shape());
    if (shape.rank() == 0)
      return absl::InvalidArgumentError(
          absl::StrCat("element ", i, " is a scalar, which cannot be concatenated"));
    total += elements[i].shape().dim(0);
    shape.set_dim(0, Dim::Unknown());
    auto merged = MergeShapes(open, shape);
    if (!merged.ok())
      return absl::InvalidArgumentError(absl::StrCat("element ", i, " has shape ",
                                                     elements[i].shape().ToString(),
                                                     ", the others ", open.ToString()));
    open = *std::move(merged);
  }
  if (!open.rank_known() || open.rank() == 0)
    return absl::InvalidArgumentError(
        "nothing to concatenate, and the shape of the elements is not known");
  open.set_dim(0, total);
  if (!open.concrete())
    return absl::InvalidArgumentError(
        absl::StrCat("nothing to concatenate, and the shape of the elements is only known as ",
                     open.ToString()));
  FLOE_ASSIGN_OR_RETURN(const TensorView out, ctx.allocator->Allocate(0, dtype, open.At(0)));
  FLOE_ASSIGN_OR_RETURN(
      const TensorView lengths,
      ctx.allocator->Allocate(1, DType::kInt64, Shape({static_cast<int64_t>(elements.size())})));
  int64_t at = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    const int64_t rows = elements[i].shape().dim(0);
    CopyInto(out, at, rows, elements[i]);
    lengths.as<int64_t>()[i] = rows;
    at += rows;
  }
  return absl::OkStatus();
}

}  // namespace floe::kernels
