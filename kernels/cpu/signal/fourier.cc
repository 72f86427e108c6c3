// FFT and its relatives, computed in float64.
#include <algorithm>
#include <complex>
#include <numbers>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cpu/run_watch.h"
#include "kernels/cpu/signal/fft.h"

namespace floe::kernels {
namespace {

using Complex = Fft::Complex;

using Dims = absl::InlinedVector<int64_t, 3>;

int64_t Product(const Dims& dims) {
  int64_t n = 1;
  for (int64_t dim : dims) n *= dim;
  return n;
}
// The last `n` dims, and how often they come.
Dims LastDims(const Shape& shape, int n) {
  const auto dims = shape.dims().last(static_cast<size_t>(n));
  return Dims(dims.begin(), dims.end());
}
int64_t CountOf(const Shape& shape, int n) {
  int64_t count = 1;
  for (int i = 0; i + n < shape.rank(); ++i) count *= shape.dim(i);
  return count;
}

// Along the first `axes` dims of a block of `dims`.
class Transform {
 public:
  Transform(const Dims& dims, int axes, double sign) : dims_(dims) {
    for (int axis = 0; axis < axes; ++axis)
      lines_.emplace_back(static_cast<size_t>(dims[axis]), sign);
  }

  void Run(BudgetVector<Complex>* data) {
    for (size_t axis = lines_.size(); axis-- > 0;) {
      const int64_t n = dims_[axis];
      if (n == 1) continue;
      int64_t step = 1;
      for (size_t k = axis + 1; k < dims_.size(); ++k) step *= dims_[k];
      line_.resize(static_cast<size_t>(n));
      const auto size = static_cast<int64_t>(data->size());
      for (int64_t block = 0; block < size; block += n * step) {
        for (int64_t first = block; first < block + step; ++first) {
          for (int64_t i = 0; i < n; ++i) line_[i] = (*data)[first + i * step];
          lines_[axis].Run(&line_);
          for (int64_t i = 0; i < n; ++i) (*data)[first + i * step] = line_[i];
        }
      }
    }
  }

 private:
  Dims dims_;
  std::vector<Fft> lines_;
  BudgetVector<Complex> line_;
};

template <int kDims, bool kForward, class C>
absl::Status ComplexFft(const KernelContext& ctx) {
  if (ctx.out(0).elements() == 0) return absl::OkStatus();
  const Dims dims = LastDims(ctx.in(0).shape, kDims);
  const int64_t n = Product(dims), count = CountOf(ctx.in(0).shape, kDims);
  BudgetVector<Complex> data(n);
  const double scale = kForward ? 1 : 1 / static_cast<double>(n);
  Transform transform(dims, kDims, kForward ? -1 : 1);
  RunWatch watch;
  for (int64_t k = 0; k < count && !watch.Stopped(); ++k) {
    const C* x = ctx.in(0).as<C>() + k * n;
    for (int64_t i = 0; i < n; ++i) data[i] = Complex(x[i].real(), x[i].imag());
    transform.Run(&data);
    C* y = ctx.out(0).as<C>() + k * n;
    for (int64_t i = 0; i < n; ++i) y[i] = C(data[i] * scale);
  }
  return watch.status();
}

// `to` becomes the block `from` with every dim cropped, or padded with zeros.
template <class From, class To>
void Resize(const From* from, const Dims& from_dims, To* to, const Dims& to_dims) {
  const int64_t n = to_dims.back(), line = from_dims.back(), kept = std::min(n, line);
  const int64_t lines = n == 0 ? 0 : Product(to_dims) / n;
  for (int64_t i = 0; i < lines; ++i, to += n) {
    int64_t rest = i, place = 0, step = line;
    bool inside = true;
    for (size_t axis = to_dims.size() - 1; axis-- > 0;) {
      const int64_t at = rest % to_dims[axis];
      rest /= to_dims[axis];
      inside = inside && at < from_dims[axis];
      place += at * step;
      step *= from_dims[axis];
    }
    const int64_t taken = inside ? kept : 0;
    for (int64_t k = 0; k < taken; ++k) to[k] = To(from[place + k]);
    std::fill(to + taken, to + n, To());
  }
}

absl::Status ReadLength(const KernelContext& ctx, size_t dims, Dims* length) {
  IntList values;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &values));
  if (values.size() != dims)
    return absl::InvalidArgumentError(absl::StrCat("fft_length has ", values.size(), " elements"));
  length->assign(values.begin(), values.end());
  return absl::OkStatus();
}

