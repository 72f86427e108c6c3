// Draws from distributions with parameters, with TensorFlow's bits: gamma, Poisson, binomial,
// categories, and a normal distribution between bounds.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/random/stateless_random.h"
#include "kernels/cpu/random/truncated_draw.h"
#include "kernels/cpu/run_watch.h"

namespace floe::kernels {
namespace {

constexpr uint64_t kBlocksPerDraw = 256;
constexpr int64_t kDrawGrain = 512;

// Pairs of numbers of which the second is used first, as TensorFlow's buffers do.
template <void (*kFill)(Philox*, double*)>
class PairBuffer {
 public:
  double Next(Philox* numbers) {
    if (left_ == 0) {
      kFill(numbers, pair_);
      left_ = 2;
    }
    return pair_[--left_];
  }

 private:
  double pair_[2] = {0, 0};
  int left_ = 0;
};
void UnitPair(Philox* numbers, double* pair) {
  pair[0] = Unit64(numbers);
  pair[1] = Unit64(numbers);
}
void DoublePair(Philox* numbers, double* pair) { NormalPair(numbers, pair); }
using Units = PairBuffer<UnitPair>;
using Normals = PairBuffer<DoublePair>;

template <class T>
T To(double value) {
  if constexpr (std::is_integral_v<T>) {
    // A NaN, and what is out of range, is the lowest number, as on x86.
    if (!(value >= static_cast<double>(std::numeric_limits<T>::lowest()) &&
          value < -static_cast<double>(std::numeric_limits<T>::lowest())))
      return std::numeric_limits<T>::lowest();
    return static_cast<T>(value);
  } else {
    return static_cast<T>(static_cast<Compute<T>>(value));
  }
}

// Marsaglia and Tsang's method: a normal number to the third power, taken or not by a uniform one.
double Gamma(Philox numbers, double alpha) {
  Units units;
  if (alpha == 1) return -std::log1p(-units.Next(&numbers));
  Normals normals;
  const bool small = alpha < 1;
  const double d = alpha + (small ? 2.0 / 3 : -1.0 / 3), c = 1.0 / 3 / std::sqrt(d);
  for (;;) {
    const double x = normals.Next(&numbers);
    double v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    const double u = units.Next(&numbers);
    if (!std::isnan(v) && !(u < 1 - 0.0331 * (x * x) * (x * x)) &&
        !(std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v))))
      continue;
    return small ? d * v * std::pow(units.Next(&numbers), 1 / alpha) : d * v;
  }
}

// Knuth's method for small rates, Hoermann's transformed rejection for others.
double Poisson(Philox numbers, double rate) {
  Units units;
  if (std::isnan(rate) || (std::isinf(rate) && rate > 0)) return rate;
  constexpr double kSmall = 10;
  if (rate < kSmall) {
    const double least = std::exp(-rate);
    double product = 1, count = 0;
    while ((product *= units.Next(&numbers)) > least) ++count;
    return count;
  }
  const double log_rate = std::log(rate), b = 0.931 + 2.53 * std::sqrt(rate),
               a = -0.059 + 0.02483 * b, inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  for (;;) {
    const double u = units.Next(&numbers) - 0.5, v = units.Next(&numbers), us = 0.5 - std::abs(u),
                 k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2)) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v * inverse_alpha / (a / (us * us) + b)) <=
        -rate + k * log_rate - std::lgamma(k + 1))
      return k;
  }
}

