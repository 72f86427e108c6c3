#include "server/executor/padding.h"

#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/number.h"

namespace floe::server {
namespace {

void Fill(std::byte* to, size_t elements, const Tensor& pad) {
  const size_t size = DTypeSize(pad.dtype());
  for (size_t i = 0; i < elements; ++i) std::memcpy(to + i * size, pad.data(), size);
}

// The part of both tensors from `axis` on; strides are in elements.
void CopyAxis(const TensorView& from, const TensorView& to, int axis, const std::byte* in,
              std::byte* out, const Tensor& pad) {
  const size_t size = DTypeSize(to.dtype);
  if (axis == to.shape.rank()) {
    std::memcpy(out, in, size);
    return;
  }
  size_t in_block = size, out_elements = 1;
  bool equal_inside = true;
  for (int i = axis + 1; i < to.shape.rank(); ++i) {
    in_block *= static_cast<size_t>(from.shape.dim(i));
    out_elements *= static_cast<size_t>(to.shape.dim(i));
    equal_inside = equal_inside && from.shape.dim(i) == to.shape.dim(i);
  }
  const size_t out_block = out_elements * size;
  const auto have = static_cast<size_t>(from.shape.dim(axis));
  const auto want = static_cast<size_t>(to.shape.dim(axis));
  if (equal_inside) {
    if (have * in_block > 0) std::memcpy(out, in, have * in_block);
  } else {
    for (size_t i = 0; i < have; ++i)
      CopyAxis(from, to, axis + 1, in + i * in_block, out + i * out_block, pad);
  }
  Fill(out + have * out_block, (want - have) * out_elements, pad);
}

}  // namespace

absl::StatusOr<Tensor> PadValue(DType dtype, double value) {
  if (std::optional<Tensor> pad = RealScalar(dtype, value)) return *std::move(pad);
  return absl::InvalidArgumentError(
      absl::StrCat("padding value ", value, " is no ", DTypeName(dtype)));
}

void RaiseNonBatchDims(const Shape& other, Shape* shape) {
  for (int i = 1; i < shape->rank(); ++i)
    if (other.dim(i) > shape->dim(i)) shape->set_dim(i, other.dim(i));
}

void CopyPadded(const TensorView& from, const TensorView& to, const Tensor& pad) {
  CopyAxis(from, to, 0, static_cast<const std::byte*>(from.data), static_cast<std::byte*>(to.data),
           pad);
}

}  // namespace floe::server
