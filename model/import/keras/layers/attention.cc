// Attention, AdditiveAttention: scores of queries and keys, softmax, values.
#include "model/import/keras/attention.h"

#include "absl/strings/str_cat.h"
#include "model/import/keras/layer.h"

namespace floe::keras {

ValueRef CausalMask(GraphBuilder& b, ValueRef scores) {
  const ValueRef shape = b.Op("Shape", {scores});
  const auto range = [&](int axis) {
    const int rank = Rank(b, scores);
    const Dim size = SizeAt(b, scores, axis);
    const ValueRef end = size.concrete() ? Int(b, size.size()) : At(b, shape, 0, axis + rank);
    return b.Op("Range", {Int(b, 0), end, Int(b, 1)});
  };
  const ValueRef query = ExpandDims(b, range(-2), 1), key = range(-1);
  return b.Op("GreaterEqual", {query, key});
}

namespace {

ValueRef Concatenated(LayerContext& c, ValueRef query, ValueRef key, ValueRef scale,
                      ValueRef weight) {
  GraphBuilder& b = c.b;
  ValueRef sum = Add(b, ExpandDims(b, query, -2), ExpandDims(b, key, -3));
  if (weight.node >= 0) {  // Attention: scalars in and outside
    if (scale.node >= 0) sum = Mul(b, sum, scale);
    return Mul(b, Reduce(b, "Sum", b.Op("Tanh", {sum}), {-1}, false), weight);
  }
  sum = b.Op("Tanh", {sum});
  return Reduce(b, "Sum", scale.node < 0 ? sum : Mul(b, sum, scale), {-1}, false);
}

ValueRef Scores(LayerContext& c, ValueRef query, ValueRef key) {
  GraphBuilder& b = c.b;
  const bool additive = c.class_name == "AdditiveAttention";
  const bool scaled = c.config.Bool("use_scale", additive);
  const ValueRef scale = scaled ? c.Weight(0) : ValueRef();
  if (additive) return Concatenated(c, query, key, scale, {});
  if (c.config.String("score_mode", "dot") == "concat")
    return Concatenated(c, query, key, scale, c.Weight(scaled ? 1 : 0));
  const ValueRef scores = b.Op("BatchMatMulV2", {query, key}, {{"adj_y", true}});
  return scaled ? Mul(b, scores, scale) : scores;
}

// The masks of the call, or those of the inputs.
ValueRef MaskNumber(LayerContext& c, size_t k) {
  const KValue& named = c.Arg(-1, "mask");
  if (named.kind == KValue::Kind::kJson && !HasOnlyNulls(*named.json))
    c.Fail("a mask that is constant");
  if (named.kind == KValue::Kind::kList)
    return k < named.items.size() ? named.items[k].tensor.value : ValueRef();
  return c.Input(static_cast<int>(k)).mask;
}

// Said by the call, or in Keras 2 by the layer.
bool Causal(LayerContext& c) {
  const bool layer = c.config.Bool("causal", false);
  return c.Flag("use_causal_mask") || layer;
}

KValue Attention(LayerContext& c) {
  GraphBuilder& b = c.b;
  c.config.Ignore({"dropout"});
  const ValueRef query = c.In(0), value = c.In(1);
  const ValueRef key = c.Inputs().size() > 2 ? c.In(2) : value;
  ValueRef scores = Scores(c, query, key);
  const ValueRef query_mask = MaskNumber(c, 0), value_mask = MaskNumber(c, 1);
  ValueRef mask;
  if (value_mask.node >= 0) mask = ExpandDims(b, Cast(b, value_mask, DType::kBool), -2);
  if (Causal(c)) {
    const ValueRef causal = CausalMask(b, scores);
    mask = mask.node < 0 ? causal : b.Op("LogicalAnd", {mask, causal});
  }
  if (mask.node >= 0) {
    const double far = b.dtype(scores) == DType::kFloat16 ? -65504.0 : -1e9;
    scores = b.Op("SelectV2", {mask, scores, Add(b, scores, far)});
  }
  const ValueRef weights = b.Op("Softmax", {scores});
  KTensor out{b.Op("BatchMatMulV2", {weights, value}), query_mask};
  if (query_mask.node >= 0)
    out.value = b.Op("SelectV2", {ExpandDims(b, Cast(b, query_mask, DType::kBool), -1), out.value,
                                  Scalar(b, b.dtype(out.value), 0)});
  if (!c.Flag("return_attention_scores")) return out;
  return std::vector<KValue>{out, weights};
}

const LayerRegistrar kAttention({"Attention", "AdditiveAttention"}, Attention);

}  // namespace
}  // namespace floe::keras
