// FFT and its relatives, computed in float64. Powers of two by Cooley and Tukey's scheme, other
// lengths through a convolution of such a length (Bluestein).
#include <cmath>
#include <complex>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/grid_copy.h"

namespace floe::kernels {
namespace {

using Complex = std::complex<double>;
constexpr double kPi = 3.14159265358979323846;

// In place, n a power of two; sign -1 forward, +1 backward, unscaled.
void PowerOfTwoFft(std::vector<Complex>* data, double sign) {
  std::vector<Complex>& a = *data;
  const size_t n = a.size();
  for (size_t i = 1, j = 0; i < n; ++i) {
    size_t bit = n >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(a[i], a[j]);
  }
  for (size_t length = 2; length <= n; length *= 2) {
    const double angle = sign * 2 * kPi / static_cast<double>(length);
    for (size_t k = 0; k < length / 2; ++k) {
      const Complex w = std::polar(1.0, angle * static_cast<double>(k));
      for (size_t i = k; i < n; i += length) {
        const Complex u = a[i], v = a[i + length / 2] * w;
        a[i] = u + v;
        a[i + length / 2] = u - v;
      }
    }
  }
}

void AnyFft(std::vector<Complex>* data, double sign) {
  std::vector<Complex>& x = *data;
  const size_t n = x.size();
  if (n <= 1) return;
  if ((n & (n - 1)) == 0) return PowerOfTwoFft(data, sign);
  size_t m = 1;
  while (m < 2 * n) m *= 2;
  std::vector<Complex> chirp(n), a(m), b(m);
  for (size_t k = 0; k < n; ++k) {
    const auto square = static_cast<double>((static_cast<uint64_t>(k) * k) % (2 * n));
    chirp[k] = std::polar(1.0, sign * kPi * square / static_cast<double>(n));
    a[k] = x[k] * chirp[k];
    b[k] = std::conj(chirp[k]);
    if (k != 0) b[m - k] = b[k];
  }
  PowerOfTwoFft(&a, -1);
  PowerOfTwoFft(&b, -1);
  for (size_t k = 0; k < m; ++k) a[k] *= b[k];
  PowerOfTwoFft(&a, 1);
  for (size_t k = 0; k < n; ++k) x[k] = a[k] * chirp[k] / static_cast<double>(m);
}

// Both dims of `rows` x `cols`, or only the columns' one when rows is 1.
void Transform(std::vector<Complex>* data, int64_t rows, int64_t cols, double sign) {
  std::vector<Complex> line(cols);
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(data->begin() + r * cols, cols, line.begin());
    AnyFft(&line, sign);
    std::copy_n(line.begin(), cols, data->begin() + r * cols);
  }
  if (rows == 1) return;
  line.resize(rows);
  for (int64_t c = 0; c < cols; ++c) {
    for (int64_t r = 0; r < rows; ++r) line[r] = (*data)[r * cols + c];
    AnyFft(&line, sign);
    for (int64_t r = 0; r < rows; ++r) (*data)[r * cols + c] = line[r];
  }
}

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
  std::vector<Complex> data(n);
  const double scale = kForward ? 1 : 1 / static_cast<double>(n);
  for (int64_t k = 0; k < s.count && n > 0; ++k) {
    const C* x = ctx.in(0).as<C>() + k * n;
    for (int64_t i = 0; i < n; ++i) data[i] = Complex(x[i].real(), x[i].imag());
    Transform(&data, s.rows, s.cols, kForward ? -1 : 1);
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
  std::vector<Complex> data(rows * cols);
  for (int64_t k = 0; k < in.count; ++k) {
    const T* x = ctx.in(0).as<T>() + k * in.rows * in.cols;
    for (int64_t i = 0; i < rows * cols; ++i) {
      const int64_t r = i / cols, c = i % cols;
      data[i] = r < in.rows && c < in.cols ? Complex(x[r * in.cols + c]) : Complex();
    }
    Transform(&data, rows, cols, -1);
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
