#include "kernels/cpu/chain_f32.h"

#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/chain_f32.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/activation-inl.h"
#include "kernels/cpu/partial-inl.h"

#ifndef FLOE_UNROLL  // without, -O2 keeps arrays of vectors in memory
#define FLOE_UNROLL _Pragma("GCC unroll 8")
#endif

HWY_BEFORE_NAMESPACE();
namespace floe::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Vectors that go through all links together: an op is chosen once for them.
constexpr int kTogether = 8;

// `left` of 0: a whole vector.
HWY_INLINE V LoadLeft(const float* p, size_t left) {
  return left == 0 ? hn::LoadU(D(), p) : LoadPartial(D(), p, left);
}

// One link's op over vectors side by side.
template <bool kOne, int kVectors>
HWY_INLINE void Apply(const ChainLink& link, size_t at, size_t left, V (&x)[kVectors]) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const float* p = kOne ? link.operand : link.operand + at;
  const V one = kOne ? hn::Set(d, *p) : hn::Zero(d);
  switch (link.op) {
    case ChainOp::kAdd:
      FLOE_UNROLL for (int v = 0; v < kVectors; ++v) {
        x[v] = hn::Add(x[v], kOne ? one : LoadLeft(p + v * lanes, left));
      }
      return;
    case ChainOp::kSub:
      FLOE_UNROLL for (int v = 0; v < kVectors; ++v) {
        x[v] = hn::Sub(x[v], kOne ? one : LoadLeft(p + v * lanes, left));
      }
      return;
    case ChainOp::kSubFrom:
      FLOE_UNROLL for (int v = 0; v < kVectors; ++v) {
        x[v] = hn::Sub(kOne ? one : LoadLeft(p + v * lanes, left), x[v]);
      }
      return;
    case ChainOp::kMul:
      FLOE_UNROLL for (int v = 0; v < kVectors; ++v) {
        x[v] = hn::Mul(x[v], kOne ? one : LoadLeft(p + v * lanes, left));
      }
      return;
    case ChainOp::kDiv:
      FLOE_UNROLL for (int v = 0; v < kVectors; ++v) {
        x[v] = hn::Div(x[v], kOne ? one : LoadLeft(p + v * lanes, left));
      }
      return;
    case ChainOp::kDivInto:
      FLOE_UNROLL for (int v = 0; v < kVectors; ++v) {
        x[v] = hn::Div(kOne ? one : LoadLeft(p + v * lanes, left), x[v]);
      }
      return;
    case ChainOp::kRelu:
    case ChainOp::kRelu6:
      return;
  }
}

template <int kVectors>
HWY_INLINE void Block(const float* x, int64_t step, const ChainLink* links, size_t count, size_t at,
                      size_t left, float* y) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  V so_far[kVectors];
  FLOE_UNROLL for (int v = 0; v < kVectors; ++v) {
    so_far[v] = step == 0 ? hn::Set(d, *x) : LoadLeft(x + at + v * lanes, left);
  }
  for (size_t k = 0; k < count; ++k) {
    const ChainLink& link = links[k];
    if (link.op == ChainOp::kRelu) {
      FLOE_UNROLL for (int v = 0; v < kVectors; ++v) so_far[v] = Relu(d, so_far[v]);
    } else if (link.op == ChainOp::kRelu6) {
      FLOE_UNROLL for (int v = 0; v < kVectors; ++v) so_far[v] = Relu6(d, so_far[v]);
    } else if (link.step == 0) {
      Apply<true>(link, at, left, so_far);
    } else {
      Apply<false>(link, at, left, so_far);
    }
  }
  FLOE_UNROLL for (int v = 0; v < kVectors; ++v) {
    if (left == 0) {
      hn::StoreU(so_far[v], d, y + at + v * lanes);
    } else {
      StorePartial(d, so_far[v], y + at + v * lanes, left);
    }
  }
}

void Chain(const float* x, int64_t step, const ChainLink* links, size_t count, float* y, size_t n) {
  const size_t lanes = hn::Lanes(D());
  size_t at = 0;
  for (; at + kTogether * lanes <= n; at += kTogether * lanes)
    Block<kTogether>(x, step, links, count, at, 0, y);
  for (; at + lanes <= n; at += lanes) Block<1>(x, step, links, count, at, 0, y);
  if (at < n) Block<1>(x, step, links, count, at, n - at, y);
}

}  // namespace
}  // namespace floe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace floe::kernels {
HWY_EXPORT(Chain);

ChainF32 PickChainF32() {
  ChooseIsa();
  return &HWY_DYNAMIC_DISPATCH(Chain);
}

std::optional<ChainOp> ChainOpOf(const std::string& op, bool second) {
  if (op == "Add") return ChainOp::kAdd;
  if (op == "Mul") return ChainOp::kMul;
  if (op == "Sub") return second ? ChainOp::kSubFrom : ChainOp::kSub;
  if (op == "RealDiv") return second ? ChainOp::kDivInto : ChainOp::kDiv;
  if (op == "Relu") return ChainOp::kRelu;
  if (op == "Relu6") return ChainOp::kRelu6;
  return std::nullopt;
}

}  // namespace floe::kernels
#endif
