// Layers that join several inputs.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "model/import/keras/layer.h"

namespace floe::keras {
namespace {

// Inputs of unlike ranks get dims of one after the batch.
std::vector<ValueRef> Aligned(LayerContext& c) {
  GraphBuilder& b = c.b;
  std::vector<ValueRef> values;
  int most = 0;
  for (const KTensor& input : c.Inputs()) {
    values.push_back(input.value);
    most = std::max(most, Rank(b, input.value));
  }
  for (ValueRef& value : values) {
    while (b.ok() && Rank(b, value) < most) value = ExpandDims(b, value, 1);
  }
  if (values.size() < 2) c.Fail("it needs two inputs at least");
  return values;
}

// Keras 2: what all masks that there are let through. Keras 3: what any lets through, where every
// input has one.
ValueRef JoinedMask(LayerContext& c) {
  ValueRef joined;
  for (const KTensor& input : c.Inputs()) {
    if (!input.has_mask()) {
      if (c.keras2()) continue;
      return {};
    }
    const char* op = c.keras2() ? "LogicalAnd" : "LogicalOr";
    joined = joined.node < 0 ? input.mask : c.b.Op(op, {joined, input.mask});
  }
  return joined;
}

// By input, its mask with a last dim of one: none for those that have none, or that Aligned has
// given more dims, which takes it from them. Keras 2 looks at no mask when it joins.
std::vector<ValueRef> OpenMasks(LayerContext& c, const std::vector<ValueRef>& aligned) {
  const std::vector<KTensor> inputs = c.Inputs();
  std::vector<ValueRef> masks;
  for (size_t k = 0; k < aligned.size(); ++k) {
    const KTensor& input = inputs[k];
    const bool masked = !c.keras2() && input.has_mask() && aligned[k] == input.value;
    masks.push_back(masked ? ExpandDims(c.b, input.mask, Rank(c.b, input.mask)) : ValueRef());
  }
  return masks;
}

template <typename Join>
KValue Joined(LayerContext& c, const std::vector<ValueRef>& values, const Join& join) {
  if (!c.b.ok()) return {};
  ValueRef sum = values[0];
  for (size_t k = 1; k < values.size(); ++k) {
    ValueRef next = values[k];
    c.Promote({&sum, &next});
    sum = join(sum, next);
  }
  return KTensor{sum, JoinedMask(c)};
}

KValue Add(LayerContext& c) {
  return Joined(c, Aligned(c), [&](ValueRef a, ValueRef d) { return Add(c.b, a, d); });
}
KValue Subtract(LayerContext& c) {
  return Joined(c, Aligned(c), [&](ValueRef a, ValueRef d) { return Sub(c.b, a, d); });
}

// What a mask leaves out counts as one, and is 0 where all leave it out.
KValue Multiply(LayerContext& c) {
  GraphBuilder& b = c.b;
  std::vector<ValueRef> values = Aligned(c);
  if (!b.ok()) return {};
  const std::vector<ValueRef> masks = OpenMasks(c, values);
  ValueRef any;
  bool all_masked = true;
  for (size_t k = 0; k < values.size(); ++k) {
    if (masks[k].node < 0) {
      all_masked = false;
      continue;
    }
    values[k] = b.Op("SelectV2", {masks[k], values[k], Scalar(b, b.dtype(values[k]), 1)});
    any = any.node < 0 ? masks[k] : b.Op("LogicalOr", {any, masks[k]});
  }
  KValue product = Joined(c, values, [&](ValueRef a, ValueRef d) { return Mul(b, a, d); });
  if (!b.ok() || !all_masked) return product;
  ValueRef& y = product.tensor.value;
  y = b.Op("SelectV2", {any, y, Scalar(b, b.dtype(y), 0)});
  return product;
}

// The largest or smallest of what the masks let through: the other input where one leaves it out.
KValue Extreme(LayerContext& c, const char* op) {
  GraphBuilder& b = c.b;
  const std::vector<ValueRef> values = Aligned(c);
  if (!b.ok()) return {};
  const std::vector<ValueRef> masks = OpenMasks(c, values);
  ValueRef y = values[0], mask = masks[0];
  for (size_t k = 1; k < values.size(); ++k) {
    ValueRef next = values[k];
    c.Promote({&y, &next});
    if (masks[k].node >= 0) next = b.Op("SelectV2", {masks[k], next, y});
    if (mask.node >= 0) y = b.Op("SelectV2", {mask, y, next});
    const bool both = mask.node >= 0 && masks[k].node >= 0;
    mask = both ? b.Op("LogicalOr", {mask, masks[k]}) : ValueRef();
    y = b.Op(op, {y, next});
  }
  return KTensor{y, JoinedMask(c)};
}
KValue Maximum(LayerContext& c) { return Extreme(c, "Maximum"); }
KValue Minimum(LayerContext& c) { return Extreme(c, "Minimum"); }

KValue Average(LayerContext& c) {
  KValue sum = Add(c);
  if (!c.b.ok()) return {};
  const auto count = static_cast<double>(c.Inputs().size());
  ValueRef& y = sum.tensor.value;
  // Keras 3 divides as TensorFlow does, which makes whole numbers of 32 bits and more doubles.
  const DType type = c.b.dtype(y), floating = FloatingType(type);
  if (!c.keras2())
    y = Cast(c.b, y, type != floating && DTypeSize(type) >= 4 ? DType::kFloat64 : floating);
  y = Mul(c.b, y, 1.0 / count);
  return sum;
}

KValue Concatenate(LayerContext& c) {
  GraphBuilder& b = c.b;
  const std::vector<KTensor> inputs = c.Inputs();
  std::vector<ValueRef> values;
  bool masked = false;
  for (const KTensor& input : inputs) {
    values.push_back(input.value);
    masked = masked || input.has_mask();
  }
  auto axis = static_cast<int>(c.config.Int("axis", -1));
  if (values.empty() || !b.ok()) return {};
  if (axis < 0) axis += Rank(b, values[0]);
  std::vector<ValueRef*> all;
  all.reserve(values.size());
  for (ValueRef& value : values) all.push_back(&value);
  c.Promote(all);
  KTensor out{Concat(b, values, axis), {}};
  if (!masked) return out;
  // Of the masks, spread over their inputs; what one lets through on the whole last axis.
  std::vector<ValueRef> masks;
  for (const KTensor& input : inputs) {
    const ValueRef ones = Cast(b, b.Op("OnesLike", {input.value}), DType::kBool);
    ValueRef mask = input.mask;
    if (!input.has_mask()) mask = ones;
    while (b.ok() && Rank(b, mask) < Rank(b, input.value))
      mask = ExpandDims(b, mask, Rank(b, mask));
    masks.push_back(b.Op("LogicalAnd", {mask, ones}));
  }
  out.mask = Reduce(b, "All", Concat(b, masks, axis), {-1}, false);
  return out;
}

// Products of two inputs along an axis of each, for every element of the batch.
KValue Dot(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = c.In(0), y = c.In(1);
  c.Promote({&x, &y});
  std::vector<int64_t> axes = c.config.Ints("axes", 2, {-1, -1});
  const int rx = Rank(b, x), ry = Rank(b, y);
  if (!b.ok()) return {};
  if (axes[0] < 0) axes[0] += rx;
  if (axes[1] < 0) axes[1] += ry;
  if (axes[0] < 1 || axes[0] >= rx || axes[1] < 1 || axes[1] >= ry || rx > 10 || ry > 10) {
    c.Fail(absl::StrCat("axes ", axes[0], " and ", axes[1], " of ranks ", rx, " and ", ry));
    return {};
  }
  if (c.config.Bool("normalize", false)) {
    const auto unit = [&](ValueRef v, int64_t axis) {
      const ValueRef square = Reduce(b, "Sum", b.Op("Square", {v}), {axis}, true);
      return Mul(b, v, b.Op("Rsqrt", {b.Op("Maximum", {square, Scalar(b, b.dtype(v), 1e-12)})}));
    };
    x = unit(x, axes[0]);
    y = unit(y, axes[1]);
  }
  std::string left = "a", right = "a", out = "a";
  for (int k = 1; k < rx; ++k) left += k == axes[0] ? 'z' : static_cast<char>('b' + k);
  for (int k = 1; k < ry; ++k) right += k == axes[1] ? 'z' : static_cast<char>('m' + k);
  for (const std::string& side : {left, right}) {
    for (const char axis : side.substr(1)) {
      if (axis != 'z') out += axis;
    }
  }
  const ValueRef dot =
      b.Op("Einsum", {x, y},
           {{"equation", absl::StrCat(left, ",", right, "->", out)}, {"N", int64_t{2}}});
  return b.ok() && Rank(b, dot) == 1 ? ExpandDims(b, dot, 1) : dot;
}

const LayerRegistrar kAdd({"Add"}, Add);
const LayerRegistrar kSubtract({"Subtract"}, Subtract);
const LayerRegistrar kMultiply({"Multiply"}, Multiply);
const LayerRegistrar kMaximum({"Maximum"}, Maximum);
const LayerRegistrar kMinimum({"Minimum"}, Minimum);
const LayerRegistrar kAverage({"Average"}, Average);
const LayerRegistrar kConcatenate({"Concatenate", "TFDConcat"}, Concatenate);
const LayerRegistrar kDot({"Dot"}, Dot);

}  // namespace
}  // namespace floe::keras
