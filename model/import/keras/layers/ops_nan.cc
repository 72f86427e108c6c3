// Reductions that pass over NaN, and others that Keras 3 makes of several ops.
#include <limits>
#include <string>

#include "absl/strings/match.h"
#include "model/import/keras/op_values.h"
#include "model/import/keras/operation.h"

namespace floe::keras {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kPositiveInfinity = std::numeric_limits<double>::infinity();

struct OverAxes {
  std::vector<int64_t> axes;
  bool keep = false;
};

OverAxes NanAxes(LayerContext& c, ValueRef x) {
  OverAxes over;
  const bool all = Option(c, {"axis"}).is_null();
  over.axes = IntOptions(c, {"axis"});
  const int rank = all ? Rank(c.b, x) : 0;
  for (int k = 0; k < rank; ++k) over.axes.push_back(k);
  over.keep = BoolOption(c, {"keepdims"}, false);
  return over;
}

// x with another number where it is NaN.
ValueRef Without(GraphBuilder& b, ValueRef x, double instead) {
  if (!Floating(b, x)) return x;
  return b.Op("SelectV2", {b.Op("IsNan", {x}), Scalar(b, b.dtype(x), instead), x});
}

KValue NanExtreme(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  const OverAxes over = NanAxes(c, x);
  const bool most = OperationName(c) == "Nanmax";
  if (b.dtype(x) == DType::kBool) return Reduce(b, most ? "Any" : "All", x, over.axes, over.keep);
  const char* const op = most ? "Max" : "Min";
  const ValueRef y = Reduce(b, op, Without(b, x, most ? -kPositiveInfinity : kPositiveInfinity),
                            over.axes, over.keep);
  if (!Floating(b, x)) return y;
  const ValueRef none = Reduce(b, "All", b.Op("IsNan", {x}), over.axes, over.keep);
  return b.Op("SelectV2", {none, Scalar(b, b.dtype(x), kNaN), y});
}

KValue NanSum(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  const OverAxes over = NanAxes(c, x);
  const bool sum = OperationName(c) == "Nansum";
  const ValueRef clean = Cast(b, Without(b, x, sum ? 0 : 1), SumType(b.dtype(x)));
  return Reduce(b, sum ? "Sum" : "Prod", clean, over.axes, over.keep);
}

// How many are not NaN, in the type of x.
ValueRef Count(GraphBuilder& b, ValueRef x, const OverAxes& over) {
  const ValueRef there = b.Op("LogicalNot", {b.Op("IsNan", {x})});
  return Reduce(b, "Sum", Cast(b, there, b.dtype(x)), over.axes, over.keep);
}

ValueRef NanMeanOf(GraphBuilder& b, ValueRef x, const OverAxes& over) {
  const ValueRef sum = Reduce(b, "Sum", Without(b, x, 0), over.axes, over.keep);
  return b.Op("RealDiv", {sum, Count(b, x, over)});
}

KValue NanMean(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  const OverAxes over = NanAxes(c, x);
  if (Floating(b, x)) return NanMeanOf(b, x, over);
  return Reduce(b, "Mean", Cast(b, x, DType::kFloat32), over.axes, over.keep);
}

KValue NanVariance(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = FirstTensor(c);
  x = Cast(b, x, FloatingType(b.dtype(x)));
  const OverAxes over = NanAxes(c, x);
  const ValueRef mean = NanMeanOf(b, x, {over.axes, true});
  const ValueRef valid = b.Op("SelectV2", {b.Op("IsNan", {x}), Scalar(b, b.dtype(x), 0),
                                           b.Op("Square", {Sub(b, x, mean)})});
  const ValueRef sum = Reduce(b, "Sum", valid, over.axes, over.keep);
  const ValueRef variance = b.Op("RealDiv", {sum, Count(b, x, over)});
  return OperationName(c) == "Nanvar" ? variance : b.Op("Sqrt", {variance});
}

KValue NanArg(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = FirstTensor(c);
  const int rank = Rank(b, x);
  const OverAxes over = NanAxes(c, x);
  const bool whole = Option(c, {"axis"}).is_null(), most = OperationName(c) == "Nanargmax";
  if (!b.ok() || (!whole && over.axes.size() != 1)) return c.Refuse("more than one axis");
  const ValueRef none =
      Floating(b, x) ? Reduce(b, "All", b.Op("IsNan", {x}), over.axes, over.keep) : ValueRef();
  x = Without(b, x, most ? -kPositiveInfinity : kPositiveInfinity);
  x = WithNegativeZeros(b, x);
  if (whole) x = Reshape(b, x, {-1});
  const int64_t axis = whole ? 0 : over.axes[0];
  ValueRef y =
      b.Op(most ? "ArgMax" : "ArgMin", {x, Int(b, axis)}, {{"output_type", DType::kInt32}});
  if (over.keep)
    y = whole ? Reshape(b, y, std::vector<WantedDim>(rank, 1))
              : ExpandDims(b, y, static_cast<int>(axis));
  return none.node < 0 ? y : b.Op("SelectV2", {none, Int(b, -1), y});
}

KValue CountNonzero(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = TensorAt(c, 0, {"x", "input", "input_tensor"});
  const OverAxes over = NanAxes(c, x);
  const DType dtype =
      TypeOption(c, {"dtype"}).value_or(IsKeras3(c) ? DType::kInt32 : DType::kInt64);
  if (b.ok() && b.dtype(x) == DType::kString) return c.Refuse("a count of strings");
  const ValueRef there = Cast(b, Cast(b, x, DType::kBool), DType::kInt64);
  return Cast(b, Reduce(b, "Sum", there, over.axes, over.keep), dtype);
}

KValue Ptp(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  const OverAxes over = NanAxes(c, x);
  return Sub(b, Reduce(b, "Max", x, over.axes, over.keep),
             Reduce(b, "Min", x, over.axes, over.keep));
}

KValue AverageFunction(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = FirstTensor(c);
  const Operand given = OperandAt(c, 1, {"weights"});
  const OverAxes over = NanAxes(c, x);
  const bool whole = Option(c, {"axis"}).is_null();
  if (!b.ok()) return {};
  if (!given.present())
    return Reduce(b, "Mean", Cast(b, x, FloatingType(b.dtype(x))), over.axes, false);
  const std::vector<ValueRef> both =
      InOneType(c, {{x}, Strong(c, given)}, OperandType{DType::kFloat32, true});
  x = both[0];
  ValueRef weights = both[1];
  const int rank = Rank(b, x);
  if (!whole && Rank(b, weights) != rank) {
    if (over.axes.size() != 1 || Rank(b, weights) != 1)
      return c.Refuse("weights of several axes and another rank");
    std::vector<WantedDim> dims(rank, WantedDim(1));
    const int64_t axis = over.axes[0] < 0 ? over.axes[0] + rank : over.axes[0];
    if (axis < 0 || axis >= rank) c.Fail("an axis past the rank");
    if (!b.ok()) return {};
    dims[axis] = WantedDim(-1);
    weights = Reshape(b, weights, dims);
  }
  const ValueRef sum = Reduce(b, "Sum", Mul(b, x, weights), over.axes, false);
  return b.Op("RealDiv", {sum, Reduce(b, "Sum", weights, over.axes, false)});
}

// Running sums and products.
KValue Cumulative(LayerContext& c) {
  GraphBuilder& b = c.b;
  const std::string name = OperationName(c);
  ValueRef x = FirstTensor(c);
  const bool product = absl::EndsWith(name, "umprod");
  const std::optional<DType> dtype = TypeOption(c, {"dtype"});
  const bool whole = IsKeras3(c) && Option(c, {"axis"}).is_null();
  const int64_t axis = IntOption(c, {"axis"}, 0);
  const bool exclusive = BoolOption(c, {"exclusive"}, false),
             reverse = BoolOption(c, {"reverse"}, false);
  if (!b.ok()) return {};
  if (absl::StartsWith(name, "Nan") && Floating(b, x)) {
    // Keras makes infinities the greatest numbers there.
    const double most = b.dtype(x) == DType::kFloat16   ? 65504
                        : b.dtype(x) == DType::kFloat64 ? std::numeric_limits<double>::max()
                                                        : std::numeric_limits<float>::max();
    if (b.dtype(x) == DType::kBFloat16) return c.Refuse("bfloat16");
    x = Without(b, x, product ? 1 : 0);
    x = b.Op("Minimum",
             {b.Op("Maximum", {x, Scalar(b, b.dtype(x), -most)}), Scalar(b, b.dtype(x), most)});
  }
  if (dtype.has_value()) x = Cast(b, x, *dtype);
  if (IsKeras3(c) && b.dtype(x) == DType::kBool) x = Cast(b, x, DType::kInt32);
  if (whole) x = Reshape(b, x, {-1});
  return b.Op(product ? "Cumprod" : "Cumsum", {x, Int(b, whole ? 0 : axis)},
              {{"exclusive", exclusive}, {"reverse", reverse}});
}

const OperationRegistrar kNan[] = {{"Nanmax", {}, NanExtreme},
                                   {"Nanmin", {}, NanExtreme},
                                   {"Nansum", {}, NanSum},
                                   {"Nanprod", {}, NanSum},
                                   {"Nanmean", {}, NanMean},
                                   {"Nanvar", {}, NanVariance},
                                   {"Nanstd", {}, NanVariance},
                                   {"Nanargmax", {}, NanArg},
                                   {"Nanargmin", {}, NanArg},
                                   {"CountNonzero", {"math.count_nonzero"}, CountNonzero},
                                   {"Ptp", {}, Ptp},
                                   {"Average", {}, AverageFunction},
                                   {"Cumsum", {"cumsum", "math.cumsum"}, Cumulative},
                                   {"Cumprod", {"math.cumprod"}, Cumulative},
                                   {"Nancumsum", {}, Cumulative},
                                   {"Nancumprod", {}, Cumulative}};

}  // namespace
}  // namespace floe::keras
