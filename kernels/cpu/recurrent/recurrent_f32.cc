#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/recurrent/recurrent.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/recurrent/recurrent_f32.cc"  // compiled once per ISA
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include "kernels/cpu/elementwise/vector_math-inl.h"
#include "kernels/cpu/gemm/activation-inl.h"
#include "kernels/cpu/gemm/weights-inl.h"

// The loops over a tile's sums must vanish, so that these stay in registers.
#define FLOE_UNROLL _Pragma("GCC unroll 16")

HWY_BEFORE_NAMESPACE();
namespace floe::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using ops::RecurrentFunction;
using ops::RecurrentGate;

constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));

// A tile is some rows by the gates of one block, or by half of them where the registers hold no
// more: sums must outnumber loads, since R comes from the second cache.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int kSums = 24, kSumsOfOneRow = 16;
constexpr int GatesOfTile(int gates) { return gates; }
#else
constexpr int kSums = 12, kSumsOfOneRow = 8;
constexpr int GatesOfTile(int gates) { return gates == 4 ? 2 : gates; }
#endif
constexpr int RowsOfTile(int gates) { return HWY_MIN(8, kSums / GatesOfTile(gates)); }
// One row takes several blocks at once, to hide the latency of a multiply-add.
constexpr int BlocksOfOneRow(int gates) { return HWY_MIN(8, kSumsOfOneRow / gates); }

// ---- functions of gates ----

HWY_INLINE V ApplyRare(const RecurrentGate& gate, V x) {
  const D d;
  const V one = hn::Set(d, 1.0f);
  switch (gate.function) {
    case RecurrentFunction::kRelu6:
      return Relu6(d, x);
    case RecurrentFunction::kElu:
      return Elu(d, x);
    case RecurrentFunction::kSelu: {
      const V below = hn::Mul(hn::Set(d, 1.75809934f), Elu(d, x));
      return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), below, hn::Mul(hn::Set(d, 1.05070099f), x));
    }
    case RecurrentFunction::kLeakyRelu:
      return LeakyRelu(d, x, gate.scale);
    case RecurrentFunction::kSwish:
      return hn::Mul(x, Sigmoid(d, x));
    case RecurrentFunction::kSoftplus: {
      // log(1 + y) by the same series for small y: 1 + y - 1 loses its last bits.
      const V y = Exp(d, hn::Neg(hn::Abs(x))), sum = hn::Add(one, y), lost = hn::Sub(sum, one);
      const V log =
          hn::IfThenElse(hn::Eq(lost, hn::Zero(d)), y, hn::Mul(Log(d, sum), hn::Div(y, lost)));
      return hn::Add(Relu(d, x), log);
    }
    case RecurrentFunction::kSoftsign:
      return hn::Div(x, hn::Add(one, hn::Abs(x)));
    case RecurrentFunction::kExp:
      return Exp(d, x);
    case RecurrentFunction::kHardSigmoid: {
      const V y = hn::MulAdd(x, hn::Set(d, gate.scale), hn::Set(d, gate.shift));
      const V low = hn::IfThenElse(hn::Lt(y, hn::Zero(d)), hn::Zero(d), y);
      return hn::IfThenElse(hn::Gt(low, one), one, low);
    }
    default:
      return x;
  }
}

// One vector in place: vectors are no arguments of functions that are not inlined.
HWY_NOINLINE void ApplyRareAt(const RecurrentGate& gate, float* p) {
  const D d;
  hn::Store(ApplyRare(gate, hn::Load(d, p)), d, p);
}

// Any function.
struct AnyGate {
  static HWY_INLINE V Apply(const RecurrentGate& gate, V x) {
    const D d;
    switch (gate.function) {
      case RecurrentFunction::kLinear:
        return x;
      case RecurrentFunction::kSigmoid:
        return Sigmoid(d, x);
      case RecurrentFunction::kTanh:
        return Tanh(d, x);
      case RecurrentFunction::kRelu:
        return Relu(d, x);
      default: {
        HWY_ALIGN float p[kLanes];
        hn::Store(x, d, p);
        ApplyRareAt(gate, p);
        return hn::Load(d, p);
      }
    }
  }
  static HWY_INLINE V Gate(const RecurrentGate& gate, V x) { return Apply(gate, x); }
  static HWY_INLINE V Value(const RecurrentGate& gate, V x) { return Apply(gate, x); }
};

