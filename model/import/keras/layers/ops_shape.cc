// Operations that change the shape of a tensor, and move or repeat its elements.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "model/import/keras/axes.h"
#include "model/import/keras/op_values.h"
#include "model/import/keras/operation.h"

namespace floe::keras {
namespace {

KValue Reshape(LayerContext& c) {
  if (!IsKeras3(c) && IsComputed(c, 1, "shape"))
    return c.b.Op("Reshape", {TensorAt(c, 0, {"tensor"}), VectorAt(c, 1, "shape")});
  std::vector<WantedDim> dims;
  for (const int64_t size : IntOptions(c, {"newshape", "shape"})) dims.emplace_back(size);
  const auto open =
      std::count_if(dims.begin(), dims.end(), [](const WantedDim& d) { return d.size < 0; });
  if (open > 1) c.Fail("a shape with two sizes left out");
  return Reshape(c.b, FirstTensor(c), dims);
}

KValue ExpandDims(LayerContext& c) {
  ValueRef x = FirstTensor(c);
  std::vector<int64_t> axes = IntOptions(c, {"axis"});
  const auto rank = Rank(c.b, x) + static_cast<int64_t>(axes.size());
  for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  std::sort(axes.begin(), axes.end());
  for (const int64_t axis : axes) x = c.b.Op("ExpandDims", {x, Int(c.b, axis)});
  return x;
}

KValue Squeeze(LayerContext& c) {
  return Squeeze(c.b, FirstTensor(c), IntOptions(c, {"axis", "squeeze_dims"}));
}

KValue Transpose(LayerContext& c) {
  const ValueRef x = FirstTensor(c);
  if (BoolOption(c, {"conjugate"}, false)) return c.Refuse("conjugate=True");
  std::vector<int64_t> order = IntOptions(c, {"axes", "perm"});
  if (order.empty()) {
    for (int k = Rank(c.b, x) - 1; k >= 0; --k) order.push_back(k);
  }
  return Transpose(c.b, x, AxesOf(c.b, x, order));
}

KValue SwapTwoAxes(LayerContext& c) {
  return SwapAxes(c.b, FirstTensor(c), IntOption(c, {"axis1"}, 0), IntOption(c, {"axis2"}, 0));
}

KValue Tile(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = FirstTensor(c);
  std::vector<int64_t> times = IntOptions(c, {"repeats", "multiples"});
  const int rank = Rank(b, x);
  while (static_cast<int>(times.size()) < rank) times.insert(times.begin(), 1);
  for (int k = rank; k < static_cast<int>(times.size()); ++k) x = ExpandDims(b, x, 0);
  return b.Op("Tile", {x, Ints(b, times)});
}

KValue Flip(LayerContext& c) {
  const ValueRef x = FirstTensor(c);
  std::vector<int64_t> axes = IntOptions(c, {"axis"});
  const int rank = axes.empty() ? Rank(c.b, x) : 0;
  for (int k = 0; k < rank; ++k) axes.push_back(k);
  return c.b.Op("ReverseV2", {x, Ints(c.b, axes)});
}

KValue Pad(LayerContext& c) {
  const std::string how = TextOption(c, {"mode"}, "constant");
  const bool constant = how == "constant" || how == "CONSTANT";
  const bool reflects = how == "reflect" || how == "REFLECT";
  if (!constant && !reflects && how != "symmetric" && how != "SYMMETRIC")
    c.Fail(absl::StrCat("mode ", Quoted(how)));
  std::vector<std::pair<int64_t, int64_t>> pads;
  const Json* const items = Items(Option(c, {"pad_width", "paddings"}));
  static const Json none;
  for (const Json& item : items == nullptr ? none : *items) {
    const Json* const pair = Items(item);
    int64_t before = 0, after = 0;
    if (pair == nullptr || pair->size() != 2 || !ToInt((*pair)[0], &before) ||
        !ToInt((*pair)[1], &after))
      c.Fail(absl::StrCat("a padding of ", Shown(item)));
    pads.emplace_back(before, after);
  }
  const double value = NumberOption(c, {"constant_values"}, 0);
  if (constant) return Pad(c.b, FirstTensor(c), pads, value);
  std::vector<int32_t> flat;
  for (const auto& [before, after] : pads) {
    if (before < 0 || after < 0 || before > INT32_MAX || after > INT32_MAX) c.Fail("a padding");
    flat.insert(flat.end(), {static_cast<int32_t>(before), static_cast<int32_t>(after)});
  }
  if (!c.b.ok()) return {};
  const Tensor paddings =
      Tensor::Vector(DType::kInt32, flat).Reshaped({static_cast<int64_t>(pads.size()), 2});
  return c.b.Op("MirrorPad", {FirstTensor(c), c.b.Const(paddings)},
                {{"mode", std::string(reflects ? "REFLECT" : "SYMMETRIC")}});
}

KValue BroadcastTo(LayerContext& c) {
  return c.b.Op("BroadcastTo", {FirstTensor(c), VectorAt(c, 1, "shape")});
}

const OperationRegistrar kShapes[] = {{"Reshape", {"reshape"}, Reshape},
                                      {"ExpandDims", {"expand_dims"}, ExpandDims},
                                      {"Squeeze", {"squeeze"}, Squeeze},
                                      {"Transpose", {"transpose"}, Transpose},
                                      {"Swapaxes", {}, SwapTwoAxes},
                                      {"Tile", {"tile"}, Tile},
                                      {"Flip", {"reverse"}, Flip},
                                      {"Pad", {"pad"}, Pad},
                                      {"BroadcastTo", {"broadcast_to"}, BroadcastTo}};

}  // namespace
}  // namespace floe::keras
