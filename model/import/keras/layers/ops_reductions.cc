// Operations that reduce along axes.
#include <string>

#include "absl/strings/match.h"
#include "model/import/keras/op_values.h"
#include "model/import/keras/operation.h"

namespace floe::keras {
namespace {

// The axes that are named, or all of them.
std::vector<int64_t> ReducedAxes(LayerContext& c, ValueRef x) {
  const bool all = Option(c, {"axis"}).is_null();
  std::vector<int64_t> axes = IntOptions(c, {"axis"});
  const int rank = all ? Rank(c.b, x) : 0;
  for (int k = 0; k < rank; ++k) axes.push_back(k);
  return axes;
}

bool Keeps(LayerContext& c) { return BoolOption(c, {"keepdims"}, false); }

KValue Mean(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  // TensorFlow's own mean of whole numbers is a whole number.
  if (!IsKeras3(c) && !Floating(b, x)) return Reduce(b, "Mean", x, ReducedAxes(c, x), Keeps(c));
  const DType wide = ResultType({{b.dtype(x)}, {DType::kFloat32}});
  const ValueRef mean = Reduce(b, "Mean", Cast(b, x, wide), ReducedAxes(c, x), Keeps(c));
  return Floating(b, x) ? Cast(b, mean, b.dtype(x)) : mean;
}

KValue Sum(LayerContext& c) {
  ValueRef x = FirstTensor(c);
  if (IsKeras3(c)) x = Cast(c.b, x, SumType(c.b.dtype(x)));
  return Reduce(c.b, "Sum", x, ReducedAxes(c, x), Keeps(c));
}

KValue Prod(LayerContext& c) {
  ValueRef x = FirstTensor(c);
  // Keras leaves the type alone where one is named, whichever that is.
  if (IsKeras3(c) && !TypeOption(c, {"dtype"}).has_value()) x = Cast(c.b, x, SumType(c.b.dtype(x)));
  return Reduce(c.b, "Prod", x, ReducedAxes(c, x), Keeps(c));
}

KValue Extreme(LayerContext& c, bool most) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  const bool truth = b.dtype(x) == DType::kBool;
  const char* const op = truth ? (most ? "Any" : "All") : (most ? "Max" : "Min");
  const ValueRef y = Reduce(b, op, x, ReducedAxes(c, x), Keeps(c));
  if (Option(c, {"initial"}).is_null() || !b.ok()) return y;
  const double bound = NumberOption(c, {"initial"}, 0);
  const DType dtype = truth ? DType::kInt32 : b.dtype(y);
  const ValueRef bounded =
      b.Op(most ? "Maximum" : "Minimum", {Cast(b, y, dtype), Scalar(b, dtype, bound)});
  return Cast(b, bounded, b.dtype(y));
}
KValue Max(LayerContext& c) { return Extreme(c, true); }
KValue Min(LayerContext& c) { return Extreme(c, false); }

KValue Truth(LayerContext& c, const char* op) {
  const ValueRef x = FirstTensor(c);
  return Reduce(c.b, op, Cast(c.b, x, DType::kBool), ReducedAxes(c, x), Keeps(c));
}
KValue Any(LayerContext& c) { return Truth(c, "Any"); }
KValue All(LayerContext& c) { return Truth(c, "All"); }

ValueRef VarianceOf(LayerContext& c, ValueRef x) {
  GraphBuilder& b = c.b;
  const std::vector<int64_t> axes = ReducedAxes(c, x);
  const ValueRef mean = Reduce(b, "Mean", x, axes, true);
  return Reduce(b, "Mean", b.Op("Square", {Sub(b, x, mean)}), axes, Keeps(c));
}

KValue Variance(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  if (!IsKeras3(c)) return VarianceOf(c, x);
  const DType wide = ResultType({{b.dtype(x)}, {DType::kFloat32}});
  return Cast(b, VarianceOf(c, Cast(b, x, wide)),
              ResultType({{b.dtype(x)}, {DType::kFloat32, true}}));
}

KValue Deviation(LayerContext& c) {
  const ValueRef x = FirstTensor(c);
  return c.b.Op("Sqrt", {VarianceOf(c, Cast(c.b, x, FloatingType(c.b.dtype(x))))});
}

KValue LogSumExp(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = FirstTensor(c);
  x = Cast(b, x, FloatingType(b.dtype(x)));
  const std::vector<int64_t> axes = ReducedAxes(c, x);
  const ValueRef greatest = Reduce(b, "Max", x, axes, true);
  // A greatest of infinity is not taken off: it would leave NaN.
  const ValueRef most =
      b.Op("SelectV2", {b.Op("IsFinite", {greatest}), greatest, Scalar(b, b.dtype(x), 0)});
  const ValueRef sum = Reduce(b, "Sum", b.Op("Exp", {Sub(b, x, most)}), axes, true);
  const ValueRef y = Add(b, b.Op("Log", {sum}), most);
  return Keeps(c) ? y : Squeeze(b, y, axes);
}

KValue ArgExtreme(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = FirstTensor(c);
  const int rank = Rank(b, x);
  const bool keras3 = IsKeras3(c), whole = keras3 && Option(c, {"axis"}).is_null();
  const int64_t axis = IntOption(c, {"axis", "dimension"}, 0);
  if (keras3) x = WithNegativeZeros(b, x);
  if (whole) x = Reshape(b, x, {-1});
  const bool most = absl::StrContains(OperationName(c), "max");
  const DType type =
      TypeOption(c, {"output_type"}).value_or(keras3 ? DType::kInt32 : DType::kInt64);
  const ValueRef y =
      b.Op(most ? "ArgMax" : "ArgMin", {x, Int(b, whole ? 0 : axis)}, {{"output_type", type}});
  if (!Keeps(c)) return y;
  if (whole) return Reshape(b, y, std::vector<WantedDim>(rank, 1));
  return ExpandDims(b, y, static_cast<int>(axis));
}

const OperationRegistrar kReductions[] = {{"Mean", {"math.reduce_mean", "reduce_mean"}, Mean},
                                          {"Sum", {"math.reduce_sum", "reduce_sum"}, Sum},
                                          {"Max", {"math.reduce_max", "reduce_max"}, Max},
                                          {"Amax", {}, Max},
                                          {"Min", {"math.reduce_min", "reduce_min"}, Min},
                                          {"Amin", {}, Min},
                                          {"Prod", {"math.reduce_prod", "reduce_prod"}, Prod},
                                          {"Any", {"math.reduce_any", "reduce_any"}, Any},
                                          {"All", {"math.reduce_all", "reduce_all"}, All},
                                          {"Var", {"math.reduce_variance"}, Variance},
                                          {"Std", {"math.reduce_std"}, Deviation},
                                          {"Logsumexp", {"math.reduce_logsumexp"}, LogSumExp},
                                          {"Argmax", {"math.argmax", "argmax"}, ArgExtreme},
                                          {"Argmin", {"math.argmin", "argmin"}, ArgExtreme}};

}  // namespace
}  // namespace floe::keras