// Sigmoid for gates and tanh for values, as most layers have it: no branches.
struct UsualGate {
  static HWY_INLINE V Gate(const RecurrentGate&, V x) { return Sigmoid(D(), x); }
  static HWY_INLINE V Value(const RecurrentGate&, V x) { return Tanh(D(), x); }
};

// ---- cells: what becomes of one block of one row, given its sums ----

struct Place {
  const float* sums;  // [gate][lane]: h R
  const float* z;     // [gate][lane]: x W + b
  int64_t at;         // of the block's first unit in the rows of h, c, ...
  int64_t bias;       // the same in rb

  V Sum(int g) const { return hn::Load(D(), sums + g * kLanes); }
  V Z(int g) const { return hn::LoadU(D(), z + g * kLanes); }
  V Both(int g) const { return hn::Add(Z(g), Sum(g)); }
};

template <class G>
struct Lstm {
  static HWY_INLINE void Finish(const RecurrentStep& step, const Place& p) {
    const D d;
    const RecurrentGate* f = step.gates;
    const V in = G::Gate(f[0], p.Both(0)), forget = G::Gate(f[1], p.Both(1)),
            fresh = G::Value(f[2], p.Both(2)), out = G::Gate(f[3], p.Both(3));
    const V c = hn::MulAdd(forget, hn::Load(d, step.c + p.at), hn::Mul(in, fresh));
    hn::Store(c, d, step.c + p.at);
    hn::Store(hn::Mul(out, G::Value(f[4], c)), d, step.h_next + p.at);
  }
};

HWY_INLINE V Blend(V update, V before, V fresh) {
  const V rest = hn::Sub(hn::Set(D(), 1.0f), update);
  return hn::MulAdd(update, before, hn::Mul(rest, fresh));
}

template <class G>
struct GruAfter {
  static HWY_INLINE void Finish(const RecurrentStep& step, const Place& p) {
    const D d;
    const V update = G::Gate(step.gates[0], p.Both(0)), reset = G::Gate(step.gates[1], p.Both(1));
    const V inner = hn::Add(p.Sum(2), hn::Load(d, step.bias + p.bias));
    const V fresh = G::Value(step.gates[2], hn::MulAdd(reset, inner, p.Z(2)));
    hn::Store(Blend(update, hn::Load(d, step.h + p.at), fresh), d, step.h_next + p.at);
  }
};

template <class G>
struct GruBefore {
  static HWY_INLINE void Finish(const RecurrentStep& step, const Place& p) {
    const D d;
    const V update = G::Gate(step.gates[0], p.Both(0)), reset = G::Gate(step.gates[1], p.Both(1));
    hn::Store(update, d, step.update + p.at);
    hn::Store(hn::Mul(reset, hn::Load(d, step.h + p.at)), d, step.reset_h + p.at);
  }
};

// The second half of a step: n alone.
template <class G>
struct GruNew {
  static HWY_INLINE void Finish(const RecurrentStep& step, const Place& p) {
    const D d;
    const V fresh = G::Value(step.gates[2], hn::Add(p.Z(2), p.Sum(0)));
    const V update = hn::Load(d, step.update + p.at);
    hn::Store(Blend(update, hn::Load(d, step.h + p.at), fresh), d, step.h_next + p.at);
  }
};

template <class G>
struct Simple {
  static HWY_INLINE void Finish(const RecurrentStep& step, const Place& p) {
    hn::Store(G::Value(step.gates[0], p.Both(0)), D(), step.h_next + p.at);
  }
};

// ---- h R ----

