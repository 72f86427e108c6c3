#include "kernels/cpu/elementwise/chain_f32.h"

#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/chain_f32.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/gemm/activation-inl.h"
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

#define FLOE_FUNCTION(NAME, EXPRESSION)                                  \
  struct NAME {                                                          \
    HWY_INLINE V operator()(V x, V operand) const { return EXPRESSION; } \
  };
FLOE_FUNCTION(Sum, hn::Add(x, operand))
FLOE_FUNCTION(Less, hn::Sub(x, operand))
FLOE_FUNCTION(LessFrom, hn::Sub(operand, x))
FLOE_FUNCTION(Product, hn::Mul(x, operand))
FLOE_FUNCTION(Quotient, hn::Div(x, operand))
FLOE_FUNCTION(QuotientOf, hn::Div(operand, x))
#undef FLOE_FUNCTION

// x[v] = f(x[v], operand), vectors side by side.
template <class F, int kVectors>
HWY_INLINE void Apply(const ChainLink& link, size_t at, size_t left, V (&x)[kVectors]) {
  const D d;
  const F f;
  if (link.step == 0) {
    const V one = hn::Set(d, *link.operand);
    FLOE_UNROLL for (int v = 0; v < kVectors; ++v) x[v] = f(x[v], one);
    return;
  }
  const float* p = link.operand + at;
  const size_t lanes = hn::Lanes(d);
  FLOE_UNROLL for (int v = 0; v < kVectors; ++v) x[v] = f(x[v], LoadLeft(p + v * lanes, left));
}

template <int kVectors>
HWY_INLINE void Follow(const ChainLink& link, size_t at, size_t left, V (&x)[kVectors]) {
  const D d;
  switch (link.op) {
    case ChainOp::kAdd:
      return Apply<Sum>(link, at, left, x);
    case ChainOp::kSub:
      return Apply<Less>(link, at, left, x);
    case ChainOp::kSubFrom:
      return Apply<LessFrom>(link, at, left, x);
    case ChainOp::kMul:
      return Apply<Product>(link, at, left, x);
    case ChainOp::kDiv:
      return Apply<Quotient>(link, at, left, x);
    case ChainOp::kDivInto:
      return Apply<QuotientOf>(link, at, left, x);
    case ChainOp::kRelu:
      FLOE_UNROLL for (int v = 0; v < kVectors; ++v) x[v] = Relu(d, x[v]);
      return;
    case ChainOp::kRelu6:
      FLOE_UNROLL for (int v = 0; v < kVectors; ++v) x[v] = Relu6(d, x[v]);
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
  for (size_t k = 0; k < count; ++k) Follow(links[k], at, left, so_far);
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
