// The discrete Fourier transform of one line, in float64. Powers of two by Cooley and Tukey's
// scheme, other lengths through a convolution of such a length (Bluestein).
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <utility>

#include "base/budget.h"

namespace floe::kernels {

// One length and direction (sign -1 forward, +1 backward), unscaled: roots and chirps are computed
// once for all lines.
class Fft {
 public:
  using Complex = std::complex<double>;

  Fft(size_t n, double sign) : n_(n), sign_(sign), padded_(1) {
    const bool direct = (n & (n - 1)) == 0;
    while (padded_ < (direct ? n : 2 * n)) padded_ *= 2;
    roots_.resize(padded_ / 2);
    for (size_t k = 0; k < roots_.size(); ++k)
      roots_[k] = std::polar(1.0, -2 * kPi * static_cast<double>(k) / static_cast<double>(padded_));
    if (direct) return;
    chirp_.resize(n);
    work_.resize(padded_);
    kernel_.resize(padded_);
    for (size_t k = 0; k < n; ++k) {
      const auto square = static_cast<double>((static_cast<uint64_t>(k) * k) % (2 * n));
      chirp_[k] = std::polar(1.0, sign * kPi * square / static_cast<double>(n));
      kernel_[k] = std::conj(chirp_[k]);
      if (k != 0) kernel_[padded_ - k] = kernel_[k];
    }
    PowerOfTwo(&kernel_, -1);
  }

  // In place; `line` has n elements.
  void Run(BudgetVector<Complex>* line) {
    if (n_ <= 1) return;
    if (chirp_.empty()) return PowerOfTwo(line, sign_);
    BudgetVector<Complex>& x = *line;
    std::fill(work_.begin(), work_.end(), Complex());
    for (size_t k = 0; k < n_; ++k) work_[k] = Times(x[k], chirp_[k]);
    PowerOfTwo(&work_, -1);
    for (size_t k = 0; k < padded_; ++k) work_[k] = Times(work_[k], kernel_[k]);
    PowerOfTwo(&work_, 1);
    for (size_t k = 0; k < n_; ++k)
      x[k] = Times(work_[k], chirp_[k]) / static_cast<double>(padded_);
  }

 private:
  static constexpr double kPi = 3.14159265358979323846;

  // The operator of std::complex looks for infinities, which takes longer than the product.
  static Complex Times(Complex a, Complex b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }

  // padded_ elements.
  void PowerOfTwo(BudgetVector<Complex>* data, double sign) const {
    BudgetVector<Complex>& a = *data;
    const size_t n = padded_;
    for (size_t i = 1, j = 0; i < n; ++i) {
      size_t bit = n >> 1;
      for (; (j & bit) != 0; bit >>= 1) j ^= bit;
      j ^= bit;
      if (i < j) std::swap(a[i], a[j]);
    }
    // By their parts: values of std::complex would go through memory.
    const auto* roots = reinterpret_cast<const double*>(roots_.data());
    for (size_t length = 2; length <= n; length *= 2) {
      const size_t step = 2 * (n / length);
      for (size_t first = 0; first < n; first += length) {
        auto* low = reinterpret_cast<double*>(&a[first]);
        double* high = low + length;
        for (size_t k = 0; k < length / 2; ++k, low += 2, high += 2) {
          const double re = roots[k * step], im = -sign * roots[k * step + 1];
          const double v_re = high[0] * re - high[1] * im, v_im = high[0] * im + high[1] * re;
          const double u_re = low[0], u_im = low[1];
          low[0] = u_re + v_re;
          low[1] = u_im + v_im;
          high[0] = u_re - v_re;
          high[1] = u_im - v_im;
        }
      }
    }
  }

  size_t n_;
  double sign_;
  size_t padded_;
  BudgetVector<Complex> roots_, chirp_, kernel_, work_;
};

}  // namespace floe::kernels