// What Stirling's formula leaves out of log(k!).
double StirlingRest(double k) {
  constexpr double kRest[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983,
                              0.02079067210376509, 0.0166446911898211, 0.0138761288230707,
                              0.0118967099458917,  0.0104112652619720, 0.00925546218271273,
                              0.00833056343336287};
  if (k >= 0 && k <= 9) return kRest[static_cast<int>(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// Adds up geometric numbers until they pass `count`.
double FewSuccesses(Philox numbers, double count, double p) {
  Units units;
  double sum = 0, found = 0;
  while (!((sum += std::ceil(std::log(units.Next(&numbers)) / std::log1p(-p))) > count)) ++found;
  return found;
}

// Hoermann's transformed rejection.
double ManySuccesses(Philox numbers, double count, double p) {
  const double deviation = std::sqrt(count * p * (1 - p)), b = 1.15 + 2.53 * deviation,
               a = -0.0873 + 0.0248 * b + 0.01 * p, c = count * p + 0.5, v_r = 0.92 - 4.2 / b,
               r = p / (1 - p), alpha = (2.83 + 5.1 / b) * deviation,
               m = std::floor((count + 1) * p);
  Units units;
  for (;;) {
    const double u = units.Next(&numbers) - 0.5, v = units.Next(&numbers), us = 0.5 - std::abs(u),
                 k = std::floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || k > count) continue;
    const double most = (m + 0.5) * std::log((m + 1) / (r * (count - m + 1))) +
                        (count + 1) * std::log((count - m + 1) / (count - k + 1)) +
                        (k + 0.5) * std::log(r * (count - k + 1) / (k + 1)) + StirlingRest(m) +
                        StirlingRest(count - m) - StirlingRest(k) - StirlingRest(count - k);
    if (std::log(v * alpha / (a / (us * us) + b)) <= most) return k;
  }
}

// `start`: where the numbers of this draw's generator begin, for each way of drawing.
template <class T>
double Binomial(const Start& start, uint64_t draw, T count, T p) {
  using C = Compute<T>;
  constexpr C kMany = 10;
  constexpr uint64_t kFewBlocks = 42;
  const auto n = static_cast<double>(static_cast<C>(count));
  const C probability = static_cast<C>(p);
  if (std::isnan(n) || std::isnan(probability)) return std::numeric_limits<double>::quiet_NaN();
  if (n <= 0 || probability <= 0) return 0;
  if (probability >= 1) return n;
  const bool turned = probability > C(0.5);
  const T q = turned ? static_cast<T>(C(1) - probability) : p;
  const bool many =
      static_cast<C>(static_cast<T>(static_cast<C>(count) * static_cast<C>(q))) >= kMany;
  const auto chance = static_cast<double>(static_cast<C>(q));
  const double found = many ? ManySuccesses(start.At(kBlocksPerDraw * draw), n, chance)
                            : FewSuccesses(start.At(kFewBlocks * draw), n, chance);
  return turned ? n - found : found;
}

// ---- one parameter set for each place of the last dims, drawn from for each place before ----

struct Draws {
  int64_t batches = 1, samples = 0;
  std::vector<BudgetVector<int64_t>> places;  // of each parameter, for each batch

  // Draw i is sample i % samples of batch i / samples.
  int64_t Out(int64_t draw) const { return draw % samples * batches + draw / samples; }
};

// INVALID_ARGUMENT unless the parameters broadcast to the last dims of the output.
absl::StatusOr<Draws> DrawsOf(const KernelContext& ctx, int first) {
  const Shape& out = ctx.out(0).shape;
  Shape batch;
  for (size_t i = first; i < ctx.inputs.size(); ++i) {
    FLOE_ASSIGN_OR_RETURN(
        const SymShape joined,
        BroadcastShapes(SymShape(batch), SymShape(ctx.in(static_cast<int>(i)).shape)));
    batch = joined.At(1);
  }
  const int skip = out.rank() - batch.rank();
  bool fits = skip >= 0;
  for (int k = 0; fits && k < batch.rank(); ++k) fits = out.dim(skip + k) == batch.dim(k);
  if (!fits)
    return absl::InvalidArgumentError(absl::StrCat("the shape ", out.ToString(),
                                                   " does not end with that of the parameters, ",
                                                   batch.ToString()));
  Draws draws;
  draws.batches = batch.elements();
  draws.samples = draws.batches == 0 ? 0 : out.elements() / draws.batches;
  for (size_t i = first; i < ctx.inputs.size(); ++i) {
    const Shape& in = ctx.in(static_cast<int>(i)).shape;
    BudgetVector<int64_t> places(draws.batches);
    for (int64_t b = 0; b < draws.batches; ++b) {
      int64_t rest = b, step = 1;
      for (int k = in.rank() - 1; k >= 0; --k) {
        const int64_t dim = batch.dim(batch.rank() - in.rank() + k);
        if (in.dim(k) != 1) places[b] += rest % dim * step;
        rest /= dim;
        step *= in.dim(k);
      }
    }
    draws.places.push_back(std::move(places));
  }
  return draws;
}

absl::Status Unknown(const KernelContext& ctx, int parameter) {
  return absl::UnimplementedError(absl::StrCat("draws of ", DTypeName(ctx.out(0).dtype),
                                               " with parameters of ",
                                               DTypeName(ctx.in(parameter).dtype)));
}

// one(draw, batch): the number drawn.
template <class F>
absl::Status Fill(const KernelContext& ctx, const Draws& draws, const F& one) {
  absl::Status status = Unknown(ctx, 0);
  using Outs = TypeList<float, double, Half, BFloat16, int32_t, int64_t>;
  ForDType(ctx.out(0).dtype, Outs{}, [&](auto t) {
    using T = decltype(t);
    T* const out = ctx.out(0).as<T>();
    status = WatchedRange(ctx.pool, draws.batches * draws.samples, kDrawGrain,
                          [&](int64_t begin, int64_t end) {
                            for (int64_t i = begin; i < end; ++i)
                              out[draws.Out(i)] = To<T>(one(i, i / draws.samples));
                          });
  });
  return status;
}

template <double (*kDraw)(Philox, double), bool kSecond>
absl::Status OneParameter(const KernelContext& ctx) {
  constexpr int kParameter = kSecond ? 4 : 2;
  FLOE_ASSIGN_OR_RETURN(const Start start, StartOf<kSecond>(ctx));
  FLOE_ASSIGN_OR_RETURN(const Draws draws, DrawsOf(ctx, kParameter));
  absl::Status status = Unknown(ctx, kParameter);
  using Ins = TypeList<float, double, Half, BFloat16, int32_t, int64_t>;
  ForDType(ctx.in(kParameter).dtype, Ins{}, [&](auto t) {
    using T = decltype(t);
    const T* const in = ctx.in(kParameter).as<T>();
    status = Fill(ctx, draws, [&](int64_t draw, int64_t batch) {
      return kDraw(start.At(kBlocksPerDraw * static_cast<uint64_t>(draw)),
                   static_cast<double>(static_cast<Compute<T>>(in[batch])));
    });
  });
  return status;
}
FLOE_REGISTER_KERNEL(StatelessRandomGammaV2, kCpu, (MakeFunction<OneParameter<Gamma, false>>));
FLOE_REGISTER_KERNEL(StatelessRandomGammaV3, kCpu, (MakeFunction<OneParameter<Gamma, true>>));
FLOE_REGISTER_KERNEL(StatelessRandomPoisson, kCpu, (MakeFunction<OneParameter<Poisson, false>>));

absl::Status RunBinomial(const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(const Start start, StartOfSeed(ctx.in(1)));
  FLOE_ASSIGN_OR_RETURN(const Draws draws, DrawsOf(ctx, 2));
  absl::Status status = Unknown(ctx, 2);
  using Ins = TypeList<float, double, Half>;
  ForDType(ctx.in(2).dtype, Ins{}, [&](auto t) {
    using T = decltype(t);
    const T *const counts = ctx.in(2).as<T>(), *const chances = ctx.in(3).as<T>();
    status = Fill(ctx, draws, [&](int64_t draw, int64_t batch) {
      return Binomial(start, static_cast<uint64_t>(draw), counts[draws.places[0][batch]],
                      chances[draws.places[1][batch]]);
    });
  });
  return status;
}
FLOE_REGISTER_KERNEL(StatelessRandomBinomial, kCpu, MakeFunction<RunBinomial>);

// One generator for all draws in turn, as in TensorFlow with one thread.
template <class T>
absl::Status Truncated(const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(const Start start, StartOfSeed(ctx.in(1)));
  FLOE_ASSIGN_OR_RETURN(const Draws draws, DrawsOf(ctx, 2));
  Philox numbers = start.At(0);
  RunWatch watch;
  for (int64_t b = 0; b < draws.batches; ++b) {
    T of[4];
    for (int i = 0; i < 4; ++i) of[i] = ctx.in(2 + i).as<T>()[draws.places[i][b]];
    FLOE_ASSIGN_OR_RETURN(const TruncatedDraw<T> draw,
                          TruncatedDraw<T>::Make(of[0], of[1], of[2], of[3]));
    FLOE_RETURN_IF_ERROR(
        draw.Fill(&numbers, ctx.out(0).as<T>() + b, draws.batches, draws.samples, &watch));
  }
  return watch.status();
}
absl::Status RunTruncated(const KernelContext& ctx) {
  return ctx.out(0).dtype == DType::kFloat32 ? Truncated<float>(ctx) : Truncated<double>(ctx);
}
FLOE_REGISTER_KERNEL(StatelessParameterizedTruncatedNormal, kCpu, MakeFunction<RunTruncated>);

// Rows of logits: a number between 0 and the sum of all chances falls into one class.
template <class T, class U>
absl::Status CategoriesOf(const KernelContext& ctx, Philox numbers) {
  const TensorView& logits = ctx.in(0);
  const int64_t rows = logits.shape.dim(0), classes = logits.shape.dim(1),
                samples = ctx.out(0).shape.dim(1);
  if (classes == 0) return absl::InvalidArgumentError("logits have no classes");
  BudgetVector<double> sums(classes);
  RunWatch watch;
  for (int64_t b = 0; b < rows && !watch.Stopped(); ++b) {
    const T* const row = logits.as<T>() + b * classes;
    auto most = static_cast<double>(Lowest<T>());
    const auto value = [row](int64_t j) {
      return static_cast<double>(static_cast<Compute<T>>(row[j]));
    };
    for (int64_t j = 0; j < classes; ++j) {
      if (std::isfinite(value(j))) most = std::max(most, value(j));
    }
    double sum = 0;
    for (int64_t j = 0; j < classes; ++j) {
      if (std::isfinite(value(j))) sum += std::exp(value(j) - most);
      sums[j] = sum;
    }
    for (int64_t j = 0; j < samples; ++j)
      ctx.out(0).as<U>()[b * samples + j] = static_cast<U>(
          std::upper_bound(sums.begin(), sums.end(), Unit64(&numbers) * sum) - sums.begin());
  }
  return watch.status();
}
absl::Status Categories(const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(const Start start, StartOfSeed(ctx.in(2)));
  absl::Status status = Unknown(ctx, 0);
  ForDType(ctx.in(0).dtype, Floats{}, [&](auto t) {
    ForDType(ctx.out(0).dtype, TypeList<int32_t, int64_t>{},
             [&](auto u) { status = CategoriesOf<decltype(t), decltype(u)>(ctx, start.At(0)); });
  });
  return status;
}
FLOE_REGISTER_KERNEL(StatelessMultinomial, kCpu, MakeFunction<Categories>);

}  // namespace
}  // namespace floe::kernels
