#include "runtime/passes/line_slice.h"

#include <algorithm>
#include <vector>

#include "model/ops/strided_slice.h"
#include "model/tensor.h"

namespace floe {
namespace {

std::optional<std::vector<int64_t>> ValuesOf(const ValueInfo& info) {
  if (!info.has_constant()) return std::nullopt;
  auto values = IntegerValues(info.constant.view());
  if (!values.ok() || values->empty()) return std::nullopt;
  return *std::move(values);
}

}  // namespace

std::optional<int64_t> LineSliceStart(const Node& node, absl::Span<const ValueInfo> inputs,
                                      const SymShape& out) {
  const SymShape& in = inputs[0].type.shape;
  if (!in.known() || !out.known() || in.rank() < 2 || out.rank() != in.rank()) return std::nullopt;
  const int last = in.rank() - 1;
  for (int i = 0; i < last; ++i) {
    if (in.dim(i) != out.dim(i)) return std::nullopt;
  }
  const auto begin = ValuesOf(inputs[1]);
  if (!begin.has_value() || !in.dim(last).concrete()) return std::nullopt;
  if (node.op->name == "Slice") return begin->back();
  const auto strides = ValuesOf(inputs[3]);
  if (!strides.has_value() ||
      std::any_of(strides->begin(), strides->end(), [](int64_t stride) { return stride != 1; }))
    return std::nullopt;
  const auto dims = ops::ResolveStridedSlice(ops::SliceMasks(node.attrs),
                                             static_cast<int>(begin->size()), in.rank());
  if (!dims.ok()) return std::nullopt;
  // With as many dims as before, an axis goes only where another comes.
  if (std::any_of(dims->begin(), dims->end(), [](const ops::SliceDim& d) { return d.axis < 0; }))
    return std::nullopt;
  const ops::SliceDim& d = dims->back();
  if (d.axis != last) return std::nullopt;
  if (d.entry < 0 || d.begin_masked) return 0;
  const int64_t first = (*begin)[d.entry], size = in.dim(last).size();
  return std::clamp<int64_t>(first < 0 ? first + size : first, 0, size);
}

}  // namespace floe
