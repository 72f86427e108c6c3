// FusedRecurrent: one product for x W of all steps, and one launch for the rest.
#include "model/ops/recurrent.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/aligned_buffer.h"
#include "base/status.h"
#include "kernels/cpu/gemm/gemm_operands.h"
#include "kernels/cpu/recurrent/recurrent.h"
#include "kernels/cuda/emit/product.h"

namespace floe::cuda {
namespace {

using kernels::RecurrentSizes;
using ops::RecurrentCell;
using ops::RecurrentFunction;
using ops::RecurrentSpec;

Activation ActivationOf(RecurrentFunction function) {
  switch (function) {
    case RecurrentFunction::kLinear:
    case RecurrentFunction::kHardSigmoid:
      return Activation::kNone;
    case RecurrentFunction::kSigmoid:
      return Activation::kSigmoid;
    case RecurrentFunction::kTanh:
      return Activation::kTanh;
    case RecurrentFunction::kRelu:
      return Activation::kRelu;
    case RecurrentFunction::kRelu6:
      return Activation::kRelu6;
    case RecurrentFunction::kElu:
      return Activation::kElu;
    case RecurrentFunction::kSelu:
      return Activation::kSelu;
    case RecurrentFunction::kLeakyRelu:
      return Activation::kLeakyRelu;
    case RecurrentFunction::kSwish:
      return Activation::kSwish;
    case RecurrentFunction::kSoftplus:
      return Activation::kSoftplus;
    case RecurrentFunction::kSoftsign:
      return Activation::kSoftsign;
    case RecurrentFunction::kExp:
      return Activation::kExp;
  }
  return Activation::kNone;
}

RecurrentKind KindOf(RecurrentCell cell) {
  switch (cell) {
    case RecurrentCell::kLstm:
      return RecurrentKind::kLstm;
    case RecurrentCell::kGruResetAfter:
      return RecurrentKind::kGruResetAfter;
    case RecurrentCell::kGruResetBefore:
      return RecurrentKind::kGruResetBefore;
    case RecurrentCell::kSimple:
      return RecurrentKind::kSimple;
  }
  return RecurrentKind::kSimple;
}

// Elements from one row of a state to the next; 0 where it has one for all.
int64_t RowStep(const TensorView& state) {
  return state.shape.dim(0) == 1 ? 0 : state.elements() / state.shape.dim(0);
}

class Recurrent final : public DeviceKernel {
 public:
  Recurrent(const KernelArgs& args, RecurrentSpec spec) : spec_(std::move(spec)) {
    if (spec_.projected || !args.inputs[w()].has_constant()) return;
    const Tensor& weights = args.inputs[w()].constant;
    if (weights.shape().dim(1) == FactorColumns(weights.shape().dim(1)) && weights.elements() != 0)
      weights_.push_back(weights);
  }

  absl::Span<const Tensor> Weights() const override { return weights_; }
  bool NeedsInput(int i) const override { return i != spec_.w() || weights_.empty(); }

  int64_t ScratchBytes(absl::Span<const Shape> inputs,
                       absl::Span<const Shape> outputs) const override {
    return kernels::ScratchPieces::Bytes({StateFloats(outputs[1].dim(0)), InputFloats(inputs[0])});
  }

  void Emit(const DeviceAddresses& addresses, std::vector<Launch>* launches) const override {
    const Shape& x = addresses.in(0).shape;
    const absl::StatusOr<RecurrentSizes> size = RecurrentSizes::Of(spec_, addresses.inputs);
    // ComputesRecurrent() has seen that the sizes fit.
    if (!size.ok() || size->rows == 0) return;
    kernels::ScratchPieces pieces(addresses.scratch);
    RecurrentArgs args = {};
    args.state = pieces.Floats(StateFloats(size->rows));
    args.z = addresses.in(0).as<float>();
    if (!spec_.projected) {
      float* const product = pieces.Floats(InputFloats(x));
      EmitInput(addresses, product, launches);
      args.z = product;
    }
    args.z_row = x.dim(0) == 1 ? 0 : x.dim(1) * columns();
    args.bias = addresses.in(spec_.b()).as<float>();
    if (spec_.rb() >= 0) args.inner_bias = addresses.in(spec_.rb()).as<float>();
    args.r = addresses.in(spec_.r()).as<float>();
    args.h = addresses.in(1).as<float>();
    args.h_row = RowStep(addresses.in(1));
    if (spec_.has_c()) {
      args.c = addresses.in(spec_.c()).as<float>();
      args.c_row = RowStep(addresses.in(spec_.c()));
      args.last_c = addresses.out(2).as<float>();
    }
    if (spec_.masked) {
      const TensorView& mask = addresses.in(spec_.mask());
      args.mask = mask.as<uint8_t>();
      args.mask_row = RowStep(mask);
      args.mask_time = static_cast<int32_t>(mask.shape.dim(1));
    }
    if (spec_.sequence) args.sequence = addresses.out(0).as<float>();
    args.last_h = addresses.out(1).as<float>();
    for (size_t i = 0; i < spec_.gates.size(); ++i) {
      const ops::RecurrentGate& gate = spec_.gates[i];
      args.gates[i] = {ActivationOf(gate.function),
                       gate.function == RecurrentFunction::kHardSigmoid, gate.scale, gate.shift};
    }
    args.rows = static_cast<int32_t>(size->rows);
    args.time = static_cast<int32_t>(size->time);
    args.steps = static_cast<int32_t>(size->steps);
    args.units = static_cast<int32_t>(spec_.units);
    args.columns = static_cast<int32_t>(spec_.columns());
    args.kind = KindOf(spec_.cell);
    args.backwards = spec_.backwards;
    args.zero_output = spec_.zero_output;
    const RecurrentRoom room = Room();
    const KernelId kernel = room == RecurrentRoom::kAll      ? KernelId::recurrent_kept
                            : room == RecurrentRoom::kStates ? KernelId::recurrent
                                                             : KernelId::recurrent_wide;
    launches->push_back(Launch::Of(kernel, {Blocks(size->rows, kRecurrentRows), 1, 1}, args));
  }

