// Time on one core: work at the rate of the op, or bytes at the rate of where they lie.
#include "kernels/step_cost.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/conv/conv_cost.h"
#include "kernels/cpu/conv/conv_numbers.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/op_cost.h"
#include "model/ops/fused_elementwise.h"

namespace floe {
namespace {

using kernels::CostBasis;
using kernels::OpCost;

// Finding the kernel, its views and its loops.
constexpr double kStepMicros = 0.07;

// Cores of servers share clocks and caches with others: of the rates of a core that is alone, so
// much is usual.
constexpr double kUsual = 0.7;

// Bytes a microsecond by how many a step touches: from the second cache, from the last, and from
// memory. Memory that was never used before is found and cleared first.
constexpr double kNearBytes = 256 << 10, kNear = 60'000;
constexpr double kFarBytes = 4 << 20, kFar = 40'000;
constexpr double kReadMemory = 30'000, kWriteMemory = 10'000;
constexpr double kFreshBytes = 1 << 20, kFresh = 2'000;
// Weights of a model that the last cache holds between runs, and of others.
constexpr double kCachedWeights = 60'000, kReadWeights = 25'000;

// A product's element costs as much as so many multiply-adds beside those of its sum, and its row
// some microseconds.
constexpr double kElementMacs = 16, kRowMicros = 0.002;

// Multiply-adds a microsecond of kernels without packed products.
constexpr double kPlainMacs = 1'000;

// Of the instruction set in use, which is looked up once.
struct Core {
  double macs_per_us;  // of large products
  double narrower;     // how much longer an element takes than with AVX-512
  kernels::GemmKernels gemm;
};

const Core& CoreOfIsa() {
  static const Core core = [] {
    const std::string isa = kernels::IsaName();
    const double narrower = isa == "avx512" ? 1 : isa == "avx2" ? 1.6 : isa == "scalar" ? 10 : 4;
    return Core{kUsual * kernels::RatesOfIsa().macs_per_us, narrower, kernels::PickGemm()};
  }();
  return core;
}

double Elements(const TensorType& type, int64_t rows) {
  if (!type.shape.rank_known()) return 1;
  double elements = 1;
  for (int axis = 0; axis < type.shape.rank(); ++axis) {
    const Dim& dim = type.shape.dim(axis);
    if (dim.known()) elements *= static_cast<double>(dim.At(rows));
  }
  return elements;
}

double Bytes(const TensorType& type, int64_t rows) {
  constexpr double kString = sizeof(std::string);
  const size_t size = DTypeSize(type.dtype);
  return Elements(type, rows) * (size == 0 ? kString : static_cast<double>(size));
}

double LastDim(const TensorType& type, int64_t rows) {
  const SymShape& shape = type.shape;
  if (!shape.rank_known() || shape.rank() == 0 || !shape.dim(shape.rank() - 1).known()) return 1;
  return static_cast<double>(shape.dim(shape.rank() - 1).At(rows));
}

// A step's parts, in the terms of the table.
class Estimate {
 public:
  explicit Estimate(const StepCall& call)
      : call_(call), cost_(kernels::CostOfOp(call.node.op->name)) {
    for (const TensorType& type : call.outputs) out_bytes_ += Bytes(type, call.rows);
    if (!call.outputs.empty()) out_ = Elements(call.outputs[0], call.rows);
    if (cost_.basis == CostBasis::kProduct) padded_ = Padded();
    moved_ =
        1 - std::min(1.0, static_cast<double>(call.bytes_in_place) / std::max(1.0, out_bytes_));
  }

  double Micros() const {
    if (const std::optional<double> route = OfRoute(); route.has_value()) return *route;
    const double work = cost_.basis == CostBasis::kProduct ? OfProduct() : OfElements(cost_) / 1000;
    return kStepMicros + std::max(work, OfBytes());
  }

 private:
  // What the candidates' own model says of the one that was chosen, for each image.
  std::optional<double> OfRoute() const {
    if (call_.kernel == nullptr || call_.outputs.empty()) return std::nullopt;
    const RouteChoice& choice = call_.kernel->choice();
    if (choice.chosen == "gemm") return std::nullopt;  // the product's rule knows short sums too
    for (const RouteChoice::Offer& offer : choice.offers) {
      if (offer.name != choice.chosen || !offer.cost_us.has_value()) continue;
      const SymShape& shape = call_.outputs[0].shape;
      if (!shape.rank_known() || shape.rank() == 0 || !shape.dim(0).known()) return std::nullopt;
      const auto images = static_cast<double>(shape.dim(0).At(call_.rows));
      return kStepMicros + images * *offer.cost_us / kUsual + OfActivation();
    }
    return std::nullopt;
  }

