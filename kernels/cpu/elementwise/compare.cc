// Comparisons, logic and bits of two inputs.
#include <cmath>

#include "kernels/cpu/elementwise/binary.h"

namespace floe::kernels {
namespace {

using Comparable =
    TypeList<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
             uint32_t, uint64_t, bool, std::complex<float>, std::complex<double>>;

// Equal and NotEqual, which may be asked to give one answer for shapes that do not broadcast
// (attribute incompatible_shape_error).
template <bool kEqual>
struct EqualOp {
  static constexpr const char* kFailure = "";
  template <class T>
  static bool Do(T a, T b) {
    return (a == b) == kEqual;
  }
};

class EqualShapesKernel : public Kernel {
 public:
  EqualShapesKernel(std::unique_ptr<Kernel> elements, bool otherwise)
      : elements_(std::move(elements)), otherwise_(otherwise) {}
  absl::Status Run(const KernelContext& ctx) const override {
    const bool scalars = ctx.in(0).shape.rank() == 0 && ctx.in(1).shape.rank() == 0;
    if (ctx.out(0).shape.rank() != 0 || scalars) return elements_->Run(ctx);
    *ctx.out(0).as<bool>() = otherwise_;
    return absl::OkStatus();
  }

 private:
  std::unique_ptr<Kernel> elements_;
  bool otherwise_;
};

template <bool kEqual>
absl::StatusOr<std::unique_ptr<Kernel>> WithShapes(const KernelArgs& args,
                                                   std::unique_ptr<Kernel> kernel) {
  if (args.node.attrs.Bool("incompatible_shape_error", true)) return kernel;
  return std::make_unique<EqualShapesKernel>(std::move(kernel), !kEqual);
}

template <bool kEqual, class T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeEqual(const KernelArgs& args) {
  return WithShapes<kEqual>(args, MakeBinaryKernel(&BinaryOf<EqualOp<kEqual>, T>::Run, {}, ""));
}

FLOE_REGISTER_KERNELS(Equal, kCpu, (MakeEqual<true, T>), Comparable);
FLOE_REGISTER_KERNELS(NotEqual, kCpu, (MakeEqual<false, T>), Comparable);

FLOE_BINARY(Less, Reals, a < b)
FLOE_BINARY(LessEqual, Reals, a <= b)
FLOE_BINARY(Greater, Reals, a > b)
FLOE_BINARY(GreaterEqual, Reals, a >= b)
FLOE_BINARY(LogicalAnd, Booleans, a&& b)
FLOE_BINARY(LogicalOr, Booleans, a || b)
FLOE_BINARY(BitwiseAnd, Integers, T(a& b))
FLOE_BINARY(BitwiseOr, Integers, T(a | b))
FLOE_BINARY(BitwiseXor, Integers, T(a ^ b))

// Shifts by less than 0 or more than the width are clamped, as TensorFlow's are.
template <class T>
int ShiftBy(T b) {
  constexpr int kMost = static_cast<int>(sizeof(T) * 8) - 1;
  if (std::is_signed_v<T> && b < T(0)) return 0;
  return b > T(kMost) ? kMost : static_cast<int>(b);
}
FLOE_BINARY(LeftShift, Integers, T(static_cast<uint64_t>(a) << ShiftBy(b)))
FLOE_BINARY(RightShift, Integers, T(a >> ShiftBy(b)))

// Strings have no arithmetic, so their loop is written out.
template <bool kEqual>
bool CompareStrings(const void* a, int64_t step_a, const void* b, int64_t step_b, void* y,
                    int64_t n) {
  const auto *pa = static_cast<const std::string*>(a), *pb = static_cast<const std::string*>(b);
  bool* to = static_cast<bool*>(y);
  for (int64_t i = 0; i < n; ++i) to[i] = (pa[i * step_a] == pb[i * step_b]) == kEqual;
  return true;
}

template <bool kEqual>
absl::StatusOr<std::unique_ptr<Kernel>> MakeStrings(const KernelArgs& args) {
  return WithShapes<kEqual>(args, MakeBinaryKernel(&CompareStrings<kEqual>, {}, ""));
}
FLOE_REGISTER_KERNEL(Equal, kCpu, MakeStrings<true>, DType::kString);
FLOE_REGISTER_KERNEL(NotEqual, kCpu, MakeStrings<false>, DType::kString);

}  // namespace
}  // namespace floe::kernels
