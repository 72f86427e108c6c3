#include "kernels/cpu/normalize/softmax_f32.h"

#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/normalize/softmax_f32.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/elementwise/vector_math-inl.h"
#include "kernels/cpu/partial-inl.h"

// The loops over vectors must vanish, so that these stay in registers.
#define FLOE_UNROLL _Pragma("GCC unroll 8")

HWY_BEFORE_NAMESPACE();
namespace floe::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// NaN is never the larger one; it shows in the sum.
template <class V>
HWY_INLINE V Larger(V a, V b) {
  return hn::IfThenElse(hn::Gt(b, a), b, a);
}

template <class D>
float Largest(D d, const float* x, size_t n) {
  using V = hn::Vec<D>;
  const size_t lanes = hn::Lanes(d);
  V top = hn::Set(d, -__builtin_inff());
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) top = Larger(top, hn::LoadU(d, x + i));
  if (i < n)
    top = Larger(top, hn::IfThenElse(hn::FirstN(d, n - i), LoadPartial(d, x + i, n - i), top));
  return hn::GetLane(hn::MaxOfLanes(d, top));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V LoadAny(D d, const float* p, size_t n) {
  return n == hn::Lanes(d) ? hn::LoadU(d, p) : LoadPartial(d, p, n);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE void StoreAny(D d, V v, float* p, size_t n) {
  if (n == hn::Lanes(d))
    hn::StoreU(v, d, p);
  else
    StorePartial(d, v, p, n);
}

// `count` lanes of the scores from x[i] on.
template <bool kKeep, class D, class V = hn::Vec<D>>
HWY_INLINE V Score(D d, const float* x, V factor, V one, const ScoreMask& mask, size_t i,
                   size_t count) {
  const V shift = mask.add != nullptr && mask.each ? LoadAny(d, mask.add + i, count) : one;
  V v = hn::MulAdd(LoadAny(d, x + i, count), factor, shift);
  if constexpr (kKeep) {
    const auto masked = hn::Eq(LoadAny(d, mask.keep + i, count), hn::Zero(d));
    v = hn::IfThenElse(masked, hn::Set(d, mask.fill), v);
  }
  return v;
}

// The scores of one row, written to y; gives the largest of them.
template <bool kKeep, class D>
float ScaleAndMask(D d, const float* x, float scale, const ScoreMask& mask, float* y, size_t n) {
  using V = hn::Vec<D>;
  const size_t lanes = hn::Lanes(d);
  const V factor = hn::Set(d, scale), one = hn::Set(d, mask.add == nullptr ? 0.0f : *mask.add);
  V top = hn::Set(d, -__builtin_inff());
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V v = Score<kKeep>(d, x, factor, one, mask, i, lanes);
    top = Larger(top, v);
    hn::StoreU(v, d, y + i);
  }
  if (i < n) {
    const V v = Score<kKeep>(d, x, factor, one, mask, i, n - i);
    top = Larger(top, hn::IfThenElse(hn::FirstN(d, n - i), v, top));
    StorePartial(d, v, y + i, n - i);
  }
  return hn::GetLane(hn::MaxOfLanes(d, top));
}

// Sum of e^(x - top), stored to y unless it is null.
template <class D>
float SumOfExp(D d, const float* x, float top, float* y, size_t n) {
  using V = hn::Vec<D>;
  const size_t lanes = hn::Lanes(d);
  const V shift = hn::Set(d, top);
  V sum = hn::Zero(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V e = ExpUpToZero(d, hn::Sub(hn::LoadU(d, x + i), shift));
    sum = hn::Add(sum, e);
    if (y != nullptr) hn::StoreU(e, d, y + i);
  }
  if (i < n) {
    const V e = ExpUpToZero(d, hn::Sub(LoadPartial(d, x + i, n - i), shift));
    sum = hn::Add(sum, hn::IfThenElseZero(hn::FirstN(d, n - i), e));
    if (y != nullptr) StorePartial(d, e, y + i, n - i);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// The softmax of x, whose largest number is `top`.
template <class D>
void Finish(D d, const float* x, float top, float* y, size_t n) {
  const size_t lanes = hn::Lanes(d);
  const auto scale = hn::Set(d, 1.0f / SumOfExp(d, x, top, y, n));
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, y + i), scale), d, y + i);
  if (i < n) StorePartial(d, hn::Mul(LoadPartial(d, y + i, n - i), scale), y + i, n - i);
}

// Probabilities are e^(x - top) times 1 / sum; their logarithms x - top less log(sum).
template <bool kLog, class D, class V = hn::Vec<D>>
HWY_INLINE V FactorOf(D d, V sum) {
  if constexpr (kLog) return Log(d, sum);
  return hn::Div(hn::Set(d, 1.0f), sum);
}
template <bool kLog, class V>
HWY_INLINE V Scaled(V x, V factor) {
  return kLog ? hn::Sub(x, factor) : hn::Mul(x, factor);
}