// sums[row][block][gate][lane] of a tile: kUsed of the kGates gates, from where `r` and `sums`
// point on. An element is summed in the order of h's units from 0 on, whatever the tile. W is the
// type of the packed weights: float or BFloat16.
template <class W, int kGates, int kUsed, int kRows, int kBlocks>
HWY_INLINE void Product(const float* h, int64_t h_stride, const W* r, int64_t units, float* sums) {
  constexpr int kWide = kBlocks * kUsed;
  const D d;
  V sum[kRows][kWide];
  FLOE_UNROLL for (int i = 0; i < kRows; ++i) {
    FLOE_UNROLL for (int j = 0; j < kWide; ++j) sum[i][j] = hn::Zero(d);
  }
  const int64_t block_size = units * kGates * kLanes;
  for (int64_t k = 0; k < units; ++k) {
    const auto weights = [&](int j) HWY_ATTR {
      return LoadWeights(d, r + j / kUsed * block_size + j % kUsed * kLanes);
    };
    if constexpr (kRows == 1) {  // one sum a vector of R: it is used as it comes
      const V vh = hn::Set(d, h[k]);
      FLOE_UNROLL for (int j = 0; j < kWide; ++j) sum[0][j] = hn::MulAdd(vh, weights(j), sum[0][j]);
    } else {
      V vr[kWide];
      FLOE_UNROLL for (int j = 0; j < kWide; ++j) vr[j] = weights(j);
      FLOE_UNROLL for (int i = 0; i < kRows; ++i) {
        const V vh = hn::Set(d, h[i * h_stride + k]);
        FLOE_UNROLL for (int j = 0; j < kWide; ++j) sum[i][j] = hn::MulAdd(vh, vr[j], sum[i][j]);
      }
    }
    r += kGates * kLanes;
  }
  FLOE_UNROLL for (int i = 0; i < kRows; ++i) {
    FLOE_UNROLL for (int b = 0; b < kBlocks; ++b) {
      FLOE_UNROLL for (int g = 0; g < kUsed; ++g) {
        hn::Store(sum[i][b * kUsed + g], d, sums + ((i * kBlocks + b) * kGates + g) * kLanes);
      }
    }
  }
}

template <class W>
using ProductFunction = void (*)(const float* h, int64_t h_stride, const W* r, int64_t units,
                                 float* sums);

// All gates of one block.
template <class W, int kGates, int kRows>
void ProductOfBlock(const float* h, int64_t h_stride, const W* r, int64_t units, float* sums) {
  constexpr int kUsed = GatesOfTile(kGates);
  for (int g = 0; g < kGates; g += kUsed)
    Product<W, kGates, kUsed, kRows, 1>(h, h_stride, r + g * kLanes, units, sums + g * kLanes);
}

template <class W, int kGates>
ProductFunction<W> RowsProduct(int rows) {
  constexpr int kMost = RowsOfTile(kGates);
  constexpr ProductFunction<W> kTiles[] = {
      ProductOfBlock<W, kGates, 1>,
      ProductOfBlock<W, kGates, HWY_MIN(2, kMost)>,
      ProductOfBlock<W, kGates, HWY_MIN(3, kMost)>,
      ProductOfBlock<W, kGates, HWY_MIN(4, kMost)>,
      ProductOfBlock<W, kGates, HWY_MIN(5, kMost)>,
      ProductOfBlock<W, kGates, HWY_MIN(6, kMost)>,
      ProductOfBlock<W, kGates, HWY_MIN(7, kMost)>,
      ProductOfBlock<W, kGates, HWY_MIN(8, kMost)>,
  };
  return kTiles[rows - 1];
}

