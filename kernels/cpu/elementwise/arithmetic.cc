// Arithmetic of two inputs with TensorFlow's meaning of integer division, remainders and NaN.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/cpu/elementwise/binary.h"

namespace floe::kernels {
namespace {

// Of complex numbers the square of the absolute value, as a complex number.
template <class T>
T SquaredSize(T d) {
  if constexpr (kIsComplex<T>)
    return std::conj(d) * d;
  else
    return WrapMul(d, d);
}

FLOE_BINARY(Add, Numbers, WrapAdd(a, b))
FLOE_BINARY(Sub, Numbers, WrapSub(a, b))
FLOE_BINARY(Mul, Numbers, WrapMul(a, b))
FLOE_BINARY(Maximum, Reals, a >= b || a != a ? a : b)
FLOE_BINARY(Minimum, Reals, a <= b || a != a ? a : b)
FLOE_BINARY(SquaredDifference, Numbers, SquaredSize(WrapSub(a, b)))
FLOE_BINARY(DivNoNan, FloatsAndComplexes, b == T(0) ? T(0) : a / b)
// Where the factor is 0 so is the product, whatever the other operand.
FLOE_BINARY(Xdivy, FloatsAndComplexes, a == T(0) ? T(0) : a / b)
FLOE_BINARY(Xlogy, FloatsAndComplexes, a == T(0) ? T(0) : a * std::log(b))
FLOE_BINARY(Xlog1py, Floats, a == T(0) ? T(0) : a * std::log1p(b))
FLOE_BINARY(Atan2, Floats, std::atan2(a, b))

// The least integer divided by -1 does not fit; like TensorFlow's on x86 it would trap, so it
// wraps.
template <class T>
T Quotient(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    if (b == T(-1)) return WrapSub(T(0), a);
  }
  return static_cast<T>(a / b);
}
template <class T>
T Remainder(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    if (b == T(-1)) return T(0);
  }
  return static_cast<T>(a % b);
}

// Op::Real for floating types; Op::Whole for integers, with divisors of 0 refused.
template <class Op>
struct Dividing {
  static constexpr const char* kFailure = "integer division by zero";
  template <class T>
  static T Do(T a, T b, bool* failed) {
    if constexpr (std::is_integral_v<T>) {
      if (b == T(0)) {
        *failed = true;
        return T(0);
      }
      return Op::Whole(a, b);
    } else {
      return Op::Real(a, b);
    }
  }
};

struct Truncating {
  template <class T>
  static T Whole(T a, T b) {
    return Quotient(a, b);
  }
  template <class T>
  static T Real(T a, T b) {
    return a / b;
  }
};
const RegisterBinary kRealDiv("RealDiv", Dividing<Truncating>{}, Numbers{});
const RegisterBinary kTruncateDiv("TruncateDiv", Dividing<Truncating>{}, Integers{});

struct Flooring {
  template <class T>
  static T Whole(T a, T b) {
    const T q = Quotient(a, b);
    return Remainder(a, b) != T(0) && (a < T(0)) != (b < T(0)) ? T(q - 1) : q;
  }
  template <class T>
  static T Real(T a, T b) {
    return std::floor(a / b);
  }
};
using WideReals = TypeList<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
                           uint32_t, uint64_t>;
const RegisterBinary kFloorDiv("FloorDiv", Dividing<Flooring>{}, WideReals{});

// TensorFlow rounds the quotient to the narrow type before it takes the floor.
template <class Narrow>
struct NarrowFloorDiv {
  static constexpr const char* kFailure = "";
  static float Do(float a, float b) { return std::floor(static_cast<float>(Narrow(a / b))); }
};
const RegisterBinary kHalfFloorDiv("FloorDiv", NarrowFloorDiv<Half>{}, TypeList<Half>{});
const RegisterBinary kBFloat16FloorDiv("FloorDiv", NarrowFloorDiv<BFloat16>{},
                                       TypeList<BFloat16>{});

struct FloorRemainder {
  template <class T>
  static T Whole(T a, T b) {
    const T r = Remainder(a, b);
    return r != T(0) && (r < T(0)) != (b < T(0)) ? T(r + b) : r;
  }
  template <class T>
  static T Real(T a, T b) {
    const T r = std::fmod(a, b);
    return r != T(0) && (r < T(0)) != (b < T(0)) ? r + b : r;
  }
};
const RegisterBinary kFloorMod("FloorMod", Dividing<FloorRemainder>{}, Reals{});

struct TruncateRemainder {
  template <class T>
  static T Whole(T a, T b) {
    return Remainder(a, b);
  }
  template <class T>
  static T Real(T a, T b) {
    return std::fmod(a, b);
  }
};
const RegisterBinary kTruncateMod("TruncateMod", Dividing<TruncateRemainder>{}, Reals{});

struct PowOp {
  static constexpr const char* kFailure = "integers to negative integer powers are not allowed";
  template <class T>
  static T Do(T a, T b, bool* failed) {
    if constexpr (std::is_integral_v<T>) {
      if (b < T(0)) {
        *failed = true;
        return T(0);
      }
      T result = 1;
      for (uint64_t rest = static_cast<std::make_unsigned_t<T>>(b); rest != 0; rest >>= 1) {
        if ((rest & 1) != 0) result = WrapMul(result, a);
        a = WrapMul(a, a);
      }
      return result;
    } else {
      return std::pow(a, b);
    }
  }
};
const RegisterBinary kPow("Pow", PowOp{}, Numbers{});

// The bias runs along the last dim, or along dim 1 in NCHW.
absl::StatusOr<std::unique_ptr<Kernel>> MakeBiasAdd(const KernelArgs& args) {
  const bool nchw = args.node.attrs.String("data_format", "NHWC") == "NCHW";
  std::unique_ptr<Kernel> kernel;
  const bool found = ForDType(args.inputs[0].type.dtype, Numbers{}, [&](auto t) {
    using T = decltype(t);
    const BinaryF32Set fast = std::is_same_v<T, float> ? FindBinaryF32("Add") : BinaryF32Set{};
    kernel = MakeBinaryKernel(&BinaryOf<AddOp, T>::Run, fast, "", nchw);
  });
  if (!found)
    return absl::UnimplementedError(std::string("BiasAdd of ") +
                                    DTypeName(args.inputs[0].type.dtype));
  return kernel;
}
FLOE_REGISTER_KERNEL(BiasAdd, kCpu, MakeBiasAdd);

// Input 0 plus input 1, then the others onto the sum.
template <class T>
class AddNKernel : public Kernel {
 public:
  absl::Status Run(const KernelContext& ctx) const override {
    T* out = ctx.out(0).as<T>();
    const int64_t n = ctx.out(0).elements();
    if (out != ctx.in(0).as<T>() && n > 0) std::copy_n(ctx.in(0).as<T>(), n, out);
    for (size_t i = 1; i < ctx.inputs.size(); ++i) {
      if (add_ != nullptr) {
        add_(ctx.out(0).as<float>(), ctx.inputs[i].as<float>(), ctx.out(0).as<float>(),
             static_cast<size_t>(n));
      } else {
        BinaryOf<AddOp, T>::Run(out, 1, ctx.inputs[i].data, 1, out, n);
      }
    }
    return absl::OkStatus();
  }

 private:
  BinaryF32 add_ = std::is_same_v<T, float> ? FindBinaryF32("Add").vectors : nullptr;
};

template <class T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeAddN(const KernelArgs&) {
  return std::make_unique<AddNKernel<T>>();
}
FLOE_REGISTER_KERNELS(AddN, kCpu, MakeAddN<T>, Numbers);

}  // namespace
}  // namespace floe::kernels
