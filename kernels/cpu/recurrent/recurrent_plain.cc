#include <cmath>
#include <vector>

#include "base/status.h"
#include "kernels/cpu/recurrent/recurrent.h"
#include "kernels/cpu/run_watch.h"

namespace floe::kernels {
namespace {

using ops::RecurrentCell;
using ops::RecurrentFunction;
using ops::RecurrentGate;

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double Apply(const RecurrentGate& gate, double x) {
  constexpr double kSeluScale = 1.0507009873554805, kSeluAlpha = 1.6732632423543772;
  switch (gate.function) {
    case RecurrentFunction::kLinear:
      return x;
    case RecurrentFunction::kSigmoid:
      return Sigmoid(x);
    case RecurrentFunction::kTanh:
      return std::tanh(x);
    case RecurrentFunction::kRelu:
      return x < 0 ? 0 : x;
    case RecurrentFunction::kRelu6:
      return x < 0 ? 0 : x > 6 ? 6 : x;
    case RecurrentFunction::kElu:
      return x < 0 ? std::expm1(x) : x;
    case RecurrentFunction::kSelu:
      return kSeluScale * (x < 0 ? kSeluAlpha * std::expm1(x) : x);
    case RecurrentFunction::kLeakyRelu:
      return x < 0 ? gate.scale * x : x;
    case RecurrentFunction::kSwish:
      return x * Sigmoid(x);
    case RecurrentFunction::kSoftplus:
      return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
    case RecurrentFunction::kSoftsign:
      return x / (1 + std::abs(x));
    case RecurrentFunction::kExp:
      return std::exp(x);
    case RecurrentFunction::kHardSigmoid: {
      const double y = gate.scale * x + gate.shift;
      return y < 0 ? 0 : y > 1 ? 1 : y;
    }
  }
  return x;
}

class PlainRecurrent final : public Kernel {
 public:
  explicit PlainRecurrent(ops::RecurrentSpec spec) : spec_(std::move(spec)) {}

  std::string Route() const override { return "reference"; }

  absl::Status Run(const KernelContext& ctx) const override {
    FLOE_ASSIGN_OR_RETURN(const RecurrentSizes size, RecurrentSizes::Of(spec_, ctx.inputs));
    for (int64_t row = 0; row < size.rows; ++row) {
      FLOE_RETURN_IF_ERROR(CheckRunTime());
      RunRow(ctx, size, row);
    }
    return absl::OkStatus();
  }

 private:
  // The gates x W + b of one step.
  std::vector<double> Gates(const KernelContext& ctx, const float* x, int64_t in) const {
    const int64_t columns = spec_.columns() * spec_.units;
    const float* b = ctx.in(spec_.b()).as<float>();
    std::vector<double> z(b, b + columns);
    for (int64_t j = 0; j < columns; ++j) {
      if (spec_.projected) z[j] += x[j];
      for (int64_t k = 0; !spec_.projected && k < in; ++k)
        z[j] += static_cast<double>(x[k]) * ctx.in(spec_.w()).as<float>()[k * columns + j];
    }
    return z;
  }

  // h R of one gate's unit.
  double Recur(const KernelContext& ctx, const std::vector<double>& h, int gate, int64_t u) const {
    const int64_t columns = spec_.columns() * spec_.units;
    const float* r = ctx.in(spec_.r()).as<float>() + gate * spec_.units + u;
    double sum = 0;
    for (int64_t k = 0; k < spec_.units; ++k) sum += h[k] * r[k * columns];
    return sum;
  }

  void Step(const KernelContext& ctx, const std::vector<double>& z, std::vector<double>* h,
            std::vector<double>* c) const {
    const int64_t units = spec_.units;
    const std::vector<double> before = *h;
    const auto gate = [&](int g, int64_t u) {
      return Apply(spec_.gates[g], z[g * units + u] + Recur(ctx, before, g, u));
    };
    std::vector<double> reset(units);
    if (spec_.cell == RecurrentCell::kGruResetBefore) {
      for (int64_t u = 0; u < units; ++u) reset[u] = gate(1, u) * before[u];
    }
    for (int64_t u = 0; u < units; ++u) {
      switch (spec_.cell) {
        case RecurrentCell::kLstm:
          (*c)[u] = gate(1, u) * (*c)[u] + gate(0, u) * gate(2, u);
          (*h)[u] = gate(3, u) * Apply(spec_.gates[4], (*c)[u]);
          break;
        case RecurrentCell::kGruResetAfter:
        case RecurrentCell::kGruResetBefore: {
          const double inner =
              spec_.cell == RecurrentCell::kGruResetBefore
                  ? Recur(ctx, reset, 2, u)
                  : gate(1, u) * (Recur(ctx, before, 2, u) + ctx.in(spec_.rb()).as<float>()[u]);
          const double update = gate(0, u), fresh = Apply(spec_.gates[2], z[2 * units + u] + inner);
          (*h)[u] = update * before[u] + (1 - update) * fresh;
          break;
        }
        case RecurrentCell::kSimple:
          (*h)[u] = gate(0, u);
          break;
      }
    }
  }

  void RunRow(const KernelContext& ctx, const RecurrentSizes& size, int64_t row) const {
    const int64_t units = spec_.units;
    const float *h0 = StateRow(ctx.in(1), row, units), *c0 = nullptr;
    if (spec_.has_c()) c0 = StateRow(ctx.in(spec_.c()), row, units);
    std::vector<double> h(h0, h0 + units), c(units), out(units);
    if (c0 != nullptr) c.assign(c0, c0 + units);
    for (int64_t s = 0; s < size.steps; ++s) {
      const int64_t t = spec_.backwards ? size.time - 1 - s : s;
      const bool seen = !spec_.masked || MaskAt(spec_, ctx.in(spec_.mask()), row, s);
      const float* x = StateRow(ctx.in(0), row, size.time * size.in) + t * size.in;
      if (seen) {
        Step(ctx, Gates(ctx, x, size.in), &h, &c);
        out = h;
      } else if (spec_.zero_output) {
        out.assign(units, 0);
      }
      for (int64_t u = 0; spec_.sequence && u < units; ++u)
        ctx.out(0).as<float>()[(row * size.steps + s) * units + u] = static_cast<float>(out[u]);
    }
    for (int64_t u = 0; u < units; ++u) {
      ctx.out(1).as<float>()[row * units + u] = static_cast<float>(h[u]);
      if (spec_.has_c()) ctx.out(2).as<float>()[row * units + u] = static_cast<float>(c[u]);
    }
  }

  const ops::RecurrentSpec spec_;
};

}  // namespace

std::unique_ptr<Kernel> MakePlainRecurrent(const ops::RecurrentSpec& spec) {
  return std::make_unique<PlainRecurrent>(spec);
}

}  // namespace floe::kernels
