// Random numbers. They have TensorFlow's distributions, not its sequences.
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cpu/random/random_sequence.h"

namespace floe::kernels {
namespace {

enum class Distribution : uint8_t { kUniform, kNormal, kTruncatedNormal };

template <Distribution kDistribution>
class RandomKernel : public Kernel {
 public:
  explicit RandomKernel(uint64_t seed) : sequence_(seed) {}
  absl::Status Run(const KernelContext& ctx) const override {
    const TensorView& out = ctx.out(0);
    const auto n = static_cast<uint64_t>(out.elements());
    const uint64_t first = sequence_.Reserve(n);
    const bool found = ForDType(out.dtype, Floats{}, [&](auto t) {
      using T = decltype(t);
      for (uint64_t i = 0; i < n; ++i)
        out.as<T>()[i] = static_cast<T>(static_cast<Compute<T>>(Draw(first + i, kDigits<T>)));
    });
    return found ? absl::OkStatus()
                 : absl::UnimplementedError(absl::StrCat("random ", DTypeName(out.dtype)));
  }

 private:
  // Bits of a uniform number that T holds without rounding up to 1.
  template <class T>
  static constexpr int kDigits = std::is_same_v<T, Half>       ? 11
                                 : std::is_same_v<T, BFloat16> ? 8
                                                               : std::numeric_limits<T>::digits;

  double Draw(uint64_t place, int digits) const {
    if constexpr (kDistribution == Distribution::kUniform) return sequence_.Fraction(place, digits);
    double value = sequence_.Normal(place);
    if constexpr (kDistribution == Distribution::kTruncatedNormal) {
      // Other draws come from far along the sequence.
      for (uint64_t again = 1; std::abs(value) > 2; ++again)
        value = sequence_.Normal(place + (again << 40));
    }
    return value;
  }
  mutable Sequence sequence_;
};

class RandomIntKernel : public Kernel {
 public:
  explicit RandomIntKernel(uint64_t seed) : sequence_(seed) {}
  absl::Status Run(const KernelContext& ctx) const override {
    FLOE_ASSIGN_OR_RETURN(const int64_t low, ReadInt(ctx.in(1)));
    FLOE_ASSIGN_OR_RETURN(const int64_t high, ReadInt(ctx.in(2)));
    if (low >= high)
      return absl::InvalidArgumentError(
          absl::StrCat("minval ", low, " is not below maxval ", high));
    const auto n = static_cast<uint64_t>(ctx.out(0).elements());
    const uint64_t first = sequence_.Reserve(n),
                   range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
    for (uint64_t i = 0; i < n; ++i) {
      const auto value =
          static_cast<int64_t>(static_cast<uint64_t>(low) + sequence_.At(first + i) % range);
      if (ctx.out(0).dtype == DType::kInt32)
        ctx.out(0).as<int32_t>()[i] = static_cast<int32_t>(value);
      else
        ctx.out(0).as<int64_t>()[i] = value;
    }
    return absl::OkStatus();
  }

 private:
  mutable Sequence sequence_;
};

// The slices along dim 0 in random order.
class ShuffleKernel : public Kernel {
 public:
  explicit ShuffleKernel(uint64_t seed) : sequence_(seed) {}
  absl::Status Run(const KernelContext& ctx) const override {
    const TensorView &in = ctx.in(0), &out = ctx.out(0);
    const int64_t n = in.shape.rank() == 0 ? 1 : in.shape.dim(0);
    if (in.elements() == 0) return absl::OkStatus();
    const int64_t slice = in.elements() / n,
                  bytes = slice * static_cast<int64_t>(ElementBytes(in.dtype));
    const uint64_t first = sequence_.Reserve(static_cast<uint64_t>(n));
    std::vector<int64_t> order(n);
    for (int64_t i = 0; i < n; ++i) {
      const auto k = static_cast<int64_t>(sequence_.At(first + static_cast<uint64_t>(i)) %
                                          static_cast<uint64_t>(i + 1));
      order[i] = order[k];
      order[k] = i;
    }
    for (int64_t i = 0; i < n; ++i)
      CopyElements(in.dtype, in.as<char>() + order[i] * bytes, out.as<char>() + i * bytes, slice);
    return absl::OkStatus();
  }

 private:
  mutable Sequence sequence_;
};

// Classes with the probabilities that the logits give: the largest of logit plus Gumbel noise.
template <class T>
class MultinomialKernel : public Kernel {
 public:
  explicit MultinomialKernel(uint64_t seed) : sequence_(seed) {}
  absl::Status Run(const KernelContext& ctx) const override {
    const int64_t classes = ctx.in(0).shape.dim(1), draws = ctx.out(0).shape.dim(1),
                  n = ctx.out(0).elements();
    if (classes == 0 && n > 0) return absl::InvalidArgumentError("the logits have no classes");
    uint64_t place = sequence_.Reserve(static_cast<uint64_t>(n * classes));
    for (int64_t i = 0; i < n; ++i) {
      const T* logits = ctx.in(0).as<T>() + i / draws * classes;
      int64_t best = 0;
      double top = -INFINITY;
      for (int64_t c = 0; c < classes; ++c) {
        const double score = static_cast<double>(static_cast<Compute<T>>(logits[c])) -
                             std::log(-std::log1p(-sequence_.Unit(place++)));
        if (score > top) {
          top = score;
          best = c;
        }
      }
      if (ctx.out(0).dtype == DType::kInt32)
        ctx.out(0).as<int32_t>()[i] = static_cast<int32_t>(best);
      else
        ctx.out(0).as<int64_t>()[i] = best;
    }
    return absl::OkStatus();
  }

 private:
  mutable Sequence sequence_;
};

template <class K>
absl::StatusOr<std::unique_ptr<Kernel>> MakeRandom(const KernelArgs& args) {
  return std::make_unique<K>(SeedOf(args.node.attrs));
}
FLOE_REGISTER_KERNEL(RandomUniform, kCpu, MakeRandom<RandomKernel<Distribution::kUniform>>);
FLOE_REGISTER_KERNEL(RandomStandardNormal, kCpu, MakeRandom<RandomKernel<Distribution::kNormal>>);
FLOE_REGISTER_KERNEL(TruncatedNormal, kCpu,
                     MakeRandom<RandomKernel<Distribution::kTruncatedNormal>>);
FLOE_REGISTER_KERNEL(RandomUniformInt, kCpu, MakeRandom<RandomIntKernel>);
FLOE_REGISTER_KERNEL(RandomShuffle, kCpu, MakeRandom<ShuffleKernel>);
FLOE_REGISTER_KERNELS(Multinomial, kCpu, MakeRandom<MultinomialKernel<T>>, Floats);

}  // namespace
}  // namespace floe::kernels
