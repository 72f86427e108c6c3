// Lays rows of unequal non-batch dimensions into larger ones, and fills the rest.
#include "server/executor/padding.h"

#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
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

absl::Status Padding::Add(const CompiledSignature& variant,
                          const std::map<std::string, double>& values) {
  std::vector<Tensor> pads;
  bool any = false;
  const auto& inputs = variant.signature().inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    pads.emplace_back();
    const TensorType& type = inputs[i].type;
    if (!variant.InputHasRows(static_cast<int>(i))) continue;
    // Strings have no place where rows are gathered, and lists of dims of unequal length no
    // maximum.
    if (DTypeSize(type.dtype) == 0 || !type.shape.rank_known()) return absl::OkStatus();
    for (int axis = 1; axis < type.shape.rank(); ++axis) any |= !type.shape.dim(axis).concrete();
    const auto value = values.find(inputs[i].key);
    auto pad = PadValue(type.dtype, value == values.end() ? 0 : value->second);
    if (!pad.ok()) return Annotate(pad.status(), absl::StrCat("input ", Quoted(inputs[i].key)));
    pads.back() = *std::move(pad);
  }
  if (any) pads_[&variant] = std::move(pads);
  return absl::OkStatus();
}

absl::StatusOr<Padding> Padding::Of(const Model& model,
                                    const std::map<std::string, double>& values) {
  Padding padding;
  std::set<std::string> known;
  for (const auto& [name, signature] : model.signatures()) {
    for (const SignatureTensor& input : signature.def().inputs) known.insert(input.key);
    for (const Signature::Variant& variant : signature.variants())
      FLOE_RETURN_IF_ERROR(padding.Add(*variant.compiled, values));
  }
  for (const auto& [key, value] : values)
    if (known.count(key) == 0)
      return absl::InvalidArgumentError(
          absl::StrCat("padding_values names input '", key, "', which the model does not have"));
  return padding;
}

}  // namespace floe::server