// All blocks of `rows` rows: `input` R with the columns of kGates gates from `first` on, then the
// cell. `input` is h or, in the second half of a reset-before GRU, s(r) h.
template <class Cell, class W, int kGates>
HWY_INLINE void Pass(const RecurrentStep& step, const float* input, const W* r, int64_t rows) {
  constexpr int kRows = RowsOfTile(kGates), kWideBlocks = BlocksOfOneRow(kGates);
  const RecurrentLayout& layout = *step.layout;
  const int64_t width = layout.width(), units = layout.units;
  HWY_ALIGN float sums[HWY_MAX(kRows, kWideBlocks) * kGates * kLanes];
  const int64_t block_size = units * kGates * kLanes;
  const auto finish = [&](const float* of, int64_t row, int64_t block) HWY_ATTR {
    Cell::Finish(step, {of, step.z + row * step.z_stride + block * layout.gates * kLanes,
                        row * width + block * kLanes, block * kLanes});
  };
  if (rows == 1) {
    int64_t block = 0;
    while (block < layout.blocks) {
      const int64_t left = layout.blocks - block;
      int64_t together = 1;
      if (left >= kWideBlocks) {
        together = kWideBlocks;
        Product<W, kGates, kGates, 1, kWideBlocks>(input, width, r, units, sums);
      } else if (left >= 2 && kWideBlocks >= 2) {
        together = 2;
        Product<W, kGates, kGates, 1, HWY_MIN(2, kWideBlocks)>(input, width, r, units, sums);
      } else {
        Product<W, kGates, kGates, 1, 1>(input, width, r, units, sums);
      }
      for (int64_t b = 0; b < together; ++b) finish(sums + b * kGates * kLanes, 0, block + b);
      block += together;
      r += together * block_size;
    }
    return;
  }
  const int64_t tiles = (rows + kRows - 1) / kRows;
  for (int64_t block = 0; block < layout.blocks; ++block, r += block_size) {
    int64_t row = 0;
    for (int64_t left = tiles; left > 0; --left) {
      const int64_t count = (rows - row + left - 1) / left;  // even tiles: 4 + 4 beats 6 + 2
      RowsProduct<W, kGates>(static_cast<int>(count))(input + row * width, width, r, units, sums);
      for (int64_t i = 0; i < count; ++i) finish(sums + i * kGates * kLanes, row + i, block);
      row += count;
    }
  }
}

template <class G, class W>
void StepLstm(const RecurrentStep& step, int64_t rows) {
  Pass<Lstm<G>, W, 4>(step, step.h, step.r->as<W>(), rows);
}
template <class G, class W>
void StepGruAfter(const RecurrentStep& step, int64_t rows) {
  Pass<GruAfter<G>, W, 3>(step, step.h, step.r->as<W>(), rows);
}
template <class G, class W>
void StepGruBefore(const RecurrentStep& step, int64_t rows) {
  Pass<GruBefore<G>, W, 2>(step, step.h, step.r->as<W>(), rows);
  Pass<GruNew<G>, W, 1>(step, step.reset_h, step.r_new->as<W>(), rows);
}
template <class G, class W>
void StepSimple(const RecurrentStep& step, int64_t rows) {
  Pass<Simple<G>, W, 1>(step, step.h, step.r->as<W>(), rows);
}

template <class G, class W>
RecurrentKernels KernelsOf() {
  return {kLanes, {StepLstm<G, W>, StepGruAfter<G, W>, StepGruBefore<G, W>, StepSimple<G, W>}};
}

RecurrentKernels Kernels(bool usual, Precision precision) {
  if (precision == Precision::kBf16)
    return usual ? KernelsOf<UsualGate, BFloat16>() : KernelsOf<AnyGate, BFloat16>();
  return usual ? KernelsOf<UsualGate, float>() : KernelsOf<AnyGate, float>();
}

}  // namespace
}  // namespace floe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace floe::kernels {

HWY_EXPORT(Kernels);

RecurrentKernels PickRecurrent(const ops::RecurrentSpec& spec, Precision precision) {
  using ops::RecurrentFunction;
  ChooseIsa();
  // By cell, which gates are of values.
  const auto is_value = [&](size_t k) {
    switch (spec.cell) {
      case ops::RecurrentCell::kLstm:
        return k == 2 || k == 4;
      case ops::RecurrentCell::kSimple:
        return true;
      default:
        return k == 2;
    }
  };
  bool usual = true;
  for (size_t k = 0; k < spec.gates.size(); ++k)
    usual = usual && spec.gates[k].function ==
                         (is_value(k) ? RecurrentFunction::kTanh : RecurrentFunction::kSigmoid);
  return HWY_DYNAMIC_DISPATCH(Kernels)(usual, precision);
}

}  // namespace floe::kernels
#endif
