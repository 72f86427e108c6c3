// Attention and losses as operations.
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "model/import/keras/operation.h"

namespace floe::keras {
namespace {

// Several heads of queries share one of keys: each is repeated.
ValueRef Repeated(GraphBuilder& b, ValueRef x, int64_t heads) {
  const int64_t own = SizeOf(b, x, 2, "the number of heads");
  if (!b.ok() || own == heads || own == 1 || heads % own != 0) return x;
  const ValueRef apart = ExpandDims(b, x, 3);
  const ValueRef tiled = b.Op("Tile", {apart, Ints(b, {1, 1, 1, heads / own, 1})});
  return Reshape(b, tiled, {DimOf(b, x, 0), DimOf(b, x, 1), heads, DimOf(b, x, 3)});
}

// True where a query may see a key: those at its time and before.
ValueRef CausalOption(GraphBuilder& b, ValueRef logits) {
  const ValueRef all =
      Fill(b, {DimOf(b, logits, 2), DimOf(b, logits, 3)}, Scalar(b, DType::kInt32, 1));
  const ValueRef past = b.Op("MatrixBandPart", {all, Int64(b, -1), Int64(b, 0)});
  return Cast(b, past, DType::kBool);
}

KValue DotProductAttention(LayerContext& c) {
  GraphBuilder& b = c.b;
  const Operand q = OperandAt(c, 0, {"query"}), k = OperandAt(c, 1, {"key"}),
                v = OperandAt(c, 2, {"value"}), bias = OperandAt(c, 3, {"bias"}),
                mask = OperandAt(c, 4, {"mask"}), scale = OperandAt(c, 5, {"scale"});
  const bool causal = BoolOption(c, {"is_causal"}, false);
  BoolOption(c, {"flash_attention"}, false);  // a way to compute it
  Option(c, {"attn_logits_soft_cap"});        // which Keras does not read on TensorFlow
  if (!q.present() || !k.present() || !v.present()) c.Fail("query, key and value are needed");
  if (!b.ok()) return {};
  const std::vector<ValueRef> same = InOneType(c, {q, k, v});
  if (Rank(b, same[0]) != 4 || Rank(b, same[1]) != 4 || Rank(b, same[2]) != 4)
    c.Fail("query, key and value have four dims");
  const int64_t heads = SizeOf(b, same[0], 2, "the number of heads");
  const ValueRef keys = Repeated(b, same[1], heads), values = Repeated(b, same[2], heads);
  if (!b.ok()) return {};
  const bool wide = b.dtype(keys) == DType::kFloat64;
  const DType dtype = wide ? DType::kFloat64 : DType::kFloat32;
  ValueRef logits = Cast(b,
                         b.Op("Einsum", {same[0], keys},
                              {{"equation", std::string("BTNH,BSNH->BNTS")}, {"N", int64_t{2}}}),
                         dtype);
  const auto length = static_cast<float>(SizeOf(b, keys, 3, "the size of a head"));
  logits = scale.present() ? Mul(b, logits, Cast(b, scale.value, dtype))
                           : Mul(b, logits, 1.0F / std::sqrt(length));
  if (bias.present()) logits = Add(b, logits, Cast(b, bias.value, dtype));
  ValueRef open = mask.present() ? Cast(b, mask.value, DType::kBool) : ValueRef();
  if (causal) {
    const ValueRef past = CausalOption(b, logits);
    open = mask.present() ? b.Op("LogicalAnd", {open, past}) : past;
  }
  if (mask.present() || causal) {
    const ValueRef never = Scalar(b, dtype, 3.38953e38 * -0.7);
    logits = b.Op("SelectV2", {open, logits, never});
  }
  const ValueRef weights = Cast(b, b.Op("Softmax", {logits}), b.dtype(keys));
  return b.Op("Einsum", {weights, values},
              {{"equation", std::string("BNTS,BSNH->BTNH")}, {"N", int64_t{2}}});
}

// ---- losses ----

ValueRef LogSoftmaxOver(GraphBuilder& b, ValueRef x, int64_t axis) {
  const int rank = Rank(b, x);
  if (axis < 0) axis += rank;
  if (axis == rank - 1) return b.Op("LogSoftmax", {x});
  const ValueRef away = Sub(b, x, Reduce(b, "Max", x, {axis}, true));
  const ValueRef sum = Reduce(b, "Sum", b.Op("Exp", {away}), {axis}, true);
  return Sub(b, away, b.Op("Log", {sum}));
}

ValueRef Sharp(GraphBuilder& b, ValueRef x) {
  const ValueRef low = Scalar(b, b.dtype(x), 1e-7), high = Scalar(b, b.dtype(x), 1 - 1e-7);
  return b.Op("Maximum", {b.Op("Minimum", {x, high}), low});
}

ValueRef SigmoidLoss(GraphBuilder& b, ValueRef labels, ValueRef logits) {
  const ValueRef positive = b.Op("Relu", {logits});
  const ValueRef tail = b.Op("Log1p", {b.Op("Exp", {b.Op("Neg", {b.Op("Abs", {logits})})})});
  return Add(b, Sub(b, positive, Mul(b, logits, labels)), tail);
}

// Keras looks for the logits behind probabilities where they are a softmax's or a sigmoid's own.
bool BehindActivation(GraphBuilder& b, ValueRef output) {
  const std::string_view op = b.graph().node(output.node).op->name;
  return op == "Softmax" || op == "Sigmoid";
}

KValue Loss(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef labels = TensorAt(c, 0, {"target", "labels"}),
                 output = TensorAt(c, 1, {"output", "logits"});
  const bool logits = BoolOption(c, {"from_logits"}, !IsKeras3(c));
  const std::string name = OperationName(c);
  if (!b.ok()) return {};
  if (b.dtype(labels) != b.dtype(output)) return c.Refuse("labels of another type");
  if (!logits && BehindActivation(b, output)) return c.Refuse("probabilities of an activation");
  if (name == "BinaryCrossentropy") {
    if (logits) return SigmoidLoss(b, labels, output);
    const ValueRef p = Sharp(b, output), one = Scalar(b, b.dtype(p), 1);
    const ValueRef yes = Mul(b, labels, b.Op("Log", {p}));
    const ValueRef no = Mul(b, Sub(b, one, labels), b.Op("Log", {Sub(b, one, p)}));
    return b.Op("Neg", {Add(b, yes, no)});
  }
  const int64_t axis = IntOption(c, {"axis"}, -1);
  ValueRef logs;
  if (logits) {
    logs = LogSoftmaxOver(b, output, axis);
  } else {
    const ValueRef sum = Reduce(b, "Sum", output, {axis}, true);
    logs = b.Op("Log", {Sharp(b, b.Op("RealDiv", {output, sum}))});
  }
  return b.Op("Neg", {Reduce(b, "Sum", Mul(b, labels, logs), {axis}, false)});
}

KValue SparseLoss(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef labels = TensorAt(c, 0, {"target", "labels"});
  const ValueRef output = TensorAt(c, 1, {"output", "logits"});
  const bool logits = BoolOption(c, {"from_logits"}, !IsKeras3(c));
  if (IntOption(c, {"axis"}, -1) != -1) return c.Refuse("another axis than -1");
  if (!b.ok()) return {};
  if (!logits && BehindActivation(b, output)) return c.Refuse("probabilities of an activation");
  if (Rank(b, labels) == Rank(b, output)) labels = Squeeze(b, labels, {-1});
  const int64_t classes = SizeOf(b, output, -1, "the number of classes");
  const ValueRef logs = b.Op("LogSoftmax", {logits ? output : b.Op("Log", {Sharp(b, output)})});
  const DType dtype = b.dtype(output);
  const ValueRef hot = b.Op(
      "OneHot", {labels, Int(b, classes), Scalar(b, DType::kBool, 1), Scalar(b, DType::kBool, 0)},
      {{"axis", int64_t{-1}}});
  // A class that is not there answers NaN.
  const ValueRef known = Reduce(b, "Any", hot, {-1}, false);
  const ValueRef chosen = b.Op("SelectV2", {hot, logs, Scalar(b, dtype, 0)});
  const ValueRef loss = b.Op("Neg", {Reduce(b, "Sum", chosen, {-1}, false)});
  return b.Op("SelectV2", {known, loss, Scalar(b, dtype, NAN)});
}

const OperationRegistrar kAttentionFunctions[] = {
    {"DotProductAttention", {}, DotProductAttention},
    {"BinaryCrossentropy", {"nn.sigmoid_cross_entropy_with_logits"}, Loss},
    {"CategoricalCrossentropy",
     {"nn.softmax_cross_entropy_with_logits", "nn.softmax_cross_entropy_with_logits_v2"},
     Loss},
    {"SparseCategoricalCrossentropy", {"nn.sparse_softmax_cross_entropy_with_logits"}, SparseLoss}};

}  // namespace
}  // namespace floe::keras
