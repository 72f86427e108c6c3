// Element-wise ops of one input: float32 by the ISA functions where they exist, every other type by
// one template.
#include "kernels/cpu/elementwise/unary.h"

#include <cmath>
#include <limits>

#include "kernels/cpu/gemm/activation.h"
#include "kernels/cpu/parallel.h"

namespace floe::kernels {
namespace {

class UnaryKernel : public ElementwiseKernel {
 public:
  UnaryKernel(UnaryLoop loop, UnaryF32 fast, float alpha)
      : loop_(loop), fast_(fast), alpha_(alpha) {}

  absl::Status Run(const KernelContext& ctx) const override {
    const TensorView &in = ctx.in(0), &out = ctx.out(0);
    const auto* x = static_cast<const char*>(in.data);
    auto* y = static_cast<char*>(out.data);
    const size_t in_size = DTypeSize(in.dtype), out_size = DTypeSize(out.dtype);
    ParallelRange(ctx.pool, out.elements(), kElementGrain, [&](int64_t begin, int64_t end) {
      Map(x + begin * in_size, y + begin * out_size, end - begin);
    });
    return absl::OkStatus();
  }

  bool RunTile(absl::Span<const TileOperand> in, void* out, int64_t n) const override {
    Map(in[0].data, out, n);
    return true;
  }

 private:
  void Map(const void* from, void* to, int64_t n) const {
    if (fast_ != nullptr) {
      fast_(static_cast<const float*>(from), static_cast<float*>(to), static_cast<size_t>(n),
            alpha_);
    } else {
      loop_(from, to, n, alpha_);
    }
  }

  UnaryLoop loop_;
  UnaryF32 fast_;
  float alpha_;
};

}  // namespace

std::unique_ptr<Kernel> MakeUnaryKernel(UnaryLoop loop, UnaryF32 fast, float alpha) {
  return std::make_unique<UnaryKernel>(loop, fast, alpha);
}

namespace {

// Not 0 - x, which makes +0 of +0.
template <class T>
T Negated(T x) {
  if constexpr (std::is_integral_v<T>)
    return WrapSub(T(0), x);
  else
    return -x;
}

template <class T>
T ExpMinusOne(T x) {
  if constexpr (kIsComplex<T>)
    return std::exp(x) - T(1);
  else
    return std::expm1(x);
}
template <class T>
T LogOnePlus(T x) {
  if constexpr (kIsComplex<T>)
    return std::log(T(1) + x);
  else
    return std::log1p(x);
}

// Integers narrower than int become int in arithmetic; T(...) brings them back.
FLOE_UNARY(Relu, Reals, x < T(0) ? T(0) : x)
FLOE_UNARY(Relu6, Reals, x<T(0) ? T(0) : x> T(6) ? T(6) : x)
FLOE_UNARY(Elu, Floats, x < T(0) ? std::expm1(x) : x)
FLOE_UNARY(Selu, Floats,
           x < T(0) ? T(1.7580993408473768599402175208123) * std::expm1(x)
                    : T(1.0507009873554804934193349852946) * x)
FLOE_UNARY(Sigmoid, FloatsAndComplexes, T(1) / (T(1) + std::exp(-x)))
FLOE_UNARY(Tanh, FloatsAndComplexes, std::tanh(x))
FLOE_UNARY(Exp, FloatsAndComplexes, std::exp(x))
FLOE_UNARY(Expm1, FloatsAndComplexes, ExpMinusOne(x))
FLOE_UNARY(Log, FloatsAndComplexes, std::log(x))
FLOE_UNARY(Log1p, FloatsAndComplexes, LogOnePlus(x))
FLOE_UNARY(Sqrt, FloatsAndComplexes, std::sqrt(x))
FLOE_UNARY(Rsqrt, FloatsAndComplexes, T(1) / std::sqrt(x))
FLOE_UNARY(Square, Numbers, WrapMul(x, x))
FLOE_UNARY(Neg, Numbers, Negated(x))
FLOE_UNARY(Abs, Reals, x < T(0) || x == T(0) ? WrapSub(T(0), x) : x)
FLOE_UNARY(Softplus, Floats, (x > T(0) ? x : T(0)) + std::log1p(std::exp(-std::abs(x))))
FLOE_UNARY(Softsign, Floats, x / (T(1) + std::abs(x)))
FLOE_UNARY(Erf, Floats, std::erf(x))
FLOE_UNARY(Erfc, Floats, std::erfc(x))
FLOE_UNARY(Gelu, Floats, GeluPlain(x))
FLOE_UNARY(GeluTanh, Floats, GeluTanhPlain(x))
FLOE_UNARY(Mish, Floats, MishPlain(x))
FLOE_UNARY(Floor, Floats, std::floor(x))
FLOE_UNARY(Ceil, Floats, std::ceil(x))
FLOE_UNARY(Rint, Floats, std::nearbyint(x))
FLOE_UNARY(Sin, FloatsAndComplexes, std::sin(x))
FLOE_UNARY(Cos, FloatsAndComplexes, std::cos(x))
FLOE_UNARY(Tan, FloatsAndComplexes, std::tan(x))
FLOE_UNARY(Asin, FloatsAndComplexes, std::asin(x))
FLOE_UNARY(Acos, FloatsAndComplexes, std::acos(x))
FLOE_UNARY(Atan, FloatsAndComplexes, std::atan(x))
FLOE_UNARY(Sinh, FloatsAndComplexes, std::sinh(x))
FLOE_UNARY(Cosh, FloatsAndComplexes, std::cosh(x))
FLOE_UNARY(Asinh, FloatsAndComplexes, std::asinh(x))
FLOE_UNARY(Acosh, FloatsAndComplexes, std::acosh(x))
FLOE_UNARY(Atanh, FloatsAndComplexes, std::atanh(x))
FLOE_UNARY(Reciprocal, FloatsAndComplexes, T(1) / x)
FLOE_UNARY(LogicalNot, Booleans, !x)
FLOE_UNARY(Invert, Integers, T(~x))
FLOE_UNARY(IsNan, Floats, std::isnan(x))
FLOE_UNARY(IsInf, Floats, std::isinf(x))
FLOE_UNARY(IsFinite, Floats, std::isfinite(x))
FLOE_UNARY(ComplexAbs, Complexes, std::abs(x))
FLOE_UNARY(Real, Complexes, x.real())
FLOE_UNARY(Imag, Complexes, x.imag())
FLOE_UNARY(Conj, Complexes, std::conj(x))

struct SignOp {
  template <class T>
  static T Do(T x) {
    if constexpr (kIsComplex<T>) {
      return x == T(0) ? T(0) : x / std::abs(x);
    } else if constexpr (std::is_floating_point_v<T>) {
      return std::isnan(x) ? x : T((x > 0) - (x < 0));
    } else {
      return T((x > T(0)) - (x < T(0)));
    }
  }
};
const RegisterUnary kSign("Sign", SignOp{}, Numbers{});

// Half to even; integers are round already.
struct RoundOp {
  template <class T>
  static T Do(T x) {
    if constexpr (std::is_floating_point_v<T>) return std::nearbyint(x);
    return x;
  }
};
const RegisterUnary kRound("Round", RoundOp{}, Reals{});

struct LeakyReluOp {
  template <class T>
  static T Do(T x, float alpha) {
    return x < T(0) ? x * T(alpha) : x;
  }
};
const RegisterUnary kLeakyRelu("LeakyRelu", LeakyReluOp{}, Floats{});

}  // namespace
}  // namespace floe::kernels
