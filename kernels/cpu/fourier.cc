// FFT and its relatives, computed in float64. Powers of two by Cooley and Tukey's scheme, other
// lengths through a convolution of such a length (Bluestein).
#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/grid_copy.h"

namespace floe::kernels {
namespace {

using Complex = std::complex<double>;
constexpr double kPi = 3.14159265358979323846;

// One length and direction (sign -1 forward, +1 backward), unscaled: roots and chirps are computed
// once for all lines.
class Fft {
 public:
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
    for (size_t k = 0; k < n_; ++k) work_[k] = x[k] * chirp_[k];
    PowerOfTwo(&work_, -1);
    for (size_t k = 0; k < padded_; ++k) work_[k] *= kernel_[k];
    PowerOfTwo(&work_, 1);
    for (size_t k = 0; k < n_; ++k) x[k] = work_[k] * chirp_[k] / static_cast<double>(padded_);
  }

 private:
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
    for (size_t length = 2; length <= n; length *= 2) {
      for (size_t first = 0; first < n; first += length) {
        for (size_t k = 0; k < length / 2; ++k) {
          const Complex root = roots_[k * (n / length)];
          const Complex w = sign < 0 ? root : std::conj(root);
          const Complex u = a[first + k], v = a[first + k + length / 2] * w;
          a[first + k] = u + v;
          a[first + k + length / 2] = u - v;
        }
      }
    }
  }

  size_t n_;
  double sign_;
  size_t padded_;
  BudgetVector<Complex> roots_, chirp_, kernel_, work_;
};

// Both dims of `rows` x `cols`, or only the columns' one when rows is 1.
class Transform {
 public:
  Transform(int64_t rows, int64_t cols, double sign)
      : rows_(rows),
        cols_(cols),
        across_(static_cast<size_t>(cols), sign),
        down_(static_cast<size_t>(rows), sign),
        line_(static_cast<size_t>(std::max(rows, cols))) {}

  void Run(BudgetVector<Complex>* data) {
    line_.resize(static_cast<size_t>(cols_));
    for (int64_t r = 0; r < rows_; ++r) {
      std::copy_n(data->begin() + r * cols_, cols_, line_.begin());
      across_.Run(&line_);
      std::copy_n(line_.begin(), cols_, data->begin() + r * cols_);
    }
    if (rows_ == 1) return;
    line_.resize(static_cast<size_t>(rows_));
    for (int64_t c = 0; c < cols_; ++c) {
      for (int64_t r = 0; r < rows_; ++r) line_[r] = (*data)[r * cols_ + c];
      down_.Run(&line_);
      for (int64_t r = 0; r < rows_; ++r) (*data)[r * cols_ + c] = line_[r];
    }
  }

 private:
  int64_t rows_, cols_;
  Fft across_, down_;
  BudgetVector<Complex> line_;
};

struct Sizes {
  int64_t count = 1, rows = 1, cols = 1;
};
Sizes SizesOf(const Shape& shape, int dims) {
  Sizes s;
  for (int i = 0; i < shape.rank() - dims; ++i) s.count *= shape.dim(i);
  if (dims == 2) s.rows = shape.dim(shape.rank() - 2);
  s.cols = shape.dim(shape.rank() - 1);
  return s;
}

template <int kDims, bool kForward, class C>
absl::Status ComplexFft(const KernelContext& ctx) {
  const Sizes s = SizesOf(ctx.in(0).shape, kDims);
  const int64_t n = s.rows * s.cols;
  if (ctx.out(0).elements() == 0) return absl::OkStatus();
  BudgetVector<Complex> data(n);
  const double scale = kForward ? 1 : 1 / static_cast<double>(n);
  Transform transform(s.rows, s.cols, kForward ? -1 : 1);
  for (int64_t k = 0; k < s.count; ++k) {
    const C* x = ctx.in(0).as<C>() + k * n;
    for (int64_t i = 0; i < n; ++i) data[i] = Complex(x[i].real(), x[i].imag());
    transform.Run(&data);
    C* y = ctx.out(0).as<C>() + k * n;
    for (int64_t i = 0; i < n; ++i) y[i] = C(data[i] * scale);
  }
  return absl::OkStatus();
}

// The input is cropped or padded with zeros to fft_length; half of the spectrum is kept.
template <int kDims, class T>
absl::Status RealFft(const KernelContext& ctx) {
  IntList length;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &length));
  if (length.size() != kDims)
    return absl::InvalidArgumentError(absl::StrCat("fft_length has ", length.size(), " elements"));
  const Sizes in = SizesOf(ctx.in(0).shape, kDims), out = SizesOf(ctx.out(0).shape, kDims);
  const int64_t rows = kDims == 2 ? length[0] : 1, cols = length[kDims - 1];
  if (ctx.out(0).elements() == 0) return absl::OkStatus();
  BudgetVector<Complex> data(rows * cols);
  Transform transform(rows, cols, -1);
  for (int64_t k = 0; k < in.count; ++k) {
    const T* x = ctx.in(0).as<T>() + k * in.rows * in.cols;
    for (int64_t i = 0; i < rows * cols; ++i) {
      const int64_t r = i / cols, c = i % cols;
      data[i] = r < in.rows && c < in.cols ? Complex(x[r * in.cols + c]) : Complex();
    }
    transform.Run(&data);
    auto* y = ctx.out(0).as<std::complex<T>>() + k * out.rows * out.cols;
    for (int64_t i = 0; i < out.rows * out.cols; ++i)
      y[i] = std::complex<T>(data[i / out.cols * cols + i % out.cols]);
  }
  return absl::OkStatus();
}

template <class T>
bool Register() {
  using C = std::complex<T>;
  KernelRegistrar("FFT", DeviceKind::kCpu, {kDTypeOf<C>}, &MakeFunction<&ComplexFft<1, true, C>>);
  KernelRegistrar("IFFT", DeviceKind::kCpu, {kDTypeOf<C>}, &MakeFunction<&ComplexFft<1, false, C>>);
  KernelRegistrar("FFT2D", DeviceKind::kCpu, {kDTypeOf<C>}, &MakeFunction<&ComplexFft<2, true, C>>);
  KernelRegistrar("IFFT2D", DeviceKind::kCpu, {kDTypeOf<C>},
                  &MakeFunction<&ComplexFft<2, false, C>>);
  KernelRegistrar("RFFT", DeviceKind::kCpu, {kDTypeOf<T>}, &MakeFunction<&RealFft<1, T>>);
  KernelRegistrar("RFFT2D", DeviceKind::kCpu, {kDTypeOf<T>}, &MakeFunction<&RealFft<2, T>>);
  return true;
}
const bool kRegistered[] = {Register<float>(), Register<double>()};

}  // namespace
}  // namespace floe::kernels