// The softmax of kRows rows of kVectors vectors, the last of which may be partial. All are loaded
// before the first is stored, and what is stored beyond a row is overwritten by the next: a load
// next to a masked store waits for it.
template <bool kLog, size_t kVectors, size_t kRows, class D>
HWY_INLINE void SoftmaxOfVectors(D d, const float* x, float* y, size_t n) {
  using V = hn::Vec<D>;
  constexpr size_t kLast = kVectors - 1;
  const size_t lanes = hn::Lanes(d), rest = n - kLast * lanes;
  const auto used = hn::FirstN(d, rest);
  const V none = hn::Set(d, -__builtin_inff());
  V v[kRows][kVectors];
  FLOE_UNROLL for (size_t i = 0; i < kRows; ++i) {
    FLOE_UNROLL for (size_t k = 0; k < kLast; ++k) v[i][k] = hn::LoadU(d, x + i * n + k * lanes);
    v[i][kLast] = LoadAny(d, x + i * n + kLast * lanes, rest);
  }
  FLOE_UNROLL for (size_t i = 0; i < kRows; ++i) {
    V top = none, sum = hn::Zero(d);
    FLOE_UNROLL for (size_t k = 0; k < kLast; ++k) top = Larger(top, v[i][k]);
    top = hn::MaxOfLanes(d, hn::IfThenElse(used, Larger(top, v[i][kLast]), top));
    FLOE_UNROLL for (size_t k = 0; k < kVectors; ++k) {
      v[i][k] = hn::Sub(v[i][k], top);
      const V e = ExpUpToZero(d, v[i][k]);
      sum = hn::Add(sum, k == kLast ? hn::IfThenElseZero(used, e) : e);
      if constexpr (!kLog) v[i][k] = e;
    }
    const V factor = FactorOf<kLog>(d, hn::SumOfLanes(d, sum));
    FLOE_UNROLL for (V& e : v[i]) e = Scaled<kLog>(e, factor);
  }
  FLOE_UNROLL for (size_t i = 0; i < kRows; ++i) {
    FLOE_UNROLL for (size_t k = 0; k < kLast; ++k) hn::StoreU(v[i][k], d, y + i * n + k * lanes);
    const bool inside = i * n + kVectors * lanes <= kRows * n;
    StoreAny(d, v[i][kLast], y + i * n + kLast * lanes, inside ? lanes : rest);
  }
}

template <bool kLog, size_t kVectors, size_t kTogether, class D>
void SoftmaxOfShortRows(D d, const float* x, float* y, size_t rows, size_t n) {
  size_t i = 0;
  for (; i + kTogether <= rows; i += kTogether)
    SoftmaxOfVectors<kLog, kVectors, kTogether>(d, x + i * n, y + i * n, n);
  for (; i < rows; ++i) SoftmaxOfVectors<kLog, kVectors, 1>(d, x + i * n, y + i * n, n);
}

// Column k of as many rows of kColumns numbers as a vector has lanes, into v[k], and back.
template <size_t kColumns, class D, class V = hn::Vec<D>>
HWY_INLINE void LoadColumns(D d, const float* x, V (&v)[kColumns]) {
  if constexpr (kColumns == 2) {
    hn::LoadInterleaved2(d, x, v[0], v[1]);
  } else if constexpr (kColumns == 3) {
    hn::LoadInterleaved3(d, x, v[0], v[1], v[2]);
  } else if constexpr (kColumns == 4) {
    hn::LoadInterleaved4(d, x, v[0], v[1], v[2], v[3]);
  } else {
    const hn::RebindToSigned<D> di;
    const auto rows = hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<int32_t>(kColumns)));
    FLOE_UNROLL for (size_t k = 0; k < kColumns; ++k) v[k] = hn::GatherIndex(d, x + k, rows);
  }
}
template <size_t kColumns, class D, class V = hn::Vec<D>>
HWY_INLINE void StoreColumns(D d, const V (&v)[kColumns], float* y) {
  if constexpr (kColumns == 2) {
    hn::StoreInterleaved2(v[0], v[1], d, y);
  } else if constexpr (kColumns == 3) {
    hn::StoreInterleaved3(v[0], v[1], v[2], d, y);
  } else if constexpr (kColumns == 4) {
    hn::StoreInterleaved4(v[0], v[1], v[2], v[3], d, y);
  } else {
    const hn::RebindToSigned<D> di;
    const auto rows = hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<int32_t>(kColumns)));
    FLOE_UNROLL for (size_t k = 0; k < kColumns; ++k) hn::ScatterIndex(v[k], d, y + k, rows);
  }
}

// The softmax of as many rows as a vector has lanes, each lane a row.
template <bool kLog, size_t kColumns, class D>
HWY_INLINE void SoftmaxOfColumns(D d, const float* x, float* y) {
  using V = hn::Vec<D>;
  V v[kColumns];
  LoadColumns(d, x, v);
  V top = hn::Set(d, -__builtin_inff()), sum = hn::Zero(d);
  FLOE_UNROLL for (const V& e : v) top = Larger(top, e);
  FLOE_UNROLL for (V& e : v) {
    e = hn::Sub(e, top);
    const V power = ExpUpToZero(d, e);
    sum = hn::Add(sum, power);
    if constexpr (!kLog) e = power;
  }
  const V factor = FactorOf<kLog>(d, sum);
  FLOE_UNROLL for (V& e : v) e = Scaled<kLog>(e, factor);
  StoreColumns(d, v, y);
}

