// Cast between all number types and bool.
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cpu/parallel.h"
#include "kernels/elementwise.h"

namespace floe::kernels {
namespace {

using Castable =
    TypeList<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
             uint32_t, uint64_t, bool, std::complex<float>, std::complex<double>>;

// Toward zero; what does not fit (and NaN) becomes the least integer, as x86's conversions have it.
// Narrow types take the low bits of an int32.
template <class To, class From>
To ToInteger(From x) {
  if constexpr (std::is_same_v<To, uint64_t>) {
    if (x >= From(9223372036854775808.0) && x < From(18446744073709551616.0))
      return static_cast<To>(x);
    return static_cast<To>(ToInteger<int64_t>(x));
  } else if constexpr (std::is_same_v<To, uint32_t>) {
    return static_cast<To>(ToInteger<int64_t>(x));
  } else if constexpr (sizeof(To) < sizeof(int32_t)) {
    return static_cast<To>(ToInteger<int32_t>(x));
  } else {
    constexpr From kLeast = static_cast<From>(std::numeric_limits<To>::min());
    if (!(x >= kLeast && x < -kLeast)) return std::numeric_limits<To>::min();
    return static_cast<To>(x);
  }
}

template <class To, class From>
To Convert(From value) {
  if constexpr (kIsComplex<From>) {
    if constexpr (kIsComplex<To>)
      return To(value);
    else
      return Convert<To>(value.real());
  } else if constexpr (kIsHalf<From>) {
    return Convert<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (kIsComplex<To>) {
    return To(static_cast<typename To::value_type>(value));
  } else if constexpr (kIsHalf<To>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return ToInteger<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

using Loop = void (*)(const void* from, void* to, int64_t n);

template <class To, class From>
void ConvertLoop(const void* from, void* to, int64_t n) {
  const From* x = static_cast<const From*>(from);
  To* y = static_cast<To*>(to);
  for (int64_t i = 0; i < n; ++i) y[i] = Convert<To>(x[i]);
}

class CastKernel : public ElementwiseKernel {
 public:
  CastKernel(Loop loop, DType from) : loop_(loop), from_(from) {}
  absl::Status Run(const KernelContext& ctx) const override {
    const TensorView &in = ctx.in(0), &out = ctx.out(0);
    const auto in_size = static_cast<int64_t>(DTypeSize(in.dtype)),
               out_size = static_cast<int64_t>(DTypeSize(out.dtype));
    ParallelRange(ctx.pool, out.elements(), kElementGrain, [&](int64_t begin, int64_t end) {
      void* to = out.as<char>() + begin * out_size;
      if (loop_ == nullptr) {
        CopyElements(out.dtype, in.as<char>() + begin * in_size, to, end - begin);
      } else {
        loop_(in.as<char>() + begin * in_size, to, end - begin);
      }
    });
    return absl::OkStatus();
  }

  bool RunTile(absl::Span<const TileOperand> in, void* out, int64_t n) const override {
    if (loop_ == nullptr) {
      CopyElements(from_, in[0].data, out, n);
    } else {
      loop_(in[0].data, out, n);
    }
    return true;
  }

 private:
  Loop loop_;  // null: the types are equal
  DType from_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeCast(const KernelArgs& args) {
  const DType from = args.inputs[0].type.dtype, to = args.node.attrs.Type("DstT");
  if (from == to) return std::make_unique<CastKernel>(nullptr, from);
  Loop loop = nullptr;
  ForDType(from, Castable{}, [&](auto f) {
    ForDType(to, Castable{}, [&](auto t) { loop = &ConvertLoop<decltype(t), decltype(f)>; });
  });
  if (loop == nullptr)
    return absl::UnimplementedError(
        absl::StrCat("Cast from ", DTypeName(from), " to ", DTypeName(to)));
  return std::make_unique<CastKernel>(loop, from);
}
FLOE_REGISTER_KERNEL(Cast, kCpu, MakeCast);

}  // namespace
}  // namespace floe::kernels
