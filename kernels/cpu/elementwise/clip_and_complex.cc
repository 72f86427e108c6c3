// Numbers clipped, put together and taken apart.
#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <unsupported/Eigen/SpecialFunctions>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/elementwise/binary.h"
#include "kernels/cpu/elementwise/broadcast.h"
#include "kernels/cpu/elementwise/unary.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"

namespace floe::kernels {
namespace {

using Singles = TypeList<float, double>;

template <class T>
absl::Status Clip(const KernelContext& ctx) {
  using C = Compute<T>;
  const TensorView& x = ctx.in(0);
  int64_t step[3] = {1, 0, 0};
  for (int i = 1; i < 3; ++i) {
    const Shape& bound = ctx.in(i).shape;
    if (bound.rank() != 0 && bound != x.shape)
      return absl::InvalidArgumentError(absl::StrCat(
          "clip_value_min and clip_value_max must be either of the same shape as input, or a "
          "scalar: shape ",
          bound.ToString(), " for ", x.shape.ToString()));
    step[i] = bound.rank() == 0 ? 0 : 1;
  }
  for (int64_t i = 0; i < x.elements(); ++i) {
    const auto value = static_cast<C>(x.as<T>()[i]),
               low = static_cast<C>(ctx.in(1).as<T>()[i * step[1]]),
               high = static_cast<C>(ctx.in(2).as<T>()[i * step[2]]);
    const C below = high < value ? high : value;
    ctx.out(0).as<T>()[i] = static_cast<T>(below < low ? low : below);
  }
  return absl::OkStatus();
}
FLOE_REGISTER_KERNELS(ClipByValue, kCpu, MakeFunction<&Clip<T>>, Reals);

template <class T>
absl::Status JoinComplex(const KernelContext& ctx) {
  const auto b = MakeBroadcast<2>(ctx.out(0).shape, {&ctx.in(0).shape, &ctx.in(1).shape});
  const int64_t step_a = b.strides[0].back(), step_b = b.strides[1].back();
  ForEachRun(b, ctx.pool, [&](int64_t at, const std::array<int64_t, 2>& in, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      ctx.out(0).as<std::complex<T>>()[at + i] = {ctx.in(0).as<T>()[in[0] + i * step_a],
                                                  ctx.in(1).as<T>()[in[1] + i * step_b]};
    }
  });
  return absl::OkStatus();
}
FLOE_REGISTER_KERNELS(Complex, kCpu, MakeFunction<&JoinComplex<T>>, TypeList<float, double>);

double Erfinv(double x) {
  if (!(x >= -1 && x <= 1)) return std::numeric_limits<double>::quiet_NaN();
  return Eigen::numext::ndtri(0.5 * x + 0.5) * M_SQRT1_2;
}

FLOE_UNARY(Angle, Complexes, std::arg(x))
FLOE_UNARY(Erfinv, Singles, static_cast<T>(Erfinv(static_cast<double>(x))))
FLOE_UNARY(PopulationCount, Integers,
           static_cast<uint8_t>(std::popcount(static_cast<std::make_unsigned_t<T>>(x))))
FLOE_BINARY(MulNoNan, FloatsAndComplexes, b == T(0) ? T(0) : a * b)
FLOE_BINARY(NextAfter, Singles, std::nextafter(a, b))

template <class T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeApproximate(const KernelArgs& args) {
  const float tolerance = args.node.attrs.Float("tolerance", 1e-5f);
  return FromFunction([tolerance](const KernelContext& ctx) -> absl::Status {
    using C = Compute<T>;
    if (ctx.in(0).shape != ctx.in(1).shape)
      return absl::InvalidArgumentError(absl::StrCat("x and y must be of the same shape, they are ",
                                                     ctx.in(0).shape.ToString(), " and ",
                                                     ctx.in(1).shape.ToString()));
    for (int64_t i = 0; i < ctx.in(0).elements(); ++i) {
      const auto a = static_cast<C>(ctx.in(0).as<T>()[i]), b = static_cast<C>(ctx.in(1).as<T>()[i]);
      ctx.out(0).as<bool>()[i] = std::abs(a - b) < static_cast<C>(tolerance);
    }
    return absl::OkStatus();
  });
}
FLOE_REGISTER_KERNELS(ApproximateEqual, kCpu, MakeApproximate<T>, TypeList<float, double>);

absl::Status Bitcast(const KernelContext& ctx) {
  if (ctx.in(0).bytes() != ctx.out(0).bytes())
    return absl::InvalidArgumentError(
        absl::StrCat("cannot cast the bits of ", DTypeName(ctx.in(0).dtype), " of shape ",
                     ctx.in(0).shape.ToString(), " to ", DTypeName(ctx.out(0).dtype)));
  if (ctx.in(0).bytes() > 0)
    std::memcpy(ctx.out(0).as<std::byte>(), ctx.in(0).as<std::byte>(), ctx.in(0).bytes());
  return absl::OkStatus();
}
FLOE_REGISTER_KERNEL(Bitcast, kCpu, MakeFunction<&Bitcast>);

template <class T>
absl::Status HalfSquares(const KernelContext& ctx) {
  double sum = 0;
  for (int64_t i = 0; i < ctx.in(0).elements(); ++i) {
    const auto x = static_cast<double>(static_cast<Compute<T>>(ctx.in(0).as<T>()[i]));
    sum += x * x;
  }
  *ctx.out(0).as<T>() = static_cast<T>(static_cast<Compute<T>>(sum / 2));
  return absl::OkStatus();
}
FLOE_REGISTER_KERNELS(L2Loss, kCpu, MakeFunction<&HalfSquares<T>>, Floats);

template <class T>
absl::Status BroadcastArgs(const KernelContext& ctx) {
  const TensorView &a = ctx.in(0), &b = ctx.in(1), &out = ctx.out(0);
  const int64_t rank = out.elements();
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t at_a = i - (rank - a.elements()), at_b = i - (rank - b.elements());
    const T x = at_a < 0 ? T(1) : a.as<T>()[at_a], y = at_b < 0 ? T(1) : b.as<T>()[at_b];
    if (x != y && x != 1 && y != 1)
      return absl::InvalidArgumentError(
          absl::StrCat("shapes with the dims ", x, " and ", y, " cannot be broadcast together"));
    out.as<T>()[i] = x == 1 ? y : x;
  }
  return absl::OkStatus();
}
FLOE_REGISTER_KERNEL(BroadcastArgs, kCpu, MakeFunction<&BroadcastArgs<int32_t>>, DType::kInt32);
FLOE_REGISTER_KERNEL(BroadcastArgs, kCpu, MakeFunction<&BroadcastArgs<int64_t>>, DType::kInt64);

