// Functions of two tensors, element by element, that are made of several ops.
#include <cmath>
#include <string>

#include "model/import/keras/operation.h"

namespace floe::keras {
namespace {

struct Pair {
  ValueRef x, y;
};

bool Unsigned(DType dtype) {
  return dtype == DType::kUInt8 || dtype == DType::kUInt16 || dtype == DType::kUInt32 ||
         dtype == DType::kUInt64;
}

// Both arguments in one type. `strong`: mere numbers are tensors of int32 or float32. `floating`:
// whole numbers meet a float. `wide`: whole numbers become float32, int64 float64.
Pair Both(LayerContext& c, bool strong, bool floating = false, bool wide = false) {
  Operand x = OperandAt(c, 0, {"x1", "x", "a"}), y = OperandAt(c, 1, {"x2", "y", "b"});
  if (!x.present() || !y.present()) c.Fail("it needs two arguments");
  if (!c.b.ok()) return {};
  if (strong) {
    x = Strong(c, x);
    y = Strong(c, y);
  }
  std::optional<OperandType> also;
  if (floating) also = {DType::kFloat32, true};
  const std::vector<ValueRef> both = InOneType(c, {x, y}, also);
  if (!c.b.ok() || !wide || Floating(c.b, both[0])) return {both[0], both[1]};
  const DType to = c.b.dtype(both[0]) == DType::kInt64 ? DType::kFloat64 : DType::kFloat32;
  return {Cast(c.b, both[0], to), Cast(c.b, both[1], to)};
}

KValue Bitwise(LayerContext& c) {
  const Pair p = Both(c, true);
  return c.b.Op(OperationName(c), {p.x, p.y});
}

// A mere number of places takes the type of what it shifts.
KValue Shift(LayerContext& c) {
  GraphBuilder& b = c.b;
  const Operand places = OperandAt(c, 1, {"y"});
  Pair p;
  if (places.weak) {
    p.x = TensorAt(c, 0, {"x"});
    p.y = Cast(b, places.value, b.dtype(p.x));
  } else {
    p = Both(c, true);
  }
  const std::string name = OperationName(c);
  const bool left = name == "LeftShift" || name == "BitwiseLeftShift";
  return b.Op(left ? "LeftShift" : "RightShift", {p.x, p.y});
}

// The greater or smaller one, where NaN gives way to a number.
KValue ExtremeNumber(LayerContext& c) {
  GraphBuilder& b = c.b;
  const Pair p = Both(c, false);
  const ValueRef z = b.Op(OperationName(c) == "Fmax" ? "Maximum" : "Minimum", {p.x, p.y});
  if (!b.ok() || !Floating(b, z)) return z;
  const ValueRef either = b.Op("SelectV2", {b.Op("IsNan", {p.y}), p.x, z});
  return b.Op("SelectV2", {b.Op("IsNan", {p.x}), p.y, either});
}

KValue Fmod(LayerContext& c) {
  GraphBuilder& b = c.b;
  const Pair p = Both(c, true);
  DType dtype = b.dtype(p.x);
  if (dtype == DType::kBool) dtype = DType::kInt32;
  const DType computed = Unsigned(dtype) ? DType::kInt32 : dtype;
  const ValueRef x = Cast(b, p.x, computed), y = Cast(b, p.y, computed);
  const ValueRef rest = b.Op("FloorMod", {b.Op("Abs", {x}), b.Op("Abs", {y})});
  return Cast(b, Mul(b, b.Op("Sign", {x}), rest), dtype);
}

KValue LogAddExp(LayerContext& c) {
  GraphBuilder& b = c.b;
  const Pair p = Both(c, true, true);
  const ValueRef delta = Sub(b, p.x, p.y);
  ValueRef away = b.Op("Neg", {b.Op("Abs", {delta})});
  const bool two = OperationName(c) == "Logaddexp2";
  const ValueRef log2 = Cast(b, b.Op("Log", {Scalar(b, DType::kFloat32, 2)}), b.dtype(delta));
  if (two) away = Mul(b, away, log2);
  ValueRef more = b.Op("Log1p", {b.Op("Exp", {away})});
  if (two) more = b.Op("RealDiv", {more, log2});
  const ValueRef sum = Add(b, b.Op("Maximum", {p.x, p.y}), more);
  return b.Op("SelectV2", {b.Op("IsNan", {delta}), Add(b, p.x, p.y), sum});
}

KValue Hypot(LayerContext& c) {
  GraphBuilder& b = c.b;
  const Pair p = Both(c, true, false, true);
  const ValueRef x = b.Op("Abs", {p.x}), y = b.Op("Abs", {p.y});
  const ValueRef most = b.Op("Maximum", {x, y});
  const ValueRef ratio = b.Op("DivNoNan", {b.Op("Minimum", {x, y}), most});
  return Mul(b, most, b.Op("Sqrt", {Add(b, b.Op("Square", {ratio}), 1)}));
}

KValue Heaviside(LayerContext& c) {
  GraphBuilder& b = c.b;
  const Pair p = Both(c, true, false, true);
  const ValueRef zero = Scalar(b, b.dtype(p.x), 0), one = Scalar(b, b.dtype(p.x), 1);
  const ValueRef above = b.Op("SelectV2", {b.Op("Greater", {p.x, zero}), one, p.y});
  return b.Op("SelectV2", {b.Op("Less", {p.x, zero}), zero, above});
}

KValue NextAfter(LayerContext& c) {
  GraphBuilder& b = c.b;
  const Pair p = Both(c, true, true);
  // Keras steps in float64, which a narrower type seldom shows. The arguments themselves are cast
  // there, and not by way of the result's type.
  const ValueRef x = TensorAt(c, 0, {"x1"}), y = TensorAt(c, 1, {"x2"});
  const ValueRef next =
      b.Op("NextAfter", {Cast(b, x, DType::kFloat64), Cast(b, y, DType::kFloat64)});
  return Cast(b, next, b.dtype(p.x));
}

// Steps after which Euclid's algorithm has ended for numbers of this size.
int EuclidSteps(DType dtype) {
  switch (DTypeSize(dtype)) {
    case 1:
      return 13;
    case 2:
      return 25;
    case 4:
      return 48;
    default:
      return 93;
  }
}

ValueRef GcdOf(GraphBuilder& b, ValueRef x, ValueRef y) {
  const DType dtype = b.dtype(x);
  const ValueRef zero = Scalar(b, dtype, 0), one = Scalar(b, dtype, 1);
  // The loop's values have the shape of both together.
  const ValueRef nothing = Mul(b, Mul(b, x, y), zero);
  x = Add(b, x, nothing);
  y = Add(b, y, nothing);
  for (int k = EuclidSteps(dtype); k > 0 && b.ok(); --k) {
    const ValueRef ended = b.Op("Equal", {y, zero});
    const ValueRef rest = b.Op("FloorMod", {x, b.Op("SelectV2", {ended, one, y})});
    x = b.Op("SelectV2", {ended, x, y});
    y = b.Op("SelectV2", {ended, zero, rest});
  }
  return x;
}

KValue CommonFactor(LayerContext& c) {
  GraphBuilder& b = c.b;
  Pair p = Both(c, true);
  if (b.ok() && !IsInteger(b.dtype(p.x))) c.Fail("its arguments must be whole numbers");
  const DType dtype = b.dtype(p.x);
  if (!Unsigned(dtype)) p = {b.Op("Abs", {p.x}), b.Op("Abs", {p.y})};
  const ValueRef factor = GcdOf(b, p.x, p.y);
  if (OperationName(c) == "Gcd") return factor;
  const ValueRef zero = Scalar(b, dtype, 0), none = b.Op("Equal", {factor, zero});
  const ValueRef divisor = b.Op("SelectV2", {none, Scalar(b, dtype, 1), factor});
  const ValueRef multiple = Mul(b, p.x, b.Op("FloorDiv", {p.y, divisor}));
  return b.Op("SelectV2", {none, zero, multiple});
}

KValue Ldexp(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef exponent = TensorAt(c, 1, {"x2"});
  const Pair p = Both(c, true, true);
  if (b.ok() && !IsInteger(b.dtype(exponent))) c.Fail("the exponent must be a whole number");
  const DType dtype = b.dtype(p.x);
  const ValueRef y = Mul(b, p.x, b.Op("Pow", {Scalar(b, dtype, 2), p.y}));
  const ValueRef same =
      b.Op("LogicalOr", {b.Op("IsInf", {p.x}), b.Op("Equal", {p.x, Scalar(b, dtype, 0)})});
  return b.Op("SelectV2", {same, p.x, y});
}

// A number that is an option or an argument by its position.
double NumberAt(LayerContext& c, int i, const char* name, double otherwise) {
  const KValue& value = c.Arg(i, name);
  if (value.kind == KValue::Kind::kJson && value.json->is_number())
    return value.json->get<double>();
  if (value.is_tensor()) c.Refuse(std::string("a computed ") + name);
  return NumberOption(c, {name}, otherwise);
}

KValue IsClose(LayerContext& c) {
  GraphBuilder& b = c.b;
  const Pair p = Both(c, true);
  const double rtol = NumberAt(c, 2, "rtol", 1e-5), atol = NumberAt(c, 3, "atol", 1e-8);
  const bool equal_nan = BoolOption(c, {"equal_nan"}, false);
  const bool all = OperationName(c) == "AllClose";
  if (!b.ok()) return {};
  ValueRef close = b.Op("Equal", {p.x, p.y});
  if (Floating(b, p.x)) {
    const ValueRef bound = Add(b, Mul(b, b.Op("Abs", {p.y}), rtol), atol);
    ValueRef near = b.Op("LessEqual", {b.Op("Abs", {Sub(b, p.x, p.y)}), bound});
    if (all) {
      const ValueRef finite =
          b.Op("LogicalAnd", {b.Op("IsFinite", {p.x}), b.Op("IsFinite", {p.y})});
      near = b.Op("LogicalOr", {b.Op("LogicalAnd", {finite, near}), close});
    }
    close = near;
    if (equal_nan)
      close = b.Op("LogicalOr",
                   {close, b.Op("LogicalAnd", {b.Op("IsNan", {p.x}), b.Op("IsNan", {p.y})})});
  }
  if (!all) return close;
  std::vector<int64_t> axes;
  axes.reserve(Rank(b, close));
  for (int k = 0; k < Rank(b, close); ++k) axes.push_back(k);
  return Reduce(b, "All", close, axes, false);
}

const OperationRegistrar kPairs[] = {{"BitwiseAnd", {"bitwise.bitwise_and"}, Bitwise},
                                     {"BitwiseOr", {"bitwise.bitwise_or"}, Bitwise},
                                     {"BitwiseXor", {"bitwise.bitwise_xor"}, Bitwise},
                                     {"LeftShift", {"bitwise.left_shift"}, Shift},
                                     {"RightShift", {"bitwise.right_shift"}, Shift},
                                     {"BitwiseLeftShift", {}, Shift},
                                     {"BitwiseRightShift", {}, Shift},
                                     {"Fmax", {}, ExtremeNumber},
                                     {"Fmin", {}, ExtremeNumber},
                                     {"Fmod", {}, Fmod},
                                     {"Logaddexp", {}, LogAddExp},
                                     {"Logaddexp2", {}, LogAddExp},
                                     {"Hypot", {}, Hypot},
                                     {"Heaviside", {}, Heaviside},
                                     {"Nextafter", {}, NextAfter},
                                     {"Gcd", {}, CommonFactor},
                                     {"Lcm", {}, CommonFactor},
                                     {"Ldexp", {}, Ldexp},
                                     {"Isclose", {}, IsClose},
                                     {"AllClose", {}, IsClose}};

}  // namespace
}  // namespace floe::keras
