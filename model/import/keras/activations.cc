// Keras' activation functions, by their names in keras.activations.
#include <cmath>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "model/import/keras/layer.h"

namespace floe::keras {
namespace {

using Function = ValueRef (*)(GraphBuilder&, ValueRef);

ValueRef Linear(GraphBuilder&, ValueRef x) { return x; }

ValueRef Clip(GraphBuilder& b, ValueRef x, double low, double high) {
  return b.Op("Minimum",
              {b.Op("Maximum", {x, Scalar(b, b.dtype(x), low)}), Scalar(b, b.dtype(x), high)});
}

ValueRef HardSigmoid3(GraphBuilder& b, ValueRef x) {
  return Mul(b, b.Op("Relu6", {Add(b, x, 3.0)}), 1.0 / 6.0);
}

ValueRef HardSigmoid2(GraphBuilder& b, ValueRef x) {
  return Clip(b, Add(b, Mul(b, x, 0.2), 0.5), 0, 1);
}

ValueRef HardSilu(GraphBuilder& b, ValueRef x) { return Mul(b, x, HardSigmoid3(b, x)); }
ValueRef Silu(GraphBuilder& b, ValueRef x) { return Mul(b, x, b.Op("Sigmoid", {x})); }
ValueRef Mish(GraphBuilder& b, ValueRef x) {
  return Mul(b, x, b.Op("Tanh", {b.Op("Softplus", {x})}));
}
ValueRef Selu(GraphBuilder& b, ValueRef x) { return b.Op("Selu", {x}); }
ValueRef Leaky(GraphBuilder& b, ValueRef x) { return b.Op("LeakyRelu", {x}, {{"alpha", 0.2F}}); }

ValueRef Gelu(GraphBuilder& b, ValueRef x) {
  const ValueRef erf = b.Op("Erf", {Mul(b, x, std::sqrt(0.5))});
  return Mul(b, Mul(b, x, 0.5), Add(b, erf, 1.0));
}

ValueRef GeluTanh(GraphBuilder& b, ValueRef x) {
  const ValueRef cube = Mul(b, Mul(b, b.Op("Square", {x}), x), 0.044715);
  const ValueRef inner = Mul(b, Add(b, x, cube), std::sqrt(2.0 / M_PI));
  return Mul(b, Mul(b, x, 0.5), Add(b, b.Op("Tanh", {inner}), 1.0));
}

ValueRef Celu(GraphBuilder& b, ValueRef x) {
  const ValueRef zero = Scalar(b, b.dtype(x), 0);
  return Add(b, b.Op("Maximum", {x, zero}), b.Op("Expm1", {b.Op("Minimum", {x, zero})}));
}

// x where |x| > 0.5, drawn to zero by `by`.
ValueRef Shrink(GraphBuilder& b, ValueRef x, double by) {
  const ValueRef far = b.Op("Greater", {b.Op("Abs", {x}), Scalar(b, b.dtype(x), 0.5)});
  const ValueRef moved = by == 0 ? x : Sub(b, x, Mul(b, b.Op("Sign", {x}), by));
  return b.Op("SelectV2", {far, moved, Scalar(b, b.dtype(x), 0)});
}
ValueRef HardShrink(GraphBuilder& b, ValueRef x) { return Shrink(b, x, 0); }
ValueRef SoftShrink(GraphBuilder& b, ValueRef x) { return Shrink(b, x, 0.5); }

ValueRef HardTanh(GraphBuilder& b, ValueRef x) { return Clip(b, x, -1, 1); }
ValueRef TanhShrink(GraphBuilder& b, ValueRef x) { return Sub(b, x, b.Op("Tanh", {x})); }
ValueRef LogSigmoid(GraphBuilder& b, ValueRef x) {
  return b.Op("Neg", {b.Op("Softplus", {b.Op("Neg", {x})})});
}

ValueRef SparseSigmoid(GraphBuilder& b, ValueRef x) {
  return Clip(b, Add(b, Mul(b, x, 0.5), 0.5), 0, 1);
}

// 0, a parabola, then x.
ValueRef SparsePlus(GraphBuilder& b, ValueRef x) {
  const ValueRef clipped = Clip(b, x, -1, 1);
  const ValueRef curve = Mul(b, b.Op("Square", {Add(b, clipped, 1.0)}), 0.25);
  return b.Op("SelectV2", {b.Op("Less", {x, Scalar(b, b.dtype(x), 1)}), curve, x});
}

ValueRef Squareplus(GraphBuilder& b, ValueRef x) {
  const ValueRef root = b.Op("Sqrt", {Add(b, b.Op("Square", {x}), 4.0)});
  return Mul(b, Add(b, x, root), 0.5);
}

ValueRef Glu(GraphBuilder& b, ValueRef x) {
  const std::vector<ValueRef> halves = Split(b, x, -1, 2);
  return Mul(b, halves[0], b.Op("Sigmoid", {halves[1]}));
}

// As Keras computes it: the threshold comes from the sum of partial sums.
ValueRef Sparsemax(GraphBuilder& b, ValueRef x) {
  const int64_t n = SizeOf(b, x, -1, "the axis of sparsemax");
  const DType dtype = b.dtype(x);
  const std::vector<ValueRef> top = b.Outputs("TopKV2", {x, Int(b, n)}, 2, {{"sorted", true}});
  const ValueRef sums = b.Op("Cumsum", {top[0], Int(b, -1)});
  const ValueRef one = Scalar(b, dtype, 1), zero = Scalar(b, dtype, 0);
  const ValueRef k = b.Op("Range", {one, Scalar(b, dtype, static_cast<double>(n) + 1), one});
  const ValueRef mean = b.Op("RealDiv", {Sub(b, sums, one), k});
  const ValueRef support = b.Op("Greater", {Sub(b, top[0], mean), zero});
  const ValueRef count = Reduce(b, "Sum", Cast(b, support, dtype), {-1}, true);
  const ValueRef kept = Reduce(b, "Sum", b.Op("SelectV2", {support, sums, zero}), {-1}, true);
  const ValueRef tau = b.Op("RealDiv", {Sub(b, kept, one), count});
  return b.Op("Maximum", {Sub(b, x, tau), zero});
}

ValueRef LastAxis(GraphBuilder& b, const char* op, ValueRef x) { return b.Op(op, {x}); }
ValueRef Softmax(GraphBuilder& b, ValueRef x) { return LastAxis(b, "Softmax", x); }
ValueRef LogSoftmax(GraphBuilder& b, ValueRef x) { return LastAxis(b, "LogSoftmax", x); }

const std::map<std::string, const char*>& Ops() {
  static const std::map<std::string, const char*> ops{
      {"relu", "Relu"},         {"relu6", "Relu6"}, {"elu", "Elu"},
      {"exponential", "Exp"},   {"exp", "Exp"},     {"sigmoid", "Sigmoid"},
      {"softplus", "Softplus"}, {"tanh", "Tanh"},   {"softsign", "Softsign"}};
  return ops;
}

const std::map<std::string, Function>& Functions() {
  static const std::map<std::string, Function> functions{{"linear", Linear},
                                                         {"celu", Celu},
                                                         {"gelu", Gelu},
                                                         {"glu", Glu},
                                                         {"hard_shrink", HardShrink},
                                                         {"hard_sigmoid", HardSigmoid3},
                                                         {"hard_silu", HardSilu},
                                                         {"hard_swish", HardSilu},
                                                         {"hard_tanh", HardTanh},
                                                         {"leaky_relu", Leaky},
                                                         {"log_sigmoid", LogSigmoid},
                                                         {"log_softmax", LogSoftmax},
                                                         {"mish", Mish},
                                                         {"selu", Selu},
                                                         {"silu", Silu},
                                                         {"swish", Silu},
                                                         {"softmax", Softmax},
                                                         {"soft_shrink", SoftShrink},
                                                         {"sparse_plus", SparsePlus},
                                                         {"sparse_sigmoid", SparseSigmoid},
                                                         {"sparsemax", Sparsemax},
                                                         {"squareplus", Squareplus},
                                                         {"tanh_shrink", TanhShrink},
                                                         {"gelu_approximate", GeluTanh}};
  return functions;
}

}  // namespace

ValueRef ApplyActivation(GraphBuilder& b, const std::string& name, ValueRef x, bool keras2) {
  if (!b.ok()) return {};
  if (keras2 && name == "hard_sigmoid") return HardSigmoid2(b, x);
  if (const auto op = Ops().find(name); op != Ops().end()) return b.Op(op->second, {x});
  if (const auto function = Functions().find(name); function != Functions().end())
    return function->second(b, x);
  b.Fail(absl::UnimplementedError(
      absl::StrCat("activation ", Quoted(name),
                   " is not one of Keras' own; export the model with model.export() and serve the "
                   "SavedModel that it writes")));
  return {};
}

ValueRef SoftmaxOver(GraphBuilder& b, ValueRef x, std::vector<int64_t> axes) {
  const int rank = Rank(b, x);
  if (!b.ok()) return {};
  for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  if (axes.size() == 1 && axes[0] == rank - 1) return b.Op("Softmax", {x});
  const ValueRef powers = b.Op("Exp", {Sub(b, x, Reduce(b, "Max", x, axes, true))});
  return b.Op("RealDiv", {powers, Reduce(b, "Sum", powers, axes, true)});
}

ValueRef ApplyActivation(LayerContext& c, const Json& activation, ValueRef x) {
  if (activation.is_null()) return x;
  if (activation.is_string())
    return ApplyActivation(c.b, activation.get<std::string>(), x, c.keras2());
  const std::string class_name = Text(activation, "class_name");
  if (class_name == "function")
    return ApplyActivation(c.b, Text(activation, "config"), x, c.keras2());
  Call call;
  call.args.emplace_back(x);
  const std::vector<KTensor> out = Flatten(c.CallLayer(activation, LayerWeights(), call));
  return out.empty() ? ValueRef() : out[0].value;
}

}  // namespace floe::keras