absl::Status Diag(const KernelContext& ctx) {
  const TensorView &in = ctx.in(0), &out = ctx.out(0);
  const int64_t count = in.elements(), size = static_cast<int64_t>(DTypeSize(in.dtype));
  if (out.bytes() > 0) std::memset(out.as<char>(), 0, out.bytes());
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(out.as<char>() + i * (count + 1) * size, in.as<char>() + i * size, size);
  return absl::OkStatus();
}
absl::Status DiagPart(const KernelContext& ctx) {
  const TensorView &in = ctx.in(0), &out = ctx.out(0);
  const int64_t count = out.elements(), size = static_cast<int64_t>(DTypeSize(in.dtype));
  for (int i = 0; i < out.shape.rank(); ++i) {
    if (in.shape.dim(i) != in.shape.dim(i + out.shape.rank()))
      return absl::InvalidArgumentError(
          absl::StrCat("input has shape ", in.shape.ToString(), ", expected the same dims twice"));
  }
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(out.as<char>() + i * size, in.as<char>() + i * (count + 1) * size, size);
  return absl::OkStatus();
}
FLOE_REGISTER_KERNELS(Diag, kCpu, MakeFunction<&Diag>, Numbers);
FLOE_REGISTER_KERNELS(DiagPart, kCpu, MakeFunction<&DiagPart>, Numbers);

}  // namespace
}  // namespace floe::kernels
