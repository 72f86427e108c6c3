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
  const int rank = all ? c.b.rank(x) : 0;
  for (int k = 0; k < rank; ++k) over.axes.push_back(k);
  over.keep = BoolOption(c, {"keepdims"}, false);
  return over;
}

// x with another number where it is NaN.
ValueRef Without(GraphBuilder& b, ValueRef x, double instead) {
  if (!b.Floating(x)) return x;
  return b.Op("SelectV2", {b.Op("IsNan", {x}), b.Scalar(b.dtype(x), instead), x});
}

KValue NanExtreme(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  const OverAxes over = NanAxes(c, x);
  if (!b.ok()) return {};
  const bool most = OperationName(c) == "Nanmax";
  if (b.dtype(x) == DType::kBool) return b.Reduce(most ? "Any" : "All", x, over.axes, over.keep);
  const char* const op = most ? "Max" : "Min";
  const ValueRef y = b.Reduce(op, Without(b, x, most ? -kPositiveInfinity : kPositiveInfinity),
                              over.axes, over.keep);
  if (!b.Floating(x)) return y;
  const ValueRef none = b.Reduce("All", b.Op("IsNan", {x}), over.axes, over.keep);
  return b.Op("SelectV2", {none, b.Scalar(b.dtype(x), kNaN), y});
}

KValue NanSum(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  const OverAxes over = NanAxes(c, x);
  if (!b.ok()) return {};
  const bool sum = OperationName(c) == "Nansum";
  const ValueRef clean = b.Cast(Without(b, x, sum ? 0 : 1), SumType(b.dtype(x)));
  return b.Reduce(sum ? "Sum" : "Prod", clean, over.axes, over.keep);
}

// How many are not NaN, in the type of x.
ValueRef Count(GraphBuilder& b, ValueRef x, const OverAxes& over) {
  const ValueRef there = b.Op("LogicalNot", {b.Op("IsNan", {x})});
  return b.Reduce("Sum", b.Cast(there, b.dtype(x)), over.axes, over.keep);
}

ValueRef NanMeanOf(GraphBuilder& b, ValueRef x, const OverAxes& over) {
  const ValueRef sum = b.Reduce("Sum", Without(b, x, 0), over.axes, over.keep);
  return b.Op("RealDiv", {sum, Count(b, x, over)});
}

KValue NanMean(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  const OverAxes over = NanAxes(c, x);
  if (!b.ok()) return {};
  if (b.Floating(x)) return NanMeanOf(b, x, over);
  return b.Reduce("Mean", b.Cast(x, DType::kFloat32), over.axes, over.keep);
}

KValue NanVariance(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = FirstTensor(c);
  x = b.Cast(x, FloatingType(b.dtype(x)));
  const OverAxes over = NanAxes(c, x);
  if (!b.ok()) return {};
  const ValueRef mean = NanMeanOf(b, x, {over.axes, true});
  const ValueRef valid = b.Op(
      "SelectV2", {b.Op("IsNan", {x}), b.Scalar(b.dtype(x), 0), b.Op("Square", {b.Sub(x, mean)})});
  const ValueRef sum = b.Reduce("Sum", valid, over.axes, over.keep);
  const ValueRef variance = b.Op("RealDiv", {sum, Count(b, x, over)});
  return OperationName(c) == "Nanvar" ? variance : b.Op("Sqrt", {variance});
}

