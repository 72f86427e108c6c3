#include "kernels/cpu/reduce/add_rows_f32.h"

#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/reduce/add_rows_f32.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace floe::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// kVectors of columns are summed in registers over all rows.
template <size_t kVectors>
void AddColumns(const float* const* rows, size_t count, size_t from, float* y) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  hn::Vec<decltype(d)> sums[kVectors];
  for (size_t v = 0; v < kVectors; ++v) sums[v] = hn::LoadU(d, y + from + v * lanes);
  for (size_t k = 0; k < count; ++k) {
    for (size_t v = 0; v < kVectors; ++v)
      sums[v] = hn::Add(sums[v], hn::LoadU(d, rows[k] + from + v * lanes));
  }
  for (size_t v = 0; v < kVectors; ++v) hn::StoreU(sums[v], d, y + from + v * lanes);
}

void AddRows(const float* const* rows, size_t count, float* y, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t j = 0;
  for (; j + 4 * lanes <= n; j += 4 * lanes) AddColumns<4>(rows, count, j, y);
  for (; j + 2 * lanes <= n; j += 2 * lanes) AddColumns<2>(rows, count, j, y);
  for (; j + lanes <= n; j += lanes) AddColumns<1>(rows, count, j, y);
  if (j == n) return;
  auto sum = LoadPartial(d, y + j, n - j);
  for (size_t k = 0; k < count; ++k) sum = hn::Add(sum, LoadPartial(d, rows[k] + j, n - j));
  StorePartial(d, sum, y + j, n - j);
}

}  // namespace floe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace floe::kernels {
HWY_EXPORT(AddRows);

AddRowsF32 PickAddRowsF32() {
  ChooseIsa();
  return HWY_DYNAMIC_DISPATCH(AddRows);
}

}  // namespace floe::kernels
#endif
