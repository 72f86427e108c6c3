// Functions that are defined by integrals: the exponential integral, Dawson's, Fresnel's and
// Spence's, in float64.
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

#include "kernels/cpu/elementwise/unary.h"

namespace floe::kernels {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double Expint(double x) { return x < 0 ? kNan : std::expint(x); }

// Rybicki's sum over odd multiples of a step, whose error is exp(-(pi / 2 step)^2); far from 0 the
// asymptotic series.
double Dawson(double x) {
  const double a = std::abs(x);
  if (std::isnan(x) || a == 0) return x;
  constexpr double kFar = 10, kStep = 0.2, kReach = 6.5;
  double sum = 0;
  if (a < kFar) {
    for (int n = 1; n * kStep < a + kReach; n += 2) {
      const double away = a - n * kStep;
      sum -= std::exp(-away * away) * std::expm1(-4 * n * kStep * a) / n;
    }
    return std::copysign(sum / std::sqrt(std::numbers::pi), x);
  }
  double term = 0.5 / a;
  for (int n = 1; term > sum * 1e-17; n += 2) {
    sum += term;
    term *= n / (2 * a * a);
  }
  return std::copysign(sum, x);
}

// S is the imaginary part, C the real one. Near 0 the power series of both, else the continued
// fraction of the complementary error function, to which they belong, by Lentz's method.
std::complex<double> Fresnel(double x) {
  const double a = std::abs(x);
  constexpr double kNear = 1.5, kFlat = 36974, kEnough = 1e-17;
  if (std::isnan(x)) return {x, x};
  if (a > kFlat) return {std::copysign(0.5, x), std::copysign(0.5, x)};
  double real = 0, imaginary = 0;
  const double quarter = std::numbers::pi / 2 * a * a;
  if (a < kNear) {
    double term = a;  // (pi x^2 / 2)^n / n! with the sign of i^n
    for (int n = 0; std::abs(term) > kEnough * a; ++n) {
      (n % 2 == 0 ? real : imaginary) += (n % 4 < 2 ? term : -term) / (2 * n + 1);
      term *= quarter / (n + 1);
    }
  } else {
    std::complex<double> b(1, -2 * quarter), c(1e300, 0), d = 1.0 / b, h = d;
    constexpr int kMostSteps = 500;
    for (int k = 1; k < kMostSteps; ++k) {
      const double numerator = -(2.0 * k - 1) * (2.0 * k);
      b += 4;
      d = 1.0 / (numerator * d + b);
      c = b + numerator / c;
      const std::complex<double> change = c * d;
      h *= change;
      if (std::abs(change.real() - 1) + std::abs(change.imag()) < kEnough * 10) break;
    }
    h *= std::complex<double>(a, -a);
    const std::complex<double> turn(std::cos(quarter), std::sin(quarter));
    const std::complex<double> both = std::complex<double>(0.5, 0.5) * (1.0 - turn * h);
    real = both.real(), imaginary = both.imag();
  }
  return {std::copysign(real, x), std::copysign(imaginary, x)};
}

// The dilogarithm of 1 - x, by Bernoulli's numbers in the logarithm of x.
double Spence(double x) {
  constexpr double kAtZero = std::numbers::pi * std::numbers::pi / 6;
  if (!(x >= 0)) return kNan;
  if (x == 0) return kAtZero;
  if (x < 0.5) return kAtZero - std::log(x) * std::log1p(-x) - Spence(1 - x);
  if (std::isinf(x)) return -x;
  if (x > 2) return -0.5 * std::log(x) * std::log(x) - Spence(1 / x);
  constexpr double kBernoulli[] = {1.0 / 36,
                                   -1.0 / 3600,
                                   1.0 / 211680,
                                   -1.0 / 10886400,
                                   1.0 / 526901760,
                                   -4.0647616451442255e-11,
                                   8.9216910204564526e-13,
                                   -1.9939295860721076e-14,
                                   4.5189800296199182e-16};
  const double u = -std::log1p(x - 1);
  double sum = u - u * u / 4, power = u;
  for (const double factor : kBernoulli) sum += factor * (power *= u * u);
  return sum;
}

#define FLOE_INTEGRAL(NAME, EXPRESSION)           \
  FLOE_UNARY(NAME, Floats, ([](double value) {    \
               return static_cast<T>(EXPRESSION); \
             }(static_cast<double>(static_cast<Compute<T>>(x)))))
FLOE_INTEGRAL(Expint, Expint(value))
FLOE_INTEGRAL(Dawsn, Dawson(value))
FLOE_INTEGRAL(FresnelCos, Fresnel(value).real())
FLOE_INTEGRAL(FresnelSin, Fresnel(value).imag())
FLOE_INTEGRAL(Spence, Spence(value))
#undef FLOE_INTEGRAL

}  // namespace
}  // namespace floe::kernels
