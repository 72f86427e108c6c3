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
  ValueRef start = Cast(b, space.start, dtype), stop = Cast(b, space.stop, dtype);
  const auto n = static_cast<double>(space.count);
  if (!space.endpoint && space.count > 1)
    stop = Sub(b, stop, b.Op("RealDiv", {Sub(b, stop, start), Scalar(b, dtype, n)}));
  // The ends may be of unlike shapes.
  const ValueRef zeros = b.Op("ZerosLike", {Cast(b, Add(b, start, stop), DType::kInt32)});
  const ValueRef nothing = Cast(b, zeros, dtype);
  start = Add(b, start, nothing);
  stop = Add(b, stop, nothing);
  const int rank = Rank(b, start);
  int64_t axis = space.axis < 0 ? space.axis + rank + 1 : space.axis;
  if (b.ok() && (axis < 0 || axis > rank)) c.Fail("an axis past the rank");
  if (!b.ok()) return {};
  const int at = static_cast<int>(axis);
  const ValueRef first = ExpandDims(b, start, at), last = ExpandDims(b, stop, at);
  if (space.count == 1) return first;
  const ValueRef delta = b.Op("RealDiv", {Sub(b, last, first), Scalar(b, dtype, n - 1)});
  if (space.count == 2) return Concat(b, {first, last}, at);
  const ValueRef steps =
      Cast(b, b.Op("Range", {Int64(b, 1), Int64(b, space.count - 1), Int64(b, 1)}), dtype);
  std::vector<WantedDim> dims(rank + 1, WantedDim(1));
  dims[axis] = WantedDim(space.count - 2);
  const ValueRef middle = Add(b, first, Mul(b, delta, Reshape(b, steps, dims)));
  return Concat(b, {first, middle, last}, at);
}

KValue Linspace(LayerContext& c) {
  if (BoolOption(c, {"retstep"}, false)) return c.Refuse("retstep=True");
  return Line(c, ReadSpace(c));
}

KValue Logspace(LayerContext& c) {
  const double base = NumberOption(c, {"base"}, 10);
  const ValueRef line = Line(c, ReadSpace(c));
  return c.b.ok() ? KValue(c.b.Op("Pow", {Scalar(c.b, c.b.dtype(line), base), line})) : KValue();
}

KValue Geomspace(LayerContext& c) {
  GraphBuilder& b = c.b;
  Space space = ReadSpace(c);
  const DType dtype = TypeOption(c, {"dtype"}).value_or(DType::kFloat32);
  if (!b.ok()) return {};
  space.dtype = dtype;
  const ValueRef start = Cast(b, space.start, dtype);
  const ValueRef base = b.Op("Log", {Scalar(b, dtype, 10)});
  const auto exponent = [&](ValueRef v) {
    const ValueRef size = Cast(b, b.Op("Abs", {v}), dtype);
    return b.Op("RealDiv", {b.Op("Log", {size}), base});
  };
  space.start = exponent(space.start);
  space.stop = exponent(space.stop);
  const ValueRef line = Line(c, space);
  return Mul(b, b.Op("Pow", {Scalar(b, dtype, 10), line}), b.Op("Sign", {start}));
}

// ---- along a line ----

KValue Trapezoid(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef y = TensorAt(c, 0, {"y"});
  const Operand given = OperandAt(c, -1, {"x"});
  if (!given.present() && !c.config.At("x").is_null()) return c.Refuse("x as a constant");
  const double dx = NumberOption(c, {"dx"}, 1);
  const int64_t axis = IntOption(c, {"axis"}, -1);
  y = Cast(b, y, FloatingType(b.dtype(y)));
  const int rank = Rank(b, y);
  const int at = static_cast<int>(axis < 0 ? axis + rank : axis);
  if (b.ok() && (at < 0 || at >= rank)) c.Fail("an axis past the rank");
  if (given.present() && at != rank - 1) return c.Refuse("x along an axis that is not the last");
  if (!b.ok()) return {};
  const auto after = [&](ValueRef v, int a) { return Slice(b, v, a, 1, build::kToEnd); };
  const auto before = [&](ValueRef v, int a) { return Slice(b, v, a, 0, -1); };
  const ValueRef heights = Mul(b, Add(b, after(y, at), before(y, at)), 0.5);
  if (!given.present()) return Reduce(b, "Sum", Mul(b, heights, dx), {at}, false);
  const ValueRef x = Cast(b, given.value, b.dtype(y));
  return Reduce(b, "Sum", Mul(b, heights, Sub(b, after(x, -1), before(x, -1))), {at}, false);
}

