// Values between two ends, windows, and what is summed along a line.
#include <numbers>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "model/import/keras/operation.h"

namespace floe::keras {
namespace {

struct Space {
  ValueRef start, stop;
  int64_t count = 50, axis = 0;
  bool endpoint = true;
  DType dtype = DType::kFloat32;
};

Space ReadSpace(LayerContext& c) {
  const Operand start = OperandAt(c, 0, {"start"}), stop = OperandAt(c, 1, {"stop"});
  Space space;
  space.count = IntOption(c, {"num"}, 50);
  space.axis = IntOption(c, {"axis"}, 0);
  space.endpoint = BoolOption(c, {"endpoint"}, true);
  const std::optional<DType> named = TypeOption(c, {"dtype"});
  if (!start.present() || !stop.present()) c.Fail("it needs a start and a stop");
  constexpr int64_t kMost = 1 << 20;
  if (space.count < 1 || space.count > kMost) c.Fail(absl::StrCat("num is ", space.count));
  if (!c.b.ok()) return space;
  space.start = start.value;
  space.stop = stop.value;
  space.dtype = named.value_or(ResultType({{c.b.dtype(start.value), start.weak},
                                           {c.b.dtype(stop.value), stop.weak},
                                           {DType::kFloat32, true}}));
  if (!IsFloating(space.dtype)) c.Refuse("whole numbers between two ends");
  return space;
}

// As TensorFlow computes it: the two ends as they are, the others by steps from the start.
ValueRef Line(LayerContext& c, const Space& space) {
  GraphBuilder& b = c.b;
  if (!b.ok()) return {};
  const DType dtype = space.dtype;
  ValueRef start = b.Cast(space.start, dtype), stop = b.Cast(space.stop, dtype);
  const auto n = static_cast<double>(space.count);
  if (!space.endpoint && space.count > 1)
    stop = b.Sub(stop, b.Op("RealDiv", {b.Sub(stop, start), b.Scalar(dtype, n)}));
  // The ends may be of unlike shapes.
  const ValueRef zeros = b.Op("ZerosLike", {b.Cast(b.Add(start, stop), DType::kInt32)});
  const ValueRef nothing = b.Cast(zeros, dtype);
  start = b.Add(start, nothing);
  stop = b.Add(stop, nothing);
  const int rank = b.rank(start);
  int64_t axis = space.axis < 0 ? space.axis + rank + 1 : space.axis;
  if (b.ok() && (axis < 0 || axis > rank)) c.Fail("an axis past the rank");
  if (!b.ok()) return {};
  const int at = static_cast<int>(axis);
  const ValueRef first = b.ExpandDims(start, at), last = b.ExpandDims(stop, at);
  if (space.count == 1) return first;
  const ValueRef delta = b.Op("RealDiv", {b.Sub(last, first), b.Scalar(dtype, n - 1)});
  if (space.count == 2) return b.Concat({first, last}, at);
  const ValueRef steps =
      b.Cast(b.Op("Range", {b.Int64(1), b.Int64(space.count - 1), b.Int64(1)}), dtype);
  std::vector<WantedDim> dims(rank + 1, WantedDim(1));
  dims[axis] = WantedDim(space.count - 2);
  const ValueRef middle = b.Add(first, b.Mul(delta, b.Reshape(steps, dims)));
  return b.Concat({first, middle, last}, at);
}

KValue Linspace(LayerContext& c) {
  if (BoolOption(c, {"retstep"}, false)) return c.Refuse("retstep=True");
  return Line(c, ReadSpace(c));
}

KValue Logspace(LayerContext& c) {
  const double base = NumberOption(c, {"base"}, 10);
  const ValueRef line = Line(c, ReadSpace(c));
  return c.b.ok() ? KValue(c.b.Op("Pow", {c.b.Scalar(c.b.dtype(line), base), line})) : KValue();
}

KValue Geomspace(LayerContext& c) {
  GraphBuilder& b = c.b;
  Space space = ReadSpace(c);
  const DType dtype = TypeOption(c, {"dtype"}).value_or(DType::kFloat32);
  if (!b.ok()) return {};
  space.dtype = dtype;
  const ValueRef start = b.Cast(space.start, dtype);
  const ValueRef base = b.Op("Log", {b.Scalar(dtype, 10)});
  const auto exponent = [&](ValueRef v) {
    const ValueRef size = b.Cast(b.Op("Abs", {v}), dtype);
    return b.Op("RealDiv", {b.Op("Log", {size}), base});
  };
  space.start = exponent(space.start);
  space.stop = exponent(space.stop);
  const ValueRef line = Line(c, space);
  return b.Mul(b.Op("Pow", {b.Scalar(dtype, 10), line}), b.Op("Sign", {start}));
}

// ---- along a line ----

KValue Trapezoid(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef y = TensorAt(c, 0, {"y"});
  const Operand given = OperandAt(c, -1, {"x"});
  if (!given.present() && !c.config.At("x").is_null()) return c.Refuse("x as a constant");
  const double dx = NumberOption(c, {"dx"}, 1);
  const int64_t axis = IntOption(c, {"axis"}, -1);
  y = b.Cast(y, FloatingType(b.dtype(y)));
  const int rank = b.rank(y);
  const int at = static_cast<int>(axis < 0 ? axis + rank : axis);
  if (b.ok() && (at < 0 || at >= rank)) c.Fail("an axis past the rank");
  if (given.present() && at != rank - 1) return c.Refuse("x along an axis that is not the last");
  if (!b.ok()) return {};
  const auto after = [&](ValueRef v, int a) { return b.Slice(v, a, 1, GraphBuilder::kToEnd); };
  const auto before = [&](ValueRef v, int a) { return b.Slice(v, a, 0, -1); };
  const ValueRef heights = b.Mul(b.Add(after(y, at), before(y, at)), 0.5);
  if (!given.present()) return b.Reduce("Sum", b.Mul(heights, dx), {at}, false);
  const ValueRef x = b.Cast(given.value, b.dtype(y));
  return b.Reduce("Sum", b.Mul(heights, b.Sub(after(x, -1), before(x, -1))), {at}, false);
}

KValue Vander(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  int64_t n = 0;
  if (!ToInt(Option(c, {"N"}), &n)) n = b.Size(x, 0, "the number of elements");
  const bool increasing = BoolOption(c, {"increasing"}, false);
  constexpr int64_t kMost = 1 << 16;
  if (n < 0 || n > kMost) c.Fail(absl::StrCat("N is ", n));
  if (!b.ok()) return {};
  const DType dtype = ResultType({{b.dtype(x)}, {DType::kFloat32}});
  std::vector<int64_t> powers;
  for (int64_t k = 0; k < n; ++k) powers.push_back(increasing ? k : n - 1 - k);
  const ValueRef y =
      b.Op("Pow", {b.ExpandDims(b.Cast(x, dtype), -1), b.Cast(b.Ints(powers), dtype)});
  return b.Cast(y, b.dtype(x));
}

KValue Correlate(LayerContext& c) {
  GraphBuilder& b = c.b;
  const Operand given_x = Strong(c, OperandAt(c, 0, {"x1"})),
                given_y = Strong(c, OperandAt(c, 1, {"x2"}));
  const std::string mode = TextOption(c, {"mode"}, "valid");
  if (mode != "valid" && mode != "same" && mode != "full")
    c.Fail(absl::StrCat("mode ", Quoted(mode)));
  if (!given_x.present() || !given_y.present()) c.Fail("it needs two arguments");
  if (!b.ok()) return {};
  const std::vector<ValueRef> both = InOneType(c, {given_x, given_y});
  DType dtype = b.dtype(both[0]);
  if (dtype == DType::kInt64) dtype = DType::kFloat64;
  if (!IsFloating(dtype)) dtype = DType::kFloat32;
  const ValueRef x = b.Cast(both[0], dtype), y = b.Cast(both[1], dtype);
  const int64_t n = b.Size(x, 0, "the length"), m = b.Size(y, 0, "the length of the second");
  if (b.ok() && (b.rank(x) != 1 || b.rank(y) != 1)) c.Fail("vectors are needed");
  if (!b.ok()) return {};
  const int64_t pad = mode == "valid" ? 0 : m - 1;
  const ValueRef image = b.Reshape(b.Pad(x, {{pad, pad}}), {1, 1, n + 2 * pad, 1});
  const ValueRef z =
      b.Op("Conv2D", {image, b.Reshape(y, {1, m, 1, 1})},
           {{"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", std::string("VALID")}});
  const ValueRef line = b.Reshape(z, {-1});
  if (mode != "same") return line;
  const int64_t size = std::max(n, m), begin = (n + m - 1 - size) / 2;
  return b.Slice(line, 0, begin, begin + size);
}

KValue Corrcoef(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = FirstTensor(c);
  if (b.ok() && b.dtype(x) == DType::kInt64) return c.Refuse("int64");
  x = b.Cast(x, FloatingType(b.dtype(x)));
  if (b.ok() && b.rank(x) < 2) return c.Refuse("a correlation of one row");
  if (!b.ok()) return {};
  const DType dtype = b.dtype(x);
  const ValueRef centred = b.Sub(x, b.Reduce("Mean", x, {-1}, true));
  const ValueRef samples = b.Add(b.Cast(b.At(b.Op("Shape", {x}), 0, b.rank(x) - 1), dtype), -1);
  const ValueRef covariance = b.Op(
      "RealDiv",
      {b.Op("BatchMatMulV2", {centred, centred}, {{"adj_x", false}, {"adj_y", true}}), samples});
  if (b.rank(x) != 2) return c.Refuse("a correlation of more than a matrix");
  const ValueRef spread = b.Op("Sqrt", {b.Op("MatrixDiagPart", {covariance})});
  const ValueRef outer = b.Mul(b.ExpandDims(spread, 1), b.ExpandDims(spread, 0));
  const ValueRef y = b.Op("RealDiv", {covariance, outer});
  return b.Op("Minimum", {b.Op("Maximum", {y, b.Scalar(dtype, -1)}), b.Scalar(dtype, 1)});
}

const OperationRegistrar kSpaces[] = {{"Linspace", {}, Linspace},   {"Logspace", {}, Logspace},
                                      {"Geomspace", {}, Geomspace}, {"Trapezoid", {}, Trapezoid},
                                      {"Vander", {}, Vander},       {"Correlate", {}, Correlate},
                                      {"Corrcoef", {}, Corrcoef}};

}  // namespace
}  // namespace floe::keras
