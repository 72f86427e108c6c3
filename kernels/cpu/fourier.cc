// FFT and its relatives, computed in float64.
#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/fft.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/grid_copy.h"

namespace floe::kernels {
namespace {

using Complex = Fft::Complex;

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