// RealFft of lines of an even length n: a line's even elements are the real parts and its odd ones
// the imaginary parts of a line half as long, whose spectrum is taken apart again.
template <class T>
absl::Status RealFftOfPairs(const KernelContext& ctx, int64_t n) {
  const int64_t half = n / 2, in = LastDims(ctx.in(0).shape, 1)[0],
                out = LastDims(ctx.out(0).shape, 1)[0], taken = std::min(in, n);
  Fft fft(static_cast<size_t>(half), -1);
  BudgetVector<Complex> data(half), roots(half + 1);
  for (int64_t k = 0; k <= half; ++k)
    roots[k] =
        std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n));
  const int64_t count = CountOf(ctx.in(0).shape, 1);
  RunWatch watch;
  for (int64_t line = 0; line < count && !watch.Stopped(); ++line) {
    const T* x = ctx.in(0).as<T>() + line * in;
    // By their parts, as in Fft.
    auto* z = reinterpret_cast<double*>(data.data());
    for (int64_t i = 0; i < taken; ++i) z[i] = static_cast<double>(x[i]);
    std::fill(z + taken, z + n, 0.0);
    fft.Run(&data);
    auto* y = reinterpret_cast<T*>(ctx.out(0).as<std::complex<T>>() + line * out);
    const auto* w = reinterpret_cast<const double*>(roots.data());
    const int64_t kept = std::min(out, half + 1);
    for (int64_t k = 0; k < kept; ++k) {
      const double *a = z + (k == half ? 0 : 2 * k), *b = z + (k == 0 ? 0 : 2 * (half - k));
      // Of the even elements (a + conj b) / 2, of the odd ones (a - conj b) / 2i.
      const double even_re = (a[0] + b[0]) / 2, even_im = (a[1] - b[1]) / 2,
                   odd_re = (a[1] + b[1]) / 2, odd_im = (b[0] - a[0]) / 2;
      const double re = w[2 * k], im = w[2 * k + 1];
      y[2 * k] = static_cast<T>(even_re + odd_re * re - odd_im * im);
      y[2 * k + 1] = static_cast<T>(even_im + odd_re * im + odd_im * re);
    }
    std::fill(y + 2 * kept, y + 2 * out, T(0));
  }
  return watch.status();
}

// The input is cropped or padded with zeros to fft_length; half of the spectrum is kept.
template <int kDims, class T>
absl::Status RealFft(const KernelContext& ctx) {
  Dims length;
  FLOE_RETURN_IF_ERROR(ReadLength(ctx, kDims, &length));
  if (ctx.out(0).elements() == 0) return absl::OkStatus();
  if (kDims == 1 && length[0] > 0 && length[0] % 2 == 0) return RealFftOfPairs<T>(ctx, length[0]);
  const Dims in = LastDims(ctx.in(0).shape, kDims), out = LastDims(ctx.out(0).shape, kDims);
  BudgetVector<Complex> data(Product(length));
  Transform transform(length, kDims, -1);
  const int64_t count = CountOf(ctx.in(0).shape, kDims);
  RunWatch watch;
  for (int64_t k = 0; k < count && !watch.Stopped(); ++k) {
    Resize(ctx.in(0).as<T>() + k * Product(in), in, data.data(), length);
    transform.Run(&data);
    Resize(data.data(), length, ctx.out(0).as<std::complex<T>>() + k * Product(out), out);
  }
  return watch.status();
}

// The half of the spectrum that was kept stands for all of it: the rest are conjugates, and what is
// its own conjugate has no imaginary part.
template <int kDims, class T>
absl::Status InverseRealFft(const KernelContext& ctx) {
  Dims length;
  FLOE_RETURN_IF_ERROR(ReadLength(ctx, kDims, &length));
  if (ctx.out(0).elements() == 0) return absl::OkStatus();
  const Dims in = LastDims(ctx.in(0).shape, kDims);
  const int64_t n = length.back(), half = n / 2 + 1, size = Product(length);
  Dims kept = length;
  kept.back() = half;
  BudgetVector<Complex> data(Product(kept)), line(n);
  Transform across(kept, kDims - 1, 1);
  Fft along(static_cast<size_t>(n), 1);
  const int64_t count = CountOf(ctx.in(0).shape, kDims);
  RunWatch watch;
  for (int64_t k = 0; k < count && !watch.Stopped(); ++k) {
    Resize(ctx.in(0).as<std::complex<T>>() + k * Product(in), in, data.data(), kept);
    across.Run(&data);
    T* y = ctx.out(0).as<T>() + k * size;
    for (int64_t r = 0; r < size / n; ++r) {
      for (int64_t i = 0; i < n; ++i)
        line[i] = i < half ? data[r * half + i] : std::conj(data[r * half + n - i]);
      line[0] = line[0].real();
      if (n % 2 == 0) line[n / 2] = line[n / 2].real();
      along.Run(&line);
      for (int64_t i = 0; i < n; ++i)
        y[r * n + i] = static_cast<T>(line[i].real() / static_cast<double>(size));
    }
  }
  return watch.status();
}

template <int kDims, class T>
void RegisterDims(const std::string& dims) {
  using C = std::complex<T>;
  const auto add = [&](const char* name, DType dtype, KernelFactory make) {
    KernelRegistrar(name + dims, DeviceKind::kCpu, {dtype}, make);
  };
  add("FFT", kDTypeOf<C>, &MakeFunction<&ComplexFft<kDims, true, C>>);
  add("IFFT", kDTypeOf<C>, &MakeFunction<&ComplexFft<kDims, false, C>>);
  add("RFFT", kDTypeOf<T>, &MakeFunction<&RealFft<kDims, T>>);
  add("IRFFT", kDTypeOf<C>, &MakeFunction<&InverseRealFft<kDims, T>>);
}
template <class T>
bool Register() {
  RegisterDims<1, T>("");
  RegisterDims<2, T>("2D");
  RegisterDims<3, T>("3D");
  return true;
}
const bool kFourierRegistered[] = {Register<float>(), Register<double>()};

}  // namespace
}  // namespace floe::kernels
