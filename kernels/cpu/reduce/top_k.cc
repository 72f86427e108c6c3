// TopKV2 and ApproxTopK.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/float_order.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/widened.h"

namespace floe::kernels {
namespace {

// Puts the places of the k best of n elements in order, of equal ones the first place first.
template <class T, bool kLargest>
void OrderByValue(const T* x, int64_t n, int64_t k, int64_t* order) {
  std::iota(order, order + n, 0);
  std::partial_sort(order, order + k, order + n, [x](int64_t a, int64_t b) {
    const auto va = static_cast<Compute<T>>(x[a]), vb = static_cast<Compute<T>>(x[b]);
    if constexpr (kLargest) return va > vb || (!(vb > va) && a < b);
    return va < vb || (!(vb < va) && a < b);
  });
}

// The same of floats, by numbers made of value and place. False where an element is NaN.
template <class T, bool kLargest>
bool OrderByKey(const T* x, int64_t n, int64_t k, int64_t* order) {
  BudgetVector<uint64_t> keys(n);
  for (int64_t i = 0; i < n; ++i) {
    const auto value = static_cast<float>(x[i]);
    if (value != value) return false;
    const uint32_t rank = OrderOf(value);
    keys[i] = uint64_t{kLargest ? ~rank : rank} << 32 | static_cast<uint64_t>(i);
  }
  if (k < n) std::nth_element(keys.begin(), keys.begin() + k, keys.end());
  std::sort(keys.begin(), keys.begin() + k);
  for (int64_t i = 0; i < k; ++i) order[i] = static_cast<uint32_t>(keys[i]);
  return true;
}

template <class T, bool kLargest>
absl::Status TopK(const KernelContext& ctx) {
  constexpr int64_t kFew = 32;  // a heap of so many costs less than keys for all
  const TensorView &in = ctx.in(0), &values = ctx.out(0), &indices = ctx.out(1);
  const int64_t n = in.shape.dim(in.shape.rank() - 1),
                k = values.shape.dim(values.shape.rank() - 1);
  if (k > n)
    return absl::InvalidArgumentError(absl::StrCat("k is ", k, ", the last dimension ", n));
  if (k == 0) return absl::OkStatus();
  BudgetVector<int64_t> order(n);
  for (int64_t row = 0; row < values.elements() / k; ++row) {
    const T* x = in.as<T>() + row * n;
    bool ordered = false;
    if constexpr (std::is_same_v<Compute<T>, float>) {
      ordered = k > kFew && n <= UINT32_MAX && OrderByKey<T, kLargest>(x, n, k, order.data());
    }
    if (!ordered) OrderByValue<T, kLargest>(x, n, k, order.data());
    for (int64_t i = 0; i < k; ++i) {
      if (values.data != nullptr) values.as<T>()[row * k + i] = x[order[i]];
      if (indices.data == nullptr) continue;
      ForDType(indices.dtype, TypeList<int16_t, int32_t, int64_t>{}, [&](auto t) {
        indices.as<decltype(t)>()[row * k + i] = static_cast<decltype(t)>(order[i]);
      });
    }
  }
  return absl::OkStatus();
}

FLOE_REGISTER_WIDENED(TopKV2, (MakeFunction<&TopK<T, true>>), kWrap, WideReals);

template <class T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeApproxTopK(const KernelArgs& args) {
  const bool largest = args.node.attrs.Bool("is_max_k", true);
  return FromFunction(largest ? &TopK<T, true> : &TopK<T, false>);
}
FLOE_REGISTER_KERNELS(ApproxTopK, kCpu, MakeApproxTopK<T>, TypeList<float, Half, BFloat16>);

}  // namespace
}  // namespace floe::kernels
