// Add of strings joins them.
#include <array>
#include <atomic>
#include <string>

#include "base/budget.h"
#include "base/status.h"
#include "kernels/cpu/elementwise/broadcast.h"
#include "kernels/cpu/function_kernel.h"

namespace floe::kernels {
namespace {

absl::Status Join(const KernelContext& ctx) {
  const auto b = MakeBroadcast<2>(ctx.out(0).shape, {&ctx.in(0).shape, &ctx.in(1).shape});
  const auto *x = ctx.in(0).as<std::string>(), *y = ctx.in(1).as<std::string>();
  auto* out = ctx.out(0).as<std::string>();
  const int64_t step_x = b.strides[0].back(), step_y = b.strides[1].back();
  std::atomic<int64_t> bytes{0};  // few long strings, broadcast, make many
  ForEachRun(b, ctx.pool, [&](int64_t, const std::array<int64_t, 2>& in, int64_t n) {
    size_t sum = 0;
    for (int64_t i = 0; i < n; ++i)
      sum += x[in[0] + i * step_x].size() + y[in[1] + i * step_y].size();
    bytes.fetch_add(static_cast<int64_t>(sum), std::memory_order_relaxed);
  });
  FLOE_RETURN_IF_ERROR(CheckValueBytes(bytes.load()));
  ForEachRun(b, ctx.pool, [&](int64_t at, const std::array<int64_t, 2>& in, int64_t n) {
    for (int64_t i = 0; i < n; ++i) out[at + i] = x[in[0] + i * step_x] + y[in[1] + i * step_y];
  });
  return absl::OkStatus();
}

FLOE_REGISTER_KERNEL(Add, kCpu, MakeFunction<&Join>, DType::kString);

}  // namespace
}  // namespace floe::kernels