template <bool kLog, size_t kColumns, class D>
void SoftmaxOfFew(D d, const float* x, float* y, size_t rows) {
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= rows; i += lanes)
    SoftmaxOfColumns<kLog, kColumns>(d, x + i * kColumns, y + i * kColumns);
  if (i == rows) return;
  // The last rows have the bits that they would have among others.
  HWY_ALIGN float last[kColumns * HWY_MAX_BYTES / sizeof(float)] = {};
  const size_t begin = i * kColumns, count = rows * kColumns - begin;
  for (size_t k = 0; k < count; ++k) last[k] = x[begin + k];
  SoftmaxOfColumns<kLog, kColumns>(d, last, last);
  for (size_t k = 0; k < count; ++k) y[begin + k] = last[k];
}

// Rows of up to four vectors; false for others.
template <bool kLog, class D>
bool SoftmaxInRegisters(D d, const float* x, float* y, size_t rows, size_t n) {
  if (n == 2) return SoftmaxOfFew<kLog, 2>(d, x, y, rows), true;
  if (n == 3) return SoftmaxOfFew<kLog, 3>(d, x, y, rows), true;
  if (n == 4) return SoftmaxOfFew<kLog, 4>(d, x, y, rows), true;
  if (n == 5) return SoftmaxOfFew<kLog, 5>(d, x, y, rows), true;
  if (n == 6) return SoftmaxOfFew<kLog, 6>(d, x, y, rows), true;
  if (n == 7) return SoftmaxOfFew<kLog, 7>(d, x, y, rows), true;
  if (n == 8) return SoftmaxOfFew<kLog, 8>(d, x, y, rows), true;
  switch ((n + hn::Lanes(d) - 1) / hn::Lanes(d)) {
    case 1:
      return SoftmaxOfShortRows<kLog, 1, 4>(d, x, y, rows, n), true;
    case 2:
      return SoftmaxOfShortRows<kLog, 2, 4>(d, x, y, rows, n), true;
    case 3:
      return SoftmaxOfShortRows<kLog, 3, 2>(d, x, y, rows, n), true;
    case 4:
      return SoftmaxOfShortRows<kLog, 4, 2>(d, x, y, rows, n), true;
    default:
      return false;
  }
}

void Softmax(const float* x, float* y, size_t rows, size_t n) {
  const hn::ScalableTag<float> d;
  if (SoftmaxInRegisters<false>(d, x, y, rows, n)) return;
  for (size_t i = 0; i < rows; ++i) Finish(d, x + i * n, Largest(d, x + i * n, n), y + i * n, n);
}

void ScaledSoftmax(const float* x, float scale, const ScoreMask& mask, float* y, size_t n) {
  const hn::ScalableTag<float> d;
  if (mask.keep == nullptr) {
    Finish(d, y, ScaleAndMask<false>(d, x, scale, mask, y, n), y, n);
    return;
  }
  Finish(d, y, ScaleAndMask<true>(d, x, scale, mask, y, n), y, n);
  for (size_t i = 0; mask.zero && i < n; ++i) {
    if (mask.keep[i] == 0) y[i] = 0;
  }
}

template <class D>
void LogSoftmaxOfRow(D d, const float* x, float* y, size_t n) {
  const size_t lanes = hn::Lanes(d);
  const float top = Largest(d, x, n);
  const auto shift = hn::Set(d, top);
  const auto log_sum = Log(d, hn::Set(d, SumOfExp(d, x, top, nullptr, n)));
  size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::Sub(hn::Sub(hn::LoadU(d, x + i), shift), log_sum), d, y + i);
  if (i < n)
    StorePartial(d, hn::Sub(hn::Sub(LoadPartial(d, x + i, n - i), shift), log_sum), y + i, n - i);
}

void LogSoftmax(const float* x, float* y, size_t rows, size_t n) {
  const hn::ScalableTag<float> d;
  if (SoftmaxInRegisters<true>(d, x, y, rows, n)) return;
  for (size_t i = 0; i < rows; ++i) LogSoftmaxOfRow(d, x + i * n, y + i * n, n);
}

}  // namespace floe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace floe::kernels {
HWY_EXPORT(Softmax);
HWY_EXPORT(ScaledSoftmax);
HWY_EXPORT(LogSoftmax);

SoftmaxF32 PickSoftmaxF32(bool log) {
  ChooseIsa();
  return log ? HWY_DYNAMIC_DISPATCH(LogSoftmax) : HWY_DYNAMIC_DISPATCH(Softmax);
}

ScaledSoftmaxF32 PickScaledSoftmaxF32() {
  ChooseIsa();
  return HWY_DYNAMIC_DISPATCH(ScaledSoftmax);
}

}  // namespace floe::kernels
#endif