KValue Vander(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  int64_t n = 0;
  if (!ToInt(Option(c, {"N"}), &n)) n = SizeOf(b, x, 0, "the number of elements");
  const bool increasing = BoolOption(c, {"increasing"}, false);
  constexpr int64_t kMost = 1 << 16;
  if (n < 0 || n > kMost) c.Fail(absl::StrCat("N is ", n));
  if (!b.ok()) return {};
  const DType dtype = ResultType({{b.dtype(x)}, {DType::kFloat32}});
  std::vector<int64_t> powers;
  for (int64_t k = 0; k < n; ++k) powers.push_back(increasing ? k : n - 1 - k);
  const ValueRef y =
      b.Op("Pow", {ExpandDims(b, Cast(b, x, dtype), -1), Cast(b, Ints(b, powers), dtype)});
  return Cast(b, y, b.dtype(x));
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
  const ValueRef x = Cast(b, both[0], dtype), y = Cast(b, both[1], dtype);
  const int64_t n = SizeOf(b, x, 0, "the length"), m = SizeOf(b, y, 0, "the length of the second");
  if (b.ok() && (Rank(b, x) != 1 || Rank(b, y) != 1)) c.Fail("vectors are needed");
  if (!b.ok()) return {};
  const int64_t pad = mode == "valid" ? 0 : m - 1;
  const ValueRef image = Reshape(b, Pad(b, x, {{pad, pad}}), {1, 1, n + 2 * pad, 1});
  const ValueRef z =
      b.Op("Conv2D", {image, Reshape(b, y, {1, m, 1, 1})},
           {{"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", std::string("VALID")}});
  const ValueRef line = Reshape(b, z, {-1});
  if (mode != "same") return line;
  const int64_t size = std::max(n, m), begin = (n + m - 1 - size) / 2;
  return Slice(b, line, 0, begin, begin + size);
}

KValue Corrcoef(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = FirstTensor(c);
  if (b.ok() && b.dtype(x) == DType::kInt64) return c.Refuse("int64");
  x = Cast(b, x, FloatingType(b.dtype(x)));
  if (b.ok() && Rank(b, x) < 2) return c.Refuse("a correlation of one row");
  const DType dtype = b.dtype(x);
  const ValueRef centred = Sub(b, x, Reduce(b, "Mean", x, {-1}, true));
  const ValueRef samples = Add(b, Cast(b, At(b, b.Op("Shape", {x}), 0, Rank(b, x) - 1), dtype), -1);
  const ValueRef covariance = b.Op(
      "RealDiv",
      {b.Op("BatchMatMulV2", {centred, centred}, {{"adj_x", false}, {"adj_y", true}}), samples});
  if (Rank(b, x) != 2) return c.Refuse("a correlation of more than a matrix");
  const ValueRef spread = b.Op("Sqrt", {b.Op("MatrixDiagPart", {covariance})});
  const ValueRef outer = Mul(b, ExpandDims(b, spread, 1), ExpandDims(b, spread, 0));
  const ValueRef y = b.Op("RealDiv", {covariance, outer});
  return b.Op("Minimum", {b.Op("Maximum", {y, Scalar(b, dtype, -1)}), Scalar(b, dtype, 1)});
}

const OperationRegistrar kSpaces[] = {{"Linspace", {}, Linspace},   {"Logspace", {}, Logspace},
                                      {"Geomspace", {}, Geomspace}, {"Trapezoid", {}, Trapezoid},
                                      {"Vander", {}, Vander},       {"Correlate", {}, Correlate},
                                      {"Corrcoef", {}, Corrcoef}};

}  // namespace
}  // namespace floe::keras
