#include "kernels/cpu/element_keys.h"

#include <bit>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/dtypes.h"

namespace floe::kernels {
namespace {

using Keyed = TypeList<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t,
                       uint16_t, uint32_t, uint64_t, bool>;

// No other double and no shorter number has such bits.
constexpr uint64_t kFirstNan = 0xfff8'0000'0000'0000;

template <class T>
uint64_t KeyBits(T value) {
  if constexpr (kIsHalf<T>) return value.bits;
  if constexpr (std::is_floating_point_v<T>) return std::bit_cast<uint64_t>(double{value} + 0.0);
  if constexpr (std::is_integral_v<T>) return static_cast<uint64_t>(value);
}

}  // namespace

absl::StatusOr<BudgetVector<uint64_t>> ElementKeys::Of(const TensorView& view) {
  BudgetVector<uint64_t> keys(static_cast<size_t>(view.elements()));
  if (view.dtype == DType::kString) {
    for (size_t i = 0; i < keys.size(); ++i)
      keys[i] = words_.try_emplace(view.as<std::string>()[i], words_.size()).first->second;
    return keys;
  }
  const bool known = ForDType(view.dtype, Keyed{}, [&](auto type) {
    using T = decltype(type);
    const T* x = view.as<T>();
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto value = static_cast<Compute<T>>(x[i]);
      keys[i] = value != value ? kFirstNan + nans_++ : KeyBits(x[i]);
    }
  });
  if (known) return keys;
  return absl::UnimplementedError(absl::StrCat("equal elements of ", DTypeName(view.dtype)));
}

}  // namespace floe::kernels
