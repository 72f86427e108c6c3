#include "kernels/cpu/image/area_f32.h"

#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/image/area_f32.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace floe::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The sum of pixel `q`, whose first channel is at image[0]; load(p) gives the channels at p.
template <class D, class Load>
HWY_INLINE hn::Vec<D> SumOf(D d, const AreaLine& line, const Covered& q, const float* image,
                            const Load& load) {
  const int64_t* const places = line.places + q.weight;
  const float* const weights = line.weights + q.weight;
  auto total = hn::Zero(d);
  for (size_t r = 0; r < line.row_count; ++r) {
    const float* const row = image + line.rows[r];
    auto across = hn::Zero(d);
    for (int64_t k = 0; k < q.count; ++k)
      across = hn::Add(across, hn::Mul(load(row + places[k]), hn::Set(d, weights[k])));
    total = hn::Add(total, hn::Mul(across, hn::Set(d, line.row_weights[r])));
  }
  return hn::Mul(total, hn::Set(d, line.scale));
}

// A few channels are read as a whole vector where the image goes on, and written as one where the
// line does: the next pixel overwrites what is too much.
template <class D>
void AreaIn(D d, const AreaLine& line, const float* image, int64_t size, float* y) {
  const size_t lanes = hn::Lanes(d), full = line.channels - line.channels % lanes,
               rest = line.channels - full;
  const float* const y_end = y + line.pixel_count * line.channels;
  const auto whole = [&](const float* p) HWY_ATTR { return hn::LoadU(d, p); };
  const auto part = [&](const float* p) HWY_ATTR { return LoadPartial(d, p, rest); };
  const int64_t last_row = line.row_count == 0 ? 0 : line.rows[line.row_count - 1];
  for (size_t i = 0; i < line.pixel_count; ++i, y += line.channels) {
    const Covered& q = line.pixels[i];
    for (size_t c = 0; c < full; c += lanes)
      hn::StoreU(SumOf(d, line, q, image + c, whole), d, y + c);
    if (rest == 0) continue;
    const int64_t last = q.count == 0 ? 0 : line.places[q.weight + q.count - 1];
    const bool goes_on = last_row + last + static_cast<int64_t>(full + lanes) <= size;
    const auto sum =
        goes_on ? SumOf(d, line, q, image + full, whole) : SumOf(d, line, q, image + full, part);
    if (y + full + lanes <= y_end) {
      hn::StoreU(sum, d, y + full);
    } else {
      StorePartial(d, sum, y + full, rest);
    }
  }
}

// Short vectors for a pixel of colours: long ones mostly hold its neighbours, and each load would
// touch two lines of the cache.
void Area(const AreaLine& line, const float* image, int64_t size, float* y) {
  const hn::CappedTag<float, 4> few;
  if (line.channels <= hn::Lanes(few)) {
    AreaIn(few, line, image, size, y);
  } else {
    AreaIn(hn::ScalableTag<float>(), line, image, size, y);
  }
}

}  // namespace floe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace floe::kernels {
HWY_EXPORT(Area);

AreaF32 PickAreaF32() {
  ChooseIsa();
  return &HWY_DYNAMIC_DISPATCH(Area);
}

}  // namespace floe::kernels
#endif