  double Flops() const {
    const bool known = std::all_of(call_.outputs.begin(), call_.outputs.end(),
                                   [](const TensorType& type) { return type.shape.known(); }) &&
                       std::all_of(call_.inputs.begin(), call_.inputs.end(),
                                   [](const TensorType& type) { return type.shape.known(); });
    if (call_.node.op->flops == nullptr || !known) return out_;
    return call_.node.op->flops(call_.node, call_.inputs, call_.outputs, call_.rows);
  }

  // How many columns a product computes for each that it gives: whole vectors.
  double Padded() const {
    if (call_.outputs.empty() || out_ == 0) return 1;
    const auto columns = static_cast<int64_t>(LastDim(call_.outputs[0], call_.rows));
    const auto inner = static_cast<int64_t>(Flops() / 2 / out_);
    if (columns == 0 || core_.gemm.Narrow(inner, columns)) return 1;
    return static_cast<double>(core_.gemm.PaddedColumns(columns)) / static_cast<double>(columns);
  }

  double OfProduct() const {
    const bool packed = call_.kernel != nullptr && !call_.kernel->Route().empty();
    if (!packed) return Flops() / 2 / (kPlainMacs * cost_.rate) + OfActivation();
    const double macs = (Flops() / 2 + kElementMacs * out_) * padded_;
    const double rows = out_ / std::max(1.0, LastDim(call_.outputs[0], call_.rows));
    return macs / (core_.macs_per_us * cost_.rate) + rows * kRowMicros + OfActivation();
  }

  double OfActivation() const {
    return out_ * padded_ * core_.narrower *
           kernels::CostOfActivation(EpilogueOf(call_.node.attrs).activation) / 1000;
  }

  // Nanoseconds.
  double OfElements(const OpCost& cost) const {
    if (call_.node.op->name == "FusedElementwise") return OfChain();
    double count = out_ * moved_;
    if (cost.basis == CostBasis::kFlops) count = Flops();
    if (cost.basis == CostBasis::kInput && !call_.inputs.empty())
      count = std::max(count, Elements(call_.inputs[0], call_.rows));
    if (cost.basis == CostBasis::kCubic && !call_.inputs.empty())
      count = Elements(call_.inputs[0], call_.rows) * LastDim(call_.inputs[0], call_.rows);
    const bool wide = !call_.outputs.empty() && DTypeSize(call_.outputs[0].dtype) > 4;
    return count * cost.rate * (cost.vector ? core_.narrower : 1) * (wide ? 2 : 1);
  }

  double OfChain() const {
    double rate = 0;
    const auto steps = ops::FusedStepsOf(call_.node, static_cast<int>(call_.inputs.size()));
    if (!steps.ok()) return out_;
    for (const ops::FusedStep& step : *steps) rate += kernels::CostOfOp(step.node.op->name).rate;
    return out_ * rate * core_.narrower;
  }

  double OfBytes() const {
    const bool all = cost_.basis != CostBasis::kOutput;
    double read = 0, weights = 0;
    for (size_t i = 0; i < call_.inputs.size(); ++i) {
      // What picks elements does not read the others.
      double bytes = Bytes(call_.inputs[i], call_.rows);
      if (!all) bytes = std::min(bytes, out_bytes_);
      (i < 64 && (call_.constants >> i & 1) != 0 ? weights : read) += bytes;
    }
    if (weights > 0 && call_.kernel->PackedBytes() > 0)
      weights = static_cast<double>(call_.kernel->PackedBytes());
    const auto in_place = static_cast<double>(call_.bytes_in_place);
    read = std::max(0.0, read - in_place);
    const double written = std::max(0.0, out_bytes_ - in_place), moved = read + written;
    double micros = moved / (moved <= kNearBytes ? kNear : kFar);
    if (moved > kFarBytes) micros = read / kReadMemory + written / kWriteMemory;
    if (call_.dynamic && written > kFreshBytes) micros += written / kFresh;
    return micros + weights / (call_.weights_stay_cached ? kCachedWeights : kReadWeights);
  }

  const StepCall& call_;
  const OpCost cost_;
  const Core& core_ = CoreOfIsa();
  double out_ = 0, out_bytes_ = 0;
  double moved_ = 1;   // part of the output
  double padded_ = 1;  // columns that are no whole vectors cost as much as whole ones
};

}  // namespace

double EstimateMicros(const StepCall& call) {
  return call.kernel == nullptr ? 0 : Estimate(call).Micros();
}

}  // namespace floe
