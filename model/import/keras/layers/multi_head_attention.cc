// MultiHeadAttention, GroupQueryAttention.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "model/import/keras/attention.h"
#include "model/import/keras/layer.h"

namespace floe::keras {
namespace {

LayerWeights AttentionPart(const LayerContext& c, const std::string& name) {
  return c.layer.weights.Child(name, "_" + name);
}

// x [..., in] by a kernel [in, heads, size].
ValueRef ToHeads(LayerContext& c, ValueRef x, const LayerWeights& weights) {
  GraphBuilder& b = c.b;
  const ValueRef kernel = c.Weight(weights, 0);
  const int64_t in = SizeOf(b, kernel, 0, "a kernel"), heads = SizeOf(b, kernel, 1, "a kernel"),
                size = SizeOf(b, kernel, 2, "a kernel");
  x = Cast(b, x, c.compute_dtype);  // arguments by name are as they were
  const ValueRef flat = MatrixProduct(b, x, Reshape(b, kernel, {in, heads * size}));
  std::vector<WantedDim> dims;
  for (int k = 0; k + 1 < Rank(b, x); ++k) dims.push_back(DimOf(b, x, k));
  dims.insert(dims.end(), {heads, size});
  ValueRef y = Reshape(b, flat, dims);
  if (c.config.Bool("use_bias", true)) y = Add(b, y, c.Weight(weights, 1));
  return y;
}

// The gate's variables are made between those of keys and values, which files in order rely on.
void TakeGate(LayerContext& c) {
  if (!c.config.Bool("use_gate", false)) return;
  c.Weight(AttentionPart(c, "gate_dense"), 0);
  if (c.config.Bool("use_bias", true)) c.Weight(AttentionPart(c, "gate_dense"), 1);
}

// x [..., heads, size] by a kernel [heads, size, out...].
ValueRef FromHeads(LayerContext& c, ValueRef x, const LayerWeights& weights) {
  GraphBuilder& b = c.b;
  const ValueRef kernel = c.Weight(weights, 0);
  const int rank = Rank(b, x), kernel_rank = Rank(b, kernel);
  int64_t out = 1;
  std::vector<WantedDim> merged, dims;
  for (int k = 0; k + 2 < rank; ++k) merged.push_back(DimOf(b, x, k));
  dims = merged;
  for (int k = 2; k < kernel_rank; ++k) {
    dims.emplace_back(SizeOf(b, kernel, k, "a kernel"));
    if (__builtin_mul_overflow(out, dims.back().size, &out)) c.Fail("a kernel past every limit");
  }
  const int64_t in = SizeOf(b, x, -2, "the heads") * SizeOf(b, x, -1, "the heads");
  merged.emplace_back(in);
  const ValueRef flat = MatrixProduct(b, Reshape(b, x, merged), Reshape(b, kernel, {in, out}));
  ValueRef y = Reshape(b, flat, dims);
  if (c.config.Bool("use_bias", true)) y = Add(b, y, c.Weight(weights, 1));
  return y;
}

struct Arguments {
  KTensor query, value, key;
  bool own_key = false;
};

Arguments ArgumentsOf(LayerContext& c) {
  Arguments a;
  const KValue &query = c.Arg(0, "query"), &value = c.Arg(1, "value"), &key = c.Arg(2, "key");
  if (!query.is_tensor() || !value.is_tensor()) {
    c.Fail("it needs a query and a value");
    return a;
  }
  a.query = query.tensor;
  a.value = value.tensor;
  a.own_key = key.is_tensor();
  a.key = a.own_key ? key.tensor : a.value;
  return a;
}

ValueRef MaskOf(LayerContext& c, int position, const char* name, ValueRef otherwise) {
  const ValueRef named = c.ArgValue(position, name);
  return named.node >= 0 ? named : otherwise;
}

// True for keys that are fewer steps than the window away from a query, [1, queries, keys].
ValueRef Nearby(LayerContext& c, ValueRef scores) {
  GraphBuilder& b = c.b;
  const int64_t window = c.config.Int("sliding_window", 1);
  if (window < 1) c.Fail(absl::StrCat("sliding_window is ", window));
  if (!b.ok()) return {};
  const ValueRef ones =
      Fill(b, {DimOf(b, scores, -2), DimOf(b, scores, -1)}, Scalar(b, DType::kInt32, 1));
  const ValueRef band = b.Op("MatrixBandPart", {ones, Int64(b, window - 1), Int64(b, window - 1)});
  return ExpandDims(b, Cast(b, band, DType::kBool), 0);
}

// What may attend to what: [batch, queries, keys], or less where less is said.
ValueRef AttentionMask(LayerContext& c, const Arguments& a, ValueRef scores) {
  GraphBuilder& b = c.b;
  ValueRef all;
  const auto also = [&](ValueRef mask, int axis) {
    if (mask.node < 0) return;
    mask = Cast(b, mask, DType::kBool);
    if (axis != 0) mask = ExpandDims(b, mask, axis);
    all = all.node < 0 ? mask : b.Op("LogicalAnd", {all, mask});
  };
  if (!c.keras2() && c.class_name == "MultiHeadAttention" && c.ArgValue(3, "query_mask").node >= 0)
    c.Refuse("a query_mask in the call, which versions of Keras read or leave,");
  also(MaskOf(c, 3, "query_mask", a.query.mask), -1);
  also(MaskOf(c, 4, "value_mask", a.value.mask), -2);
  also(MaskOf(c, 5, "key_mask", a.own_key ? a.key.mask : ValueRef()), -2);
  if (c.Flag("use_causal_mask")) also(ExpandDims(b, CausalMask(b, scores), 0), 0);
  if (c.config.Has("sliding_window")) also(Nearby(c, scores), 0);
  also(MaskOf(c, c.keras2() ? 3 : 6, "attention_mask", {}), 0);
  return all;
}

// The axes of projected queries [batch, ..., heads, size] that attention is along.
std::vector<int> AttentionAxes(LayerContext& c, int rank) {
  std::vector<int> axes;
  for (int64_t axis : c.config.Ints("attention_axes", -1, {})) {
    if (axis < 0) axis += rank - 1;
    if (axis < 1 || axis > rank - 3)
      c.Fail(absl::StrCat("attention axis ", axis));
    else
      axes.push_back(static_cast<int>(axis));
  }
  for (int k = 1; axes.empty() && k < rank - 2; ++k) axes.push_back(k);
  return axes;
}

struct Equations {
  std::string scores, combine;
};

Equations EquationsOf(const std::vector<int>& axes, int rank) {
  const auto along = [&](int k) { return std::find(axes.begin(), axes.end(), k) != axes.end(); };
  std::string target, source, product, mine, theirs;
  for (int k = 0; k < rank; ++k) {
    target += static_cast<char>('a' + k);
    source += static_cast<char>('a' + (along(k) ? k + rank : k));
    if (!along(k) && k != rank - 1) product += target[k];
  }
  for (const int axis : axes) {
    mine += target[axis];
    theirs += source[axis];
  }
  product += mine + theirs;
  return {absl::StrCat(source, ",", target, "->", product),
          absl::StrCat(product, ",", source, "->", target)};
}

// Keras 3 sets masked scores far down, and its Softmax layer gives nothing for them; Keras 2 takes
// a large number off.
ValueRef MaskedSoftmax(LayerContext& c, ValueRef scores, ValueRef mask, int axes, bool by_layer) {
  GraphBuilder& b = c.b;
  std::vector<int64_t> last;
  for (int k = 1; k <= axes; ++k) last.push_back(-k);
  if (mask.node < 0) return SoftmaxOver(b, scores, last);
  const int rank = Rank(b, scores);
  while (b.ok() && Rank(b, mask) < rank) {
    const int at = Rank(b, mask) - 2 * axes;
    mask = ExpandDims(b, mask, std::max(at, 0));
  }
  const ValueRef far = Scalar(b, b.dtype(scores), b.dtype(scores) == DType::kFloat16 ? -3e4 : -1e9);
  const ValueRef moved = c.keras2() ? Add(b, scores, far) : far;
  const ValueRef y = SoftmaxOver(b, b.Op("SelectV2", {mask, scores, moved}), last);
  if (c.keras2() || !by_layer) return y;
  return b.Op("SelectV2", {mask, y, Scalar(b, b.dtype(y), 0)});
}

// What variables say already, and how Keras computes it.
void IgnoreSizes(LayerContext& c) {
  c.config.Ignore({"value_dim", "output_shape", "flash_attention", "query_shape", "key_shape",
                   "value_shape", "num_heads", "num_query_heads", "num_key_value_heads",
                   "dropout"});
  if (c.config.Bool("softmax_robust_masking", false)) c.Refuse("softmax_robust_masking=True");
}

KValue Attend(LayerContext& c, const Arguments& a, ValueRef q, ValueRef k, ValueRef v,
              const std::vector<int>& axes, double scale) {
  GraphBuilder& b = c.b;
  const int rank = Rank(b, q);
  if (!b.ok() || rank > 10) return {};
  const Equations equations = EquationsOf(axes, rank);
  const ValueRef scores =
      b.Op("Einsum", {k, Mul(b, q, scale)}, {{"equation", equations.scores}, {"N", int64_t{2}}});
  const bool with_scores = c.Flag("return_attention_scores");
  const bool by_layer = with_scores || rank != 4 || c.config.Number("dropout", 0) > 0;
  const ValueRef weights = MaskedSoftmax(c, scores, AttentionMask(c, a, scores),
                                         static_cast<int>(axes.size()), by_layer);
  ValueRef y = b.Op("Einsum", {weights, v}, {{"equation", equations.combine}, {"N", int64_t{2}}});
  if (c.config.Bool("use_gate", false))
    y = Mul(b, y, b.Op("Sigmoid", {ToHeads(c, a.query.value, AttentionPart(c, "gate_dense"))}));
  const KTensor out{FromHeads(c, y, AttentionPart(c, "output_dense")), a.query.mask};
  if (!with_scores) return out;
  return std::vector<KValue>{out, weights};
}

KValue MultiHeadAttention(LayerContext& c) {
  GraphBuilder& b = c.b;
  const Arguments a = ArgumentsOf(c);
  // Keras 3 of today deals with masks here, and takes them off.
  if (!c.keras2()) c.file.unmasked.insert({a.query.value, a.value.value, a.key.value});
  IgnoreSizes(c);
  if (!b.ok()) return {};
  const ValueRef q = ToHeads(c, a.query.value, AttentionPart(c, "query_dense"));
  const ValueRef k = ToHeads(c, a.key.value, AttentionPart(c, "key_dense"));
  TakeGate(c);
  const ValueRef v = ToHeads(c, a.value.value, AttentionPart(c, "value_dense"));
  const double size = c.config.Number("key_dim", 1);
  if (!b.ok()) return {};
  return Attend(c, a, q, k, v, AttentionAxes(c, Rank(b, q)), 1 / std::sqrt(size));
}

// Each head of keys and values serves several of queries.
ValueRef RepeatHeads(LayerContext& c, ValueRef x, int64_t times) {
  GraphBuilder& b = c.b;
  if (times == 1 || !b.ok()) return x;
  const ValueRef tiled = b.Op("Tile", {ExpandDims(b, x, 3), Ints(b, {1, 1, 1, times, 1})});
  return Reshape(b, tiled,
                 {DimOf(b, x, 0), DimOf(b, x, 1), SizeOf(b, x, 2, "heads") * times,
                  SizeOf(b, x, 3, "the size of a head")});
}

KValue GroupedQueryAttention(LayerContext& c) {
  GraphBuilder& b = c.b;
  const Arguments a = ArgumentsOf(c);
  IgnoreSizes(c);
  if (!b.ok()) return {};
  const ValueRef q = ToHeads(c, a.query.value, AttentionPart(c, "query_dense"));
  ValueRef k = ToHeads(c, a.key.value, AttentionPart(c, "key_dense"));
  TakeGate(c);
  ValueRef v = ToHeads(c, a.value.value, AttentionPart(c, "value_dense"));
  const int64_t heads = SizeOf(b, q, 2, "heads"), groups = SizeOf(b, k, 2, "heads");
  if (b.ok() && (Rank(b, q) != 4 || groups < 1 || heads % groups != 0))
    c.Fail(absl::StrCat(heads, " heads of queries for ", groups));
  if (!b.ok()) return {};
  k = RepeatHeads(c, k, heads / groups);
  v = RepeatHeads(c, v, heads / groups);
  const double size = c.config.Number("head_dim", 1);
  return Attend(c, a, q, k, v, {1}, 1 / std::sqrt(size));
}

const LayerRegistrar kMultiHead({"MultiHeadAttention"}, MultiHeadAttention);
const LayerRegistrar kGrouped({"GroupQueryAttention", "GroupedQueryAttention"},
                              GroupedQueryAttention);

}  // namespace
}  // namespace floe::keras
