// Comparisons, logic and bits of two inputs.
#include <cmath>

#include "kernels/cpu/binary.h"

namespace floe::kernels {
namespace {

using Comparable =
    TypeList<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
             uint32_t, uint64_t, bool, std::complex<float>, std::complex<double>>;

FLOE_BINARY(Equal, Comparable, a == b)
FLOE_BINARY(NotEqual, Comparable, a != b)
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
absl::StatusOr<std::unique_ptr<Kernel>> MakeStrings(const KernelArgs&) {
  return MakeBinaryKernel(&CompareStrings<kEqual>, {}, "");
}
FLOE_REGISTER_KERNEL(Equal, kCpu, MakeStrings<true>, DType::kString);
FLOE_REGISTER_KERNEL(NotEqual, kCpu, MakeStrings<false>, DType::kString);

}  // namespace
}  // namespace floe::kernels
