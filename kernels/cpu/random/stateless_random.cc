// Random numbers from a seed given as an input, with TensorFlow's bits: blocks of four numbers by
// Philox, each output element made of numbers of its own.
#include "kernels/cpu/random/stateless_random.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cpu/parallel.h"

namespace floe::kernels {
namespace {

constexpr int32_t kAutomatic = 3;

}  // namespace

absl::StatusOr<Start> StartOfSeed(const TensorView& seed) {
  if (seed.elements() != 2)
    return absl::InvalidArgumentError(
        absl::StrCat("the seed has shape ", seed.shape.ToString(), ", expected [2]"));
  uint64_t numbers[2];
  const bool known =
      ForDType(seed.dtype, TypeList<int32_t, int64_t, uint32_t, uint64_t>{}, [&](auto t) {
        for (int i = 0; i < 2; ++i) numbers[i] = static_cast<uint64_t>(seed.as<decltype(t)>()[i]);
      });
  if (!known) return absl::InvalidArgumentError(absl::StrCat("a seed of ", DTypeName(seed.dtype)));
  Philox mixer(0x02461e293ec8f720, numbers[1], numbers[0]);
  uint64_t mixed[4];
  for (uint64_t& m : mixed) m = mixer.Next();
  return Start{mixed[0] | mixed[1] << 32, 0, mixed[2] | mixed[3] << 32};
}

absl::StatusOr<Start> StartOfCounter(const KernelContext& ctx) {
  const int32_t algorithm = *ctx.in(3).as<int32_t>();
  if (algorithm != kPhiloxAlgorithm && algorithm != kAutomatic)
    return absl::UnimplementedError(absl::StrCat("random algorithm ", algorithm,
                                                 ", only 1 (Philox) and 3 (automatic) are there"));
  if (ctx.in(1).elements() != 1 || ctx.in(2).elements() < 2)
    return absl::InvalidArgumentError(absl::StrCat("key ", ctx.in(1).shape.ToString(),
                                                   " and counter ", ctx.in(2).shape.ToString(),
                                                   ", expected [1] and [2]"));
  const auto* counter = ctx.in(2).as<uint64_t>();
  return Start{*ctx.in(1).as<uint64_t>(), counter[0], counter[1]};
}

namespace {

uint64_t Next64(Philox* numbers) {
  const uint64_t low = numbers->Next();
  return low | static_cast<uint64_t>(numbers->Next()) << 32;
}

// ---- distributions: elements of one block, or for truncated normals of one group ----

template <class T>
constexpr int kPerBlock = sizeof(T) == 8 ? 2 : 4;

template <class T>
struct Uniform {
  static constexpr uint64_t kBlocks = 1;
  void operator()(Philox* numbers, T* out) const {
    for (int i = 0; i < kPerBlock<T>; ++i) {
      if constexpr (std::is_same_v<T, double>) {
        out[i] = Unit64(numbers);
      } else if constexpr (std::is_same_v<T, float>) {
        out[i] = numbers->Unit();
      } else {
        constexpr uint32_t kDigits = std::is_same_v<T, Half> ? 10 : 7;
        const uint32_t digits = numbers->Next() & ((1u << kDigits) - 1);
        out[i] = static_cast<T>(std::ldexp(static_cast<float>(digits), -static_cast<int>(kDigits)));
      }
    }
  }
};

template <class T>
struct Normal {
  static constexpr uint64_t kBlocks = 1;
  void operator()(Philox* numbers, T* out) const {
    for (int i = 0; i < kPerBlock<T>; i += 2) {
      Compute<T> pair[2];
      NormalPair(numbers, pair);
      out[i] = static_cast<T>(pair[0]);
      out[i + 1] = static_cast<T>(pair[1]);
    }
  }
};

// Each element has 256 numbers to draw from.
template <class T>
struct TruncatedNormal {
  static constexpr uint64_t kBlocks = kPerBlock<T> * 256 / 4;
  void operator()(Philox* numbers, T* out) const {
    for (int found = 0; found < kPerBlock<T>;) {
      Compute<T> pair[2];
      NormalPair(numbers, pair);
      for (int k = 0; k < 2 && found < kPerBlock<T>; ++k) {
        if (std::abs(pair[k]) < Compute<T>(2)) out[found++] = static_cast<T>(pair[k]);
      }
    }
  }
};

template <class T>
struct WholeNumbers {
  static constexpr uint64_t kBlocks = 1;
  std::make_unsigned_t<T> low = 0, width = 0;  // a width of 0: every number
  void operator()(Philox* numbers, T* out) const {
    for (int i = 0; i < kPerBlock<T>; ++i) {
      std::make_unsigned_t<T> number = 0;
      if constexpr (sizeof(T) == 8) {
        number = Next64(numbers);
      } else {
        number = numbers->Next();
      }
      out[i] = static_cast<T>(low + (width == 0 ? number : number % width));
    }
  }
};

template <class T, class D>
void Draw(const KernelContext& ctx, const Start& start, const D& distribution) {
  const TensorView& out = ctx.out(0);
  constexpr int64_t kGroup = kPerBlock<T>;
  const int64_t n = out.elements(), groups = (n + kGroup - 1) / kGroup;
  ParallelRange(ctx.pool, groups, kElementGrain / 8, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) {
      Philox numbers = start.At(static_cast<uint64_t>(group) * D::kBlocks);
      T drawn[kGroup];
      distribution(&numbers, drawn);
      std::copy_n(drawn, std::min(kGroup, n - group * kGroup), out.as<T>() + group * kGroup);
    }
  });
}

