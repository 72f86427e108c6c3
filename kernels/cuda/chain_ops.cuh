// What the steps of a chain compute, with the meaning of kernels/cpu/elementwise.
#pragma once

#include "kernels/cuda/chain_args.h"
#include "kernels/cuda/functions.cuh"

namespace floe::cuda {

GPU_DEVICE float AsBool(bool condition) { return condition ? 1.0f : 0.0f; }

// Functions that are long: called, so that what calls them for several elements stays small.
GPU_DEVICE_CALL float SlowFunction(ChainOp op, float a, float b, float alpha) {
  switch (op) {
    case ChainOp::kPow:
      return functions::Pow(a, b);
    case ChainOp::kElu:
      return a < 0 ? Expm1(a) : a;
    case ChainOp::kSelu:
      return functions::Selu(a);
    case ChainOp::kSigmoid:
      return Sigmoid(a);
    case ChainOp::kTanh:
      return Tanh(a);
    case ChainOp::kExp:
      return Exp(a);
    case ChainOp::kExpm1:
      return Expm1(a);
    case ChainOp::kLog:
      return Log(a);
    case ChainOp::kLog1p:
      return Log1p(a);
    case ChainOp::kSoftplus:
      return Softplus(a);
    case ChainOp::kErf:
      return Erf(a);
    case ChainOp::kErfc:
      return Erfc(a);
    case ChainOp::kGelu:
      return functions::Gelu(a);
    case ChainOp::kGeluTanh:
      return functions::GeluTanh(a);
    case ChainOp::kMish:
      return functions::Mish(a);
    case ChainOp::kFloorDiv:
      return functions::Floor(Div(a, b));
    case ChainOp::kDivNoNan:
      return b == 0 ? 0.0f : Div(a, b);
    case ChainOp::kXdivy:
      return a == 0 ? 0.0f : Div(a, b);
    case ChainOp::kSoftsign:
      return Div(a, 1.0f + Abs(a));
    case ChainOp::kRsqrt:
      return Rsqrt(a);
    case ChainOp::kReciprocal:
      return Div(1.0f, a);
    case ChainOp::kRound:
      return functions::RoundToEven(a);
    case ChainOp::kSign:
      return a != a ? a : a > 0 ? 1.0f : a < 0 ? -1.0f : 0.0f;
    case ChainOp::kMulNoNan:
      return b == 0 ? 0.0f : a * b;
    case ChainOp::kIsInf:
      return AsBool(Abs(a) == Infinity());
    case ChainOp::kIsFinite:
      return AsBool(Abs(a) < Infinity());
    default:
      return a * alpha;
  }
}

GPU_DEVICE float FloatFunction(ChainOp op, float a, float b, float c, float alpha) {
  switch (op) {
    case ChainOp::kCopy:
      return a;
    case ChainOp::kAdd:
      return a + b;
    case ChainOp::kSub:
      return a - b;
    case ChainOp::kMul:
      return a * b;
    case ChainOp::kDiv:
      return Div(a, b);
    case ChainOp::kMaximum:
      return a >= b || a != a ? a : b;
    case ChainOp::kMinimum:
      return a <= b || a != a ? a : b;
    case ChainOp::kSquaredDifference:
      return (a - b) * (a - b);
    case ChainOp::kEqual:
      return AsBool(a == b);
    case ChainOp::kNotEqual:
      return AsBool(a != b);
    case ChainOp::kLess:
      return AsBool(a < b);
    case ChainOp::kLessEqual:
      return AsBool(a <= b);
    case ChainOp::kGreater:
      return AsBool(a > b);
    case ChainOp::kGreaterEqual:
      return AsBool(a >= b);
    case ChainOp::kAnd:
      return AsBool(a != 0 && b != 0);
    case ChainOp::kOr:
      return AsBool(a != 0 || b != 0);
    case ChainOp::kNot:
      return AsBool(a == 0);
    case ChainOp::kSelect:
      return a != 0 ? b : c;
    case ChainOp::kClip: {
      const float below = c < a ? c : a;
      return below < b ? b : below;
    }
    case ChainOp::kRelu:
      return a < 0 ? 0.0f : a;
    case ChainOp::kRelu6:
      return a < 0 ? 0.0f : a > 6 ? 6.0f : a;
    case ChainOp::kLeakyRelu:
      return a < 0 ? a * alpha : a;
    case ChainOp::kSqrt:
      return Sqrt(a);
    case ChainOp::kSquare:
      return a * a;
    case ChainOp::kNeg:
      return -a;
    case ChainOp::kAbs:
      return Abs(a);
    case ChainOp::kFloor:
      return functions::Floor(a);
    case ChainOp::kCeil:
      return functions::Ceil(a);
    case ChainOp::kIsNan:
      return AsBool(a != a);
    default:
      return SlowFunction(op, a, b, alpha);
  }
}

// Toward zero; what does not fit, and NaN, becomes the least number, as x86's conversions have it.
// Narrow types take the low bits of an int32.
GPU_DEVICE int64_t IntegerOf(float x, Element type) {
  const float limit =
      type == Element::kInt64 || type == Element::kUInt32 ? 9223372036854775808.0f : 2147483648.0f;
  if (x >= -limit && x < limit) return static_cast<int64_t>(x);
  if (limit > 2147483648.0f) return INT64_MIN;
  return INT32_MIN;
}

// The number that an integer of this type holds when it is given `x`.
GPU_DEVICE int64_t Cut(int64_t x, Element type) {
  switch (type) {
    case Element::kBool:
      return x & 1;
    case Element::kInt8:
      return static_cast<int8_t>(x);
    case Element::kInt16:
      return static_cast<int16_t>(x);
    case Element::kInt32:
      return static_cast<int32_t>(x);
    case Element::kUInt8:
      return static_cast<uint8_t>(x);
    case Element::kUInt16:
      return static_cast<uint16_t>(x);
    case Element::kUInt32:
      return static_cast<uint32_t>(x);
    default:
      return x;
  }
}

GPU_DEVICE int64_t Wrapped(uint64_t x) { return static_cast<int64_t>(x); }

GPU_DEVICE int64_t IntFunction(ChainOp op, int64_t a, int64_t b, int64_t c, Element type) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (op) {
    case ChainOp::kIntAdd:
      return Wrapped(ua + ub);
    case ChainOp::kIntSub:
      return Wrapped(ua - ub);
    case ChainOp::kIntMul:
      return Wrapped(ua * ub);
    case ChainOp::kIntMaximum:
      return a >= b ? a : b;
    case ChainOp::kIntMinimum:
      return a <= b ? a : b;
    case ChainOp::kIntSquaredDifference:
      return Wrapped((ua - ub) * (ua - ub));
    case ChainOp::kIntEqual:
      return a == b;
    case ChainOp::kIntNotEqual:
      return a != b;
    case ChainOp::kIntLess:
      return a < b;
    case ChainOp::kIntLessEqual:
      return a <= b;
    case ChainOp::kIntGreater:
      return a > b;
    case ChainOp::kIntGreaterEqual:
      return a >= b;
    case ChainOp::kIntAnd:
      return a & b;
    case ChainOp::kIntOr:
      return a | b;
    case ChainOp::kIntXor:
      return a ^ b;
    case ChainOp::kIntNot:
      return a == 0;
    case ChainOp::kIntInvert:
      return ~a;
    case ChainOp::kIntSelect:
      return a != 0 ? b : c;
    case ChainOp::kIntClip: {
      const int64_t below = c < a ? c : a;
      return below < b ? b : below;
    }
    case ChainOp::kIntRelu:
      return a < 0 ? 0 : a;
    case ChainOp::kIntRelu6:
      return a < 0 ? 0 : a > 6 ? 6 : a;
    case ChainOp::kIntSquare:
      return Wrapped(ua * ua);
    case ChainOp::kIntNeg:
      return Wrapped(0 - ua);
    case ChainOp::kIntAbs:
      return a < 0 ? Wrapped(0 - ua) : a;
    case ChainOp::kIntSign:
      return (a > 0) - (a < 0);
    case ChainOp::kToInt:
      return IntegerOf(FloatOfBits(static_cast<uint32_t>(ua)), type);
    case ChainOp::kToBool:
      return FloatOfBits(static_cast<uint32_t>(ua)) != 0;
    case ChainOp::kIntToBool:
      return a != 0;
    default:
      return a;
  }
}

}  // namespace floe::cuda