KValue NanArg(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = FirstTensor(c);
  const int rank = b.rank(x);
  const OverAxes over = NanAxes(c, x);
  const bool whole = Option(c, {"axis"}).is_null(), most = OperationName(c) == "Nanargmax";
  if (!b.ok() || (!whole && over.axes.size() != 1)) return c.Refuse("more than one axis");
  const ValueRef none =
      b.Floating(x) ? b.Reduce("All", b.Op("IsNan", {x}), over.axes, over.keep) : ValueRef();
  x = Without(b, x, most ? -kPositiveInfinity : kPositiveInfinity);
  x = WithNegativeZeros(b, x);
  if (whole) x = b.Reshape(x, {-1});
  const int64_t axis = whole ? 0 : over.axes[0];
  ValueRef y = b.Op(most ? "ArgMax" : "ArgMin", {x, b.Int(axis)}, {{"output_type", DType::kInt32}});
  if (over.keep)
    y = whole ? b.Reshape(y, std::vector<WantedDim>(rank, 1))
              : b.ExpandDims(y, static_cast<int>(axis));
  return none.node < 0 ? y : b.Op("SelectV2", {none, b.Int(-1), y});
}

KValue CountNonzero(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = TensorAt(c, 0, {"x", "input", "input_tensor"});
  const OverAxes over = NanAxes(c, x);
  const DType dtype =
      TypeOption(c, {"dtype"}).value_or(IsKeras3(c) ? DType::kInt32 : DType::kInt64);
  if (b.ok() && b.dtype(x) == DType::kString) return c.Refuse("a count of strings");
  const ValueRef there = b.Cast(b.Cast(x, DType::kBool), DType::kInt64);
  return b.Cast(b.Reduce("Sum", there, over.axes, over.keep), dtype);
}

KValue Ptp(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  const OverAxes over = NanAxes(c, x);
  return b.Sub(b.Reduce("Max", x, over.axes, over.keep), b.Reduce("Min", x, over.axes, over.keep));
}

KValue AverageFunction(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = FirstTensor(c);
  const Operand given = OperandAt(c, 1, {"weights"});
  const OverAxes over = NanAxes(c, x);
  const bool whole = Option(c, {"axis"}).is_null();
  if (!b.ok()) return {};
  if (!given.present())
    return b.Reduce("Mean", b.Cast(x, FloatingType(b.dtype(x))), over.axes, false);
  const std::vector<ValueRef> both =
      InOneType(c, {{x}, Strong(c, given)}, OperandType{DType::kFloat32, true});
  x = both[0];
  ValueRef weights = both[1];
  const int rank = b.rank(x);
  if (!whole && b.rank(weights) != rank) {
    if (over.axes.size() != 1 || b.rank(weights) != 1)
      return c.Refuse("weights of several axes and another rank");
    std::vector<WantedDim> dims(rank, WantedDim(1));
    const int64_t axis = over.axes[0] < 0 ? over.axes[0] + rank : over.axes[0];
    if (axis < 0 || axis >= rank) c.Fail("an axis past the rank");
    if (!b.ok()) return {};
    dims[axis] = WantedDim(-1);
    weights = b.Reshape(weights, dims);
  }
  const ValueRef sum = b.Reduce("Sum", b.Mul(x, weights), over.axes, false);
  return b.Op("RealDiv", {sum, b.Reduce("Sum", weights, over.axes, false)});
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
  if (absl::StartsWith(name, "Nan") && b.Floating(x)) {
    // Keras makes infinities the greatest numbers there.
    const double most = b.dtype(x) == DType::kFloat16   ? 65504
                        : b.dtype(x) == DType::kFloat64 ? std::numeric_limits<double>::max()
                                                        : std::numeric_limits<float>::max();
    if (b.dtype(x) == DType::kBFloat16) return c.Refuse("bfloat16");
    x = Without(b, x, product ? 1 : 0);
    x = b.Op("Minimum",
             {b.Op("Maximum", {x, b.Scalar(b.dtype(x), -most)}), b.Scalar(b.dtype(x), most)});
  }
  if (dtype.has_value()) x = b.Cast(x, *dtype);
  if (IsKeras3(c) && b.dtype(x) == DType::kBool) x = b.Cast(x, DType::kInt32);
  if (whole) x = b.Reshape(x, {-1});
  return b.Op(product ? "Cumprod" : "Cumsum", {x, b.Int(whole ? 0 : axis)},
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