 private:
  size_t w() const { return static_cast<size_t>(spec_.w()); }
  int64_t columns() const { return spec_.columns() * spec_.units; }
  RecurrentRoom Room() const { return RecurrentRoomFor(spec_.units, spec_.columns()); }
  // Affine in the rows, and enough for whole blocks of them.
  int64_t StateFloats(int64_t rows) const {
    if (Room() != RecurrentRoom::kNone) return 0;
    return (rows + kRecurrentRows - 1) * RecurrentStateFloats(spec_.units) / kRecurrentRows;
  }
  int64_t InputFloats(const Shape& x) const {
    return spec_.projected ? 0 : x.dim(0) * x.dim(1) * columns();
  }

  void EmitInput(const DeviceAddresses& addresses, float* product,
                 std::vector<Launch>* launches) const {
    const Shape& x = addresses.in(0).shape;
    GemmArgs args = {};
    args.a = addresses.in(0).as<float>();
    args.a_row = x.dim(2);
    args.a_column = 1;
    args.b = weights_.empty()
                 ? PlainFactor(addresses.in(spec_.w()).as<float>(), columns(), 1, columns(), 4)
                 : PackedFactor(addresses.weight<float>(0), columns());
    args.c = product;
    args.c_row = columns();
    args.a_vectors = x.dim(2) % 4 == 0 && Aligned(args.a);
    args.c_vectors = columns() % 4 == 0 && Aligned(args.c);
    args.m = static_cast<int32_t>(x.dim(0) * x.dim(1));
    args.n = static_cast<int32_t>(columns());
    args.k = static_cast<int32_t>(x.dim(2));
    std::fill_n(args.batch, kMaxBatchDims, 1);
    AppendGemm(args, 1, launches);
  }

  const RecurrentSpec spec_;
  std::vector<Tensor> weights_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeRecurrent(const KernelArgs& args) {
  FLOE_ASSIGN_OR_RETURN(RecurrentSpec spec, RecurrentSpec::FromAttrs(args.node.attrs));
  return std::make_unique<Recurrent>(args, std::move(spec));
}

// Rows may be rows; all else is known and fits.
bool ComputesRecurrent(const KernelArgs& args) {
  const auto spec = RecurrentSpec::FromAttrs(args.node.attrs);
  constexpr int64_t kMostUnits = 1 << 14;  // places in r are counted in 32 bits
  if (!spec.ok() || spec->units > kMostUnits || spec->units == 0) return false;
  if (static_cast<int>(args.inputs.size()) != spec->inputs()) return false;
  for (const ValueInfo& input : args.inputs) {
    if (!KnownInside(input.type.shape)) return false;
  }
  const auto dim = [&](int i, int axis) {
    return args.inputs[static_cast<size_t>(i)].type.shape.dim(axis).size();
  };
  const int64_t columns = spec->columns() * spec->units, time = dim(0, 1);
  const int64_t steps = spec->steps > 0 ? spec->steps : time;
  if (steps == 0 || steps > time || (spec->masked && dim(spec->mask(), 1) < steps)) return false;
  if (!spec->projected &&
      (dim(spec->w(), 0) != dim(0, 2) || dim(spec->w(), 1) != columns || columns > kMostColumns)) {
    return false;
  }
  Dim rows(1);
  for (int i = 0; i < spec->weights(); ++i) {
    const Dim size = args.inputs[static_cast<size_t>(i)].type.shape.dim(0);
    if (size == Dim(1)) continue;
    if (!size.known() || (rows != Dim(1) && rows != size)) return false;
    rows = size;
  }
  return (!spec->projected || dim(0, 2) == columns) && dim(1, 1) == spec->units &&
         (!spec->has_c() || dim(spec->c(), 1) == spec->units) && dim(spec->r(), 0) == spec->units &&
         dim(spec->r(), 1) == columns && dim(spec->b(), 0) == columns &&
         (spec->rb() < 0 || dim(spec->rb(), 0) == spec->units);
}

const KernelRegistrar kRecurrent("FusedRecurrent", DeviceKind::kCuda, {DType::kFloat32},
                                 MakeRecurrent, {.computes = ComputesRecurrent});

}  // namespace
}  // namespace floe::cuda
