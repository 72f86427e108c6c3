// Functions of mathematical physics, by Eigen in float64.
#include <cmath>
#include <limits>
#include <unsupported/Eigen/SpecialFunctions>

#include "kernels/cpu/elementwise/binary.h"
#include "kernels/cpu/elementwise/unary.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/run_watch.h"

namespace floe::kernels {
namespace {

namespace special = Eigen::numext;

// zeta(x, q) for a q far below 0, where Eigen adds a term for every integer up to 0. All but the
// last terms are the difference of two other values, since x is an integer there.
double Zeta(double x, double q) {
  constexpr double kFar = -64;
  if (!(q < kFar) || !(x > 1) || q == std::floor(q) || x != std::floor(x))
    return special::zeta(x, q);
  const double skipped = std::floor(kFar - q), near = q + skipped;
  const double far_terms = special::zeta(x, 1 - near) - special::zeta(x, 1 - q);
  return special::zeta(x, near) + (std::fmod(x, 2) == 0 ? far_terms : -far_terms);
}

double Polygamma(double n, double x) {
  if (!(n > 0) || n != std::floor(n)) return special::polygamma(n, x);
  const double factorial = std::exp(special::lgamma(n + 1));
  return (std::fmod(n, 2) == 0 ? -factorial : factorial) * Zeta(n + 1, x);
}

double Ndtri(double p) {
  if (!(p >= 0 && p <= 1)) return std::numeric_limits<double>::quiet_NaN();
  return special::ndtri(p);
}

#define FLOE_SPECIAL(NAME, FUNCTION) \
  FLOE_UNARY(NAME, Floats, static_cast<T>(special::FUNCTION(static_cast<double>(x))))
FLOE_SPECIAL(Lgamma, lgamma)
FLOE_SPECIAL(Digamma, digamma)
FLOE_UNARY(Ndtri, Floats, static_cast<T>(Ndtri(static_cast<double>(x))))
FLOE_SPECIAL(BesselI0, bessel_i0)
FLOE_SPECIAL(BesselI0e, bessel_i0e)
FLOE_SPECIAL(BesselI1, bessel_i1)
FLOE_SPECIAL(BesselI1e, bessel_i1e)
FLOE_SPECIAL(BesselJ0, bessel_j0)
FLOE_SPECIAL(BesselJ1, bessel_j1)
FLOE_SPECIAL(BesselK0, bessel_k0)
FLOE_SPECIAL(BesselK0e, bessel_k0e)
FLOE_SPECIAL(BesselK1, bessel_k1)
FLOE_SPECIAL(BesselK1e, bessel_k1e)
FLOE_SPECIAL(BesselY0, bessel_y0)
FLOE_SPECIAL(BesselY1, bessel_y1)
#undef FLOE_SPECIAL

using Singles = TypeList<float, double>;
FLOE_BINARY(Igamma, Floats, static_cast<T>(special::igamma<double>(a, b)))
FLOE_BINARY(Igammac, Floats, static_cast<T>(special::igammac<double>(a, b)))
FLOE_BINARY(Zeta, Singles, static_cast<T>(Zeta(a, b)))
FLOE_BINARY(Polygamma, Singles, static_cast<T>(Polygamma(a, b)))

// Inputs are scalars or of the output's shape.
template <class T>
absl::Status Betainc(const KernelContext& ctx) {
  const T* in[3];
  int64_t step[3];
  for (int i = 0; i < 3; ++i) {
    in[i] = ctx.in(i).as<T>();
    step[i] = ctx.in(i).shape == ctx.out(0).shape ? 1 : 0;
  }
  T* y = ctx.out(0).as<T>();
  return WatchedRange(ctx.pool, ctx.out(0).elements(), 256, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      y[i] = static_cast<T>(
          special::betainc<double>(in[0][i * step[0]], in[1][i * step[1]], in[2][i * step[2]]));
    }
  });
}
FLOE_REGISTER_KERNELS(Betainc, kCpu, MakeFunction<&Betainc<T>>, TypeList<float, double>);

}  // namespace
}  // namespace floe::kernels