absl::Status Unknown(DType dtype) {
  return absl::UnimplementedError(absl::StrCat("random ", DTypeName(dtype)));
}

template <template <class> class D, bool kSecond>
absl::Status Floating(const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(const Start start, StartOf<kSecond>(ctx));
  const bool known = ForDType(ctx.out(0).dtype, Floats{}, [&](auto t) {
    using T = decltype(t);
    Draw<T>(ctx, start, D<T>());
  });
  return known ? absl::OkStatus() : Unknown(ctx.out(0).dtype);
}

using WordTypes = TypeList<int32_t, int64_t, uint32_t, uint64_t>;

template <bool kSecond>
absl::Status FullInt(const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(const Start start, StartOf<kSecond>(ctx));
  const bool known = ForDType(ctx.out(0).dtype, WordTypes{}, [&](auto t) {
    using T = decltype(t);
    Draw<T>(ctx, start, WholeNumbers<T>());
  });
  return known ? absl::OkStatus() : Unknown(ctx.out(0).dtype);
}

template <bool kSecond>
absl::Status Int(const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(const Start start, StartOf<kSecond>(ctx));
  constexpr int kLow = kSecond ? 4 : 2;
  absl::Status status;
  const bool known = ForDType(ctx.out(0).dtype, WordTypes{}, [&](auto t) {
    using T = decltype(t);
    using U = std::make_unsigned_t<T>;
    const T low = *ctx.in(kLow).as<T>(), high = *ctx.in(kLow + 1).as<T>();
    if (low >= high) {
      status =
          absl::InvalidArgumentError(absl::StrCat("minval ", low, " is not below maxval ", high));
      return;
    }
    Draw<T>(ctx, start,
            WholeNumbers<T>{static_cast<U>(low),
                            static_cast<U>(static_cast<U>(high) - static_cast<U>(low))});
  });
  return known ? status : Unknown(ctx.out(0).dtype);
}

FLOE_REGISTER_KERNEL(StatelessRandomUniform, kCpu, (MakeFunction<Floating<Uniform, false>>));
FLOE_REGISTER_KERNEL(StatelessRandomNormal, kCpu, (MakeFunction<Floating<Normal, false>>));
FLOE_REGISTER_KERNEL(StatelessTruncatedNormal, kCpu,
                     (MakeFunction<Floating<TruncatedNormal, false>>));
FLOE_REGISTER_KERNEL(StatelessRandomUniformInt, kCpu, MakeFunction<Int<false>>);
FLOE_REGISTER_KERNEL(StatelessRandomUniformFullInt, kCpu, MakeFunction<FullInt<false>>);
FLOE_REGISTER_KERNEL(StatelessRandomUniformV2, kCpu, (MakeFunction<Floating<Uniform, true>>));
FLOE_REGISTER_KERNEL(StatelessRandomNormalV2, kCpu, (MakeFunction<Floating<Normal, true>>));
FLOE_REGISTER_KERNEL(StatelessTruncatedNormalV2, kCpu,
                     (MakeFunction<Floating<TruncatedNormal, true>>));
FLOE_REGISTER_KERNEL(StatelessRandomUniformIntV2, kCpu, MakeFunction<Int<true>>);
FLOE_REGISTER_KERNEL(StatelessRandomUniformFullIntV2, kCpu, MakeFunction<FullInt<true>>);

void GiveAlgorithm(const KernelContext& ctx, size_t output) {
  if (output < ctx.outputs.size() && ctx.outputs[output].data != nullptr)
    *ctx.outputs[output].as<int32_t>() = kPhiloxAlgorithm;
}
absl::Status KeyCounter(const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(const Start start, StartOfSeed(ctx.in(0)));
  if (ctx.out(0).data != nullptr) *ctx.out(0).as<uint64_t>() = start.key;
  if (ctx.out(1).data != nullptr) {
    ctx.out(1).as<uint64_t>()[0] = start.low;
    ctx.out(1).as<uint64_t>()[1] = start.high;
  }
  GiveAlgorithm(ctx, 2);
  return absl::OkStatus();
}
absl::Status Algorithm(const KernelContext& ctx) {
  GiveAlgorithm(ctx, 0);
  return absl::OkStatus();
}
FLOE_REGISTER_KERNEL(StatelessRandomGetKeyCounter, kCpu, MakeFunction<KeyCounter>);
FLOE_REGISTER_KERNEL(StatelessRandomGetKeyCounterAlg, kCpu, MakeFunction<KeyCounter>);
FLOE_REGISTER_KERNEL(StatelessRandomGetAlg, kCpu, MakeFunction<Algorithm>);

}  // namespace
}  // namespace floe::kernels
