// Functions of each element of one tensor that are made of several ops.
#include <cfloat>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "model/import/keras/operation.h"

namespace floe::keras {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool Complex(DType dtype) { return dtype == DType::kComplex64 || dtype == DType::kComplex128; }

// The first argument in the type of a function of real numbers. `wide`: int64 gives float64.
ValueRef Real(LayerContext& c, bool wide = false) {
  const ValueRef x = FirstTensor(c);
  const DType dtype = c.b.dtype(x);
  return Cast(c.b, x, wide && dtype == DType::kInt64 ? DType::kFloat64 : FloatingType(dtype));
}

// False for each element.
ValueRef Never(GraphBuilder& b, ValueRef x) {
  return b.Op("ZerosLike", {Cast(b, x, DType::kBool)});
}

KValue Fabs(LayerContext& c) { return c.b.Op("Abs", {Real(c)}); }

KValue Angle(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = Real(c);
  const DType dtype = b.dtype(x);
  if (Complex(dtype)) {
    const DType part = dtype == DType::kComplex64 ? DType::kFloat32 : DType::kFloat64;
    return b.Op("Angle", {x}, {{"T", dtype}, {"Tout", part}});
  }
  const ValueRef zero = b.Op("ZerosLike", {x});
  return b.Op("SelectV2", {b.Op("Less", {x, zero}), Scalar(b, dtype, std::numbers::pi), zero});
}

KValue Invert(LayerContext& c) { return c.b.Op("Invert", {FirstTensor(c)}); }

KValue Cbrt(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = Real(c, true);
  const ValueRef third = Scalar(b, b.dtype(x), 1.0 / 3.0);
  return Mul(b, b.Op("Sign", {x}), b.Op("Pow", {b.Op("Abs", {x}), third}));
}

KValue Conjugate(LayerContext& c) {
  const ValueRef x = FirstTensor(c);
  return c.b.Op(Complex(c.b.dtype(x)) ? "Conj" : "Identity", {x});
}

// The real or imaginary part.
KValue ElementPart(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  const bool real = OperationName(c) == "Real";
  const DType dtype = b.dtype(x);
  if (!Complex(dtype)) return b.Op(real ? "Identity" : "ZerosLike", {x});
  const DType part = dtype == DType::kComplex64 ? DType::kFloat32 : DType::kFloat64;
  return b.Op(real ? "Real" : "Imag", {x}, {{"T", dtype}, {"Tout", part}});
}

KValue Copy(LayerContext& c) { return c.b.Op("Identity", {FirstTensor(c)}); }

KValue Degrees(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = Real(c, true);
  const ValueRef pi = Scalar(b, b.dtype(x), std::numbers::pi), half = Scalar(b, b.dtype(x), 180);
  const bool to = OperationName(c) == "Rad2deg";
  return Mul(b, x, to ? b.Op("RealDiv", {half, pi}) : b.Op("RealDiv", {pi, half}));
}

KValue Exp2(LayerContext& c) {
  const ValueRef x = Real(c);
  return c.b.Op("Pow", {Scalar(c.b, c.b.dtype(x), 2), x});
}

KValue I0(LayerContext& c) { return c.b.Op("BesselI0", {Real(c, true)}); }

KValue IsInfinite(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  if (!Floating(b, x)) return Never(b, x);
  const double sign = OperationName(c) == "Isposinf" ? 1 : -1;
  return b.Op("Equal", {x, Scalar(b, b.dtype(x), sign * kInfinity)});
}

KValue IsReal(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  const DType dtype = b.dtype(x);
  if (!Complex(dtype)) return b.Op("OnesLike", {Cast(b, x, DType::kBool)});
  const DType part = dtype == DType::kComplex64 ? DType::kFloat32 : DType::kFloat64;
  return b.Op("Equal", {b.Op("Imag", {x}, {{"T", dtype}, {"Tout", part}}), Scalar(b, part, 0)});
}

KValue LogOfBase(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = Real(c);
  const double base = OperationName(c) == "Log2" ? 2 : 10;
  return b.Op("RealDiv", {b.Op("Log", {x}), b.Op("Log", {Scalar(b, b.dtype(x), base)})});
}

double GreatestOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 65504;
    case DType::kBFloat16:
      return 0x1.FEp127;
    case DType::kFloat32:
      return FLT_MAX;
    default:
      return DBL_MAX;
  }
}

KValue NanToNum(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = FirstTensor(c);
  const DType dtype = b.dtype(x);
  const double most = GreatestOf(dtype);
  const double nan = NumberOption(c, {"nan"}, 0), above = NumberOption(c, {"posinf"}, most),
               below = NumberOption(c, {"neginf"}, -most);
  if (!b.ok() || !Floating(b, x)) return x;
  x = b.Op("SelectV2", {b.Op("IsNan", {x}), Scalar(b, dtype, nan), x});
  const ValueRef up = b.Op("Equal", {x, Scalar(b, dtype, kInfinity)});
  x = b.Op("SelectV2", {up, Scalar(b, dtype, above), x});
  const ValueRef down = b.Op("Equal", {x, Scalar(b, dtype, -kInfinity)});
  return b.Op("SelectV2", {down, Scalar(b, dtype, below), x});
}

KValue Signbit(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  const DType dtype = b.dtype(x);
  if (dtype == DType::kBool) return Never(b, x);
  if (IsInteger(dtype)) return b.Op("Less", {x, Scalar(b, dtype, 0)});
  const ValueRef bits = b.Op("Bitcast", {Cast(b, x, DType::kFloat32)},
                             {{"T", DType::kFloat32}, {"type", DType::kInt32}});
  return b.Op("Less", {bits, Int(b, 0)});
}

KValue Sinc(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = Real(c), pi_x = Mul(b, x, std::numbers::pi);
  const ValueRef zero = b.Op("Equal", {x, Scalar(b, b.dtype(x), 0)});
  return b.Op("SelectV2",
              {zero, Scalar(b, b.dtype(x), 1), b.Op("RealDiv", {b.Op("Sin", {pi_x}), pi_x})});
}

KValue Trunc(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  if (!Floating(b, x)) return x;
  const ValueRef below = b.Op("Less", {x, Scalar(b, b.dtype(x), 0)});
  return b.Op("SelectV2", {below, b.Op("Ceil", {x}), b.Op("Floor", {x})});
}

const OperationRegistrar kMath[] = {{"Fabs", {}, Fabs},
                                    {"Angle", {"math.angle"}, Angle},
                                    {"BitwiseInvert", {"bitwise.invert"}, Invert},
                                    {"BitwiseNot", {}, Invert},
                                    {"Cbrt", {}, Cbrt},
                                    {"Conjugate", {}, Conjugate},
                                    {"Conj", {"math.conj"}, Conjugate},
                                    {"Real", {"math.real"}, ElementPart},
                                    {"Imag", {"math.imag"}, ElementPart},
                                    {"Copy", {}, Copy},
                                    {"Deg2rad", {}, Degrees},
                                    {"Rad2deg", {}, Degrees},
                                    {"Exp2", {}, Exp2},
                                    {"I0", {"math.bessel_i0"}, I0},
                                    {"Isneginf", {}, IsInfinite},
                                    {"Isposinf", {}, IsInfinite},
                                    {"Isreal", {}, IsReal},
                                    {"Log10", {}, LogOfBase},
                                    {"Log2", {}, LogOfBase},
                                    {"NanToNum", {}, NanToNum},
                                    {"Signbit", {}, Signbit},
                                    {"Sinc", {}, Sinc},
                                    {"Trunc", {}, Trunc}};

}  // namespace
}  // namespace floe::keras
