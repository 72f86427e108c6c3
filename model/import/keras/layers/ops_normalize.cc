// Operations that normalise, and statistics that they need.
#include <algorithm>
#include <numeric>
#include <string>

#include "absl/strings/match.h"
#include "model/import/keras/operation.h"

namespace floe::keras {
namespace {

std::vector<int64_t> NormAxes(LayerContext& c, ValueRef x, Names names,
                              const std::vector<int64_t>& otherwise) {
  std::vector<int64_t> axes = IntOptions(c, names);
  if (axes.empty()) axes = otherwise;
  const int rank = Rank(c.b, x);
  for (int64_t& axis : axes) {
    if (axis < 0) axis += rank;
    if (axis >= 0 && axis < rank) continue;
    if (c.b.ok()) c.Fail("an axis past the rank of the input");
    axis = 0;
  }
  std::sort(axes.begin(), axes.end());
  return axes;
}

ValueRef UpcastNorm(GraphBuilder& b, ValueRef x) {
  return b.dtype(x) == DType::kFloat64 ? x : Cast(b, x, DType::kFloat32);
}

// A value over some axes of x, with ones at the others.
ValueRef NormOver(GraphBuilder& b, ValueRef v, ValueRef x, const std::vector<int64_t>& axes) {
  const int rank = Rank(b, x);
  if (!b.ok() || Rank(b, v) == rank) return v;
  std::vector<WantedDim> dims;
  for (int k = 0; k < rank; ++k) {
    const bool mine = std::find(axes.begin(), axes.end(), k) != axes.end();
    dims.push_back(mine ? WantedDim(SizeOf(b, x, k, "an axis that is normalised")) : WantedDim(1));
  }
  return Reshape(b, v, dims);
}

struct Statistics {
  ValueRef mean, variance;
};

Statistics StatisticsOf(GraphBuilder& b, ValueRef x, const std::vector<int64_t>& axes, bool keep) {
  const ValueRef mean = Reduce(b, "Mean", x, axes, true);
  const ValueRef squares = b.Op("SquaredDifference", {x, mean});
  return {keep ? mean : Squeeze(b, mean, axes), Reduce(b, "Mean", squares, axes, keep)};
}

KValue MomentsFunction(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = TensorAt(c, 0, {"x"});
  std::vector<int64_t> axes = NormAxes(c, x, {"axes"}, {});
  if (c.Arg(-1, "shift").is_tensor()) return c.Refuse("shift");
  BoolOption(c, {"synchronized"}, false);  // among replicas
  const bool keep = BoolOption(c, {"keepdims"}, false);
  if (!b.ok()) return {};
  const DType dtype = b.dtype(x);
  const bool half = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  const Statistics s = StatisticsOf(b, half ? Cast(b, x, DType::kFloat32) : x, axes, keep);
  const auto back = [&](ValueRef v) {
    if (!half) return v;
    const ValueRef low = Scalar(b, DType::kFloat32, -65504),
                   high = Scalar(b, DType::kFloat32, 65504);
    if (IsKeras3(c)) v = b.Op("Minimum", {b.Op("Maximum", {v, low}), high});
    return Cast(b, v, dtype);
  };
  return std::vector<KValue>{back(s.mean), back(s.variance)};
}

KValue BatchNorm(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = TensorAt(c, 0, {"x"});
  ValueRef mean = TensorAt(c, 1, {"mean"}), variance = TensorAt(c, 2, {"variance"});
  Operand offset = OperandAt(c, 3, {"offset"}), scale = OperandAt(c, 4, {"scale"});
  const double epsilon = NumberOption(c, {"epsilon", "variance_epsilon"}, 1e-3);
  const std::vector<int64_t> axes = NormAxes(c, x, {"axis"}, {-1});
  if (!b.ok()) return {};
  const bool keras3 = IsKeras3(c);
  const auto placed = [&](ValueRef v) { return keras3 ? NormOver(b, v, x, axes) : v; };
  ValueRef factor = b.Op("Rsqrt", {Add(b, placed(variance), epsilon)});
  if (scale.present()) factor = Mul(b, factor, Cast(b, placed(scale.value), b.dtype(factor)));
  ValueRef shift = Mul(b, b.Op("Neg", {placed(mean)}), factor);
  if (offset.present()) shift = Add(b, Cast(b, placed(offset.value), b.dtype(shift)), shift);
  return Add(b, Mul(b, x, Cast(b, factor, b.dtype(x))), Cast(b, shift, b.dtype(x)));
}

KValue LayerNorm(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef in = TensorAt(c, 0, {"x"});
  const Operand gamma = OperandAt(c, 1, {"gamma"}), beta = OperandAt(c, 2, {"beta"});
  const double epsilon = NumberOption(c, {"epsilon"}, 1e-7);
  const bool rms = BoolOption(c, {"rms_scaling"}, false);
  const std::vector<int64_t> axes = NormAxes(c, in, {"axis"}, {-1});
  if (!b.ok()) return {};
  const ValueRef x = UpcastNorm(b, in);
  const auto own = [&](const Operand& v) {
    return Cast(b, NormOver(b, v.value, x, axes), b.dtype(x));
  };
  const Statistics s = StatisticsOf(b, x, axes, true);
  ValueRef factor = b.Op("Rsqrt", {Add(b, s.variance, epsilon)});
  if (gamma.present()) factor = Mul(b, factor, own(gamma));
  if (rms) return Cast(b, Mul(b, x, factor), b.dtype(in));
  ValueRef shift = Mul(b, b.Op("Neg", {s.mean}), factor);
  if (beta.present()) shift = Add(b, shift, own(beta));
  return Cast(b, Add(b, Mul(b, x, factor), shift), b.dtype(in));
}

KValue RmsNorm(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef in = TensorAt(c, 0, {"x"});
  const Operand scale = OperandAt(c, 1, {"scale"});
  const double epsilon = NumberOption(c, {"epsilon"}, 1e-7);
  const std::vector<int64_t> axes = NormAxes(c, in, {"axis"}, {-1});
  const ValueRef x = UpcastNorm(b, in);
  const ValueRef mean = Reduce(b, "Mean", b.Op("Square", {x}), axes, true);
  ValueRef y = Mul(b, x, b.Op("Rsqrt", {Add(b, mean, epsilon)}));
  if (scale.present()) y = Mul(b, y, Cast(b, scale.value, b.dtype(x)));
  return Cast(b, y, b.dtype(in));
}

KValue Normalize(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = TensorAt(c, 0, {"x"});
  const int64_t order = IntOption(c, {"order"}, 2);
  const double epsilon = NumberOption(c, {"epsilon"}, 1e-7);
  std::vector<int64_t> all(Rank(b, x));
  std::iota(all.begin(), all.end(), 0);
  const bool given = c.layer.config().contains("axis");  // None: all of them
  const std::vector<int64_t> axes =
      NormAxes(c, x, {"axis"}, given ? all : std::vector<int64_t>{-1});
  if (!b.ok()) return {};
  if (!Floating(b, x)) return c.Refuse("whole numbers");
  const DType dtype = b.dtype(x);
  if (order == 2) {
    const ValueRef sum = Reduce(b, "Sum", b.Op("Square", {x}), axes, true);
    return Mul(b, x, b.Op("Minimum", {b.Op("Rsqrt", {sum}), Scalar(b, dtype, 1 / epsilon)}));
  }
  if (order < 1 || axes.size() != 1) return c.Refuse("an order of several axes");
  ValueRef norm = b.Op("Abs", {x});
  const double power = static_cast<double>(order);
  if (order != 1) norm = b.Op("Pow", {norm, Scalar(b, dtype, power)});
  norm = Reduce(b, "Sum", norm, axes, true);
  if (order != 1) norm = b.Op("Pow", {norm, Scalar(b, dtype, 1 / power)});
  return b.Op("RealDiv", {x, b.Op("Maximum", {norm, Scalar(b, dtype, epsilon)})});
}

KValue L2Normalize(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = TensorAt(c, 0, {"x"});
  const double epsilon = NumberOption(c, {"epsilon"}, 1e-12);
  std::vector<int64_t> all(Rank(b, x));
  std::iota(all.begin(), all.end(), 0);
  const std::vector<int64_t> axes = NormAxes(c, x, {"axis", "dim"}, all);
  const ValueRef sum = Reduce(b, "Sum", b.Op("Square", {x}), axes, true);
  return Mul(b, x, b.Op("Rsqrt", {b.Op("Maximum", {sum, Scalar(b, b.dtype(x), epsilon)})}));
}

KValue LocalResponse(LayerContext& c) {
  const ValueRef x = TensorAt(c, 0, {"input"});
  return c.b.Op("LRN", {x},
                {{"depth_radius", IntOption(c, {"depth_radius"}, 5)},
                 {"bias", static_cast<float>(NumberOption(c, {"bias"}, 1))},
                 {"alpha", static_cast<float>(NumberOption(c, {"alpha"}, 1))},
                 {"beta", static_cast<float>(NumberOption(c, {"beta"}, 0.5))}});
}

KValue BiasAdd(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = TensorAt(c, 0, {"value"});
  const Operand bias = OperandAt(c, 1, {"bias"});
  const std::string format = TextOption(c, {"data_format"}, "N..C");
  const int rank = Rank(b, x);
  if (!b.ok() || !bias.present()) {
    c.Fail("no bias");
    return {};
  }
  ValueRef v = Cast(b, bias.value, b.dtype(x));
  if (!absl::StartsWith(format, "NC")) return b.Op("BiasAdd", {x, v});
  std::vector<WantedDim> dims(rank, 1);
  if (rank > 1) dims[1] = SizeOf(b, v, 0, "a bias");
  return Add(b, x, Reshape(b, v, dims));
}

const OperationRegistrar kNormalize[] = {
    {"Moments", {"nn.moments"}, MomentsFunction},
    {"BatchNorm", {"nn.batch_normalization"}, BatchNorm},
    {"LayerNorm", {}, LayerNorm},
    {"RMSNorm", {}, RmsNorm},
    {"Normalize", {}, Normalize},
    {"", {"math.l2_normalize", "nn.l2_normalize", "linalg.l2_normalize"}, L2Normalize},
    {"", {"nn.local_response_normalization", "nn.lrn"}, LocalResponse},
    {"", {"nn.bias_add"}, BiasAdd}};

}  // namespace
}  // namespace floe::keras
