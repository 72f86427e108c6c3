#include "kernels/cpu/recurrent/recurrent.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/gemm/gemm_operands.h"
#include "kernels/cpu/gemm/packed_memory.h"
#include "kernels/cpu/run_watch.h"
#include "model/ops/recurrent_pair.h"

namespace floe::kernels {

using ops::RecurrentCell;
using ops::RecurrentSpec;

absl::StatusOr<RecurrentSizes> RecurrentSizes::Of(const RecurrentSpec& spec,
                                                  absl::Span<const TensorView> inputs) {
  const Shape& x = inputs[0].shape;
  RecurrentSizes size{x.dim(0), x.dim(1), x.dim(2), spec.steps > 0 ? spec.steps : x.dim(1)};
  for (int i = 1; i < spec.weights(); ++i) {
    const int64_t rows = inputs[i].shape.dim(0);
    if (size.rows == 1) size.rows = rows;
    if (rows != 1 && rows != size.rows)
      return absl::InvalidArgumentError(absl::StrCat("the recurrent layer has a state of ", rows,
                                                     " rows for a batch of ", size.rows));
  }
  if (size.steps > size.time || size.steps == 0)
    return absl::InvalidArgumentError(absl::StrCat("the recurrent layer is to run ", size.steps,
                                                   " steps of a sequence of ", size.time));
  if (spec.masked && inputs[spec.mask()].shape.dim(1) < size.steps)
    return absl::InvalidArgumentError(absl::StrCat("the mask ",
                                                   inputs[spec.mask()].shape.ToString(),
                                                   " is too short for ", size.steps, " steps"));
  if (!spec.projected && inputs[spec.w()].shape.dim(0) != size.in)
    return absl::InvalidArgumentError(absl::StrCat(
        "the recurrent layer takes ", inputs[spec.w()].shape.dim(0), " features, not ", size.in));
  return size;
}

namespace {

// Rows of gates that are computed at once, for several steps of a small batch: as many as share
// the loads of the packed W.
constexpr int64_t kGateRows = 96;

// Multiply-adds below which waking other threads costs more than it saves.
constexpr double kRecurrentSerialBelow = 2e6;

class FusedRecurrent final : public Kernel {
 public:
  FusedRecurrent(const KernelArgs& args, RecurrentSpec spec)
      : spec_(std::move(spec)),
        gemm_(PickGemm()),
        kernels_(PickRecurrent(spec_, args.options.precision)) {
    layout_.lanes = kernels_.lanes;
    layout_.units = spec_.units;
    layout_.blocks = (spec_.units + layout_.lanes - 1) / layout_.lanes;
    layout_.gates = spec_.columns();
    const auto constant = [&](int i) { return args.inputs[i].constant.as<float>(); };
    const Precision precision = args.options.precision;
    if (!spec_.projected) input_ = {PackInput(args.inputs[spec_.w()].constant), precision};
    bias_ = PaddedGates(constant(spec_.b()), layout_.gates);
    if (spec_.rb() >= 0) inner_bias_ = PaddedGates(constant(spec_.rb()), 1);
    const int first = spec_.cell == RecurrentCell::kGruResetBefore ? 2 : layout_.gates;
    recurrent_ = {PackRecurrent(constant(spec_.r()), 0, first), precision};
    if (first < layout_.gates)
      recurrent_new_ = {PackRecurrent(constant(spec_.r()), first, 1), precision};
  }

  int64_t ScratchBytes(absl::Span<const Shape> inputs, absl::Span<const Shape>) const override {
    int64_t rows = 1;
    for (int i = 0; i < spec_.weights(); ++i) rows = std::max(rows, inputs[i].dim(0));
    return ScratchPieces::Bytes({ScratchFloats({kGateRows + rows, layout_.gate_width()}),
                                 ScratchFloats({rows, kStates, layout_.width()})});
  }
  std::string Route() const override {
    return absl::StrCat(RecurrentCellName(spec_.cell), " ", NativeRoute(gemm_),
                        recurrent_.bf16() ? ", bf16 weights" : "");
  }
  bool NeedsInput(int i) const override { return i < spec_.weights(); }
  size_t PackedBytes() const override {
    return input_.size() + bias_.size() + inner_bias_.size() + recurrent_.size() +
           recurrent_new_.size();
  }

  absl::StatusOr<RecurrentSizes> SizesOf(absl::Span<const TensorView> inputs) const {
    return RecurrentSizes::Of(spec_, inputs);
  }
  double Products(const RecurrentSizes& size) const {
    return static_cast<double>(size.rows * size.steps) * static_cast<double>(layout_.gate_width()) *
           static_cast<double>(layout_.units + (spec_.projected ? 0 : size.in));
  }
  // All of it on this thread.
  absl::Status RunHere(const KernelContext& ctx, const RecurrentSizes& size,
                       RunWatch* watch) const {
    return RunPart(ctx, size, {0, 0, size.rows, kGateRows, false}, watch);
  }

  absl::Status Run(const KernelContext& ctx) const override {
    FLOE_ASSIGN_OR_RETURN(const RecurrentSizes size, SizesOf(ctx.inputs));
    if (size.rows == 0) return absl::OkStatus();
    const bool serial = Products(size) < kRecurrentSerialBelow;
    const int64_t parts = serial ? 1 : std::min<int64_t>(ctx.pool->threads(), size.rows);
    RunWatch watch;
    if (parts == 1) {
      FLOE_RETURN_IF_ERROR(RunPart(ctx, size, {0, 0, size.rows, kGateRows, !serial}, &watch));
      return watch.status();
    }
    ctx.pool->ParallelFor(parts, [&](int64_t i) {
      const Part part{i, size.rows * i / parts, size.rows * (i + 1) / parts, kGateRows / parts,
                      false};
      RunPart(ctx, size, part, &watch).IgnoreError();
    });
    return watch.status();
  }

 private:
  static constexpr int kStates = 6;  // h twice, c, update, reset h, and what masked rows keep

  // Rows [begin, end) of the batch. The parts of a run share its scratch.
  struct Part {
    int64_t number;
    int64_t begin, end;
    int64_t gate_rows;
    bool whole;  // may use the pool
    int64_t rows() const { return end - begin; }
  };

  // Where the memory of a part is.
  struct Memory {
    float *gates, *h, *h_next, *c, *update, *reset_h, *kept;
  };

  float* Floats(const AlignedBuffer& buffer) const {
    return reinterpret_cast<float*>(buffer.data());
  }

  // Vectors of `gates` times `units` numbers in the order of a step's gates; padding is 0.
  AlignedBuffer PaddedGates(const float* from, int gates) const {
    AlignedBuffer buffer(static_cast<size_t>(layout_.width() * gates) * sizeof(float));
    SpreadGates(from, gates, Floats(buffer));
    return buffer;
  }
  void SpreadGates(const float* from, int gates, float* to) const {
    for (int64_t block = 0; block < layout_.blocks; ++block) {
      const int64_t begin = block * layout_.lanes, count = Columns(block);
      for (int g = 0; g < gates; ++g, to += layout_.lanes) {
        std::memcpy(to, from + g * layout_.units + begin, count * sizeof(float));
        std::fill(to + count, to + layout_.lanes, 0.0f);
      }
    }
  }
  int64_t Columns(int64_t block) const {
    return std::min(layout_.lanes, layout_.units - block * layout_.lanes);
  }

  // W for the packed multiplication, its columns in the order of a step's gates.
  AlignedBuffer PackInput(const Tensor& w) const {
    const int64_t k = w.shape().dim(0), columns = layout_.gates * layout_.units,
                  vectors = layout_.blocks * layout_.gates, lanes = layout_.lanes;
    AlignedBuffer packed =
        PackedMemory(gemm_.PackedFloats(k, layout_.gate_width()) * sizeof(float));
    for (int64_t v = 0; v < vectors; ++v) {
      const int64_t block = v / layout_.gates, gate = v % layout_.gates, count = Columns(block);
      const int64_t width = v == vectors - 1 && v % 2 == 0 ? lanes : 2 * lanes;
      const float* from = w.as<float>() + gate * layout_.units + block * lanes;
      float* to = Floats(packed) + v / 2 * 2 * lanes * k + v % 2 * lanes;
      for (int64_t i = 0; i < k; ++i, from += columns, to += width) {
        std::memcpy(to, from, count * sizeof(float));
        std::fill(to + count, to + lanes, 0.0f);
      }
    }
    return packed;
  }

  // Gates [first, first + gates) of R, as RecurrentStep has it.
  AlignedBuffer PackRecurrent(const float* r, int first, int gates) const {
    AlignedBuffer buffer =
        PackedMemory(static_cast<size_t>(layout_.PackedFloats(gates)) * sizeof(float));
    float* to = Floats(buffer);
    for (int64_t block = 0; block < layout_.blocks; ++block) {
      for (int64_t k = 0; k < layout_.units; ++k) {
        for (int g = first; g < first + gates; ++g, to += layout_.lanes) {
          const float* from = r + (k * layout_.gates + g) * layout_.units + block * layout_.lanes;
          std::memcpy(to, from, Columns(block) * sizeof(float));
          std::fill(to + Columns(block), to + layout_.lanes, 0.0f);
        }
      }
    }
    return buffer;
  }

  Memory MemoryOf(const KernelContext& ctx, const RecurrentSizes& size, const Part& part) const {
    ScratchPieces pieces(ctx.scratch);
    float* gates = pieces.Floats((kGateRows + size.rows) * layout_.gate_width());
    float* states = pieces.Floats(size.rows * kStates * layout_.width());
    // Each part has its own gate_rows and a row more for each of its rows.
    gates += (part.number * part.gate_rows + part.begin) * layout_.gate_width();
    states += part.begin * kStates * layout_.width();
    const int64_t each = part.rows() * layout_.width();
    return {gates,
            states,
            states + each,
            states + 2 * each,
            states + 3 * each,
            states + 4 * each,
            states + 5 * each};
  }

  // x W + b of steps [first, first + count) in order of time, row by row.
  absl::Status Gates(const KernelContext& ctx, const RecurrentSizes& size, const Part& part,
                     int64_t first, int64_t count, float* to) const {
    const int64_t line = ctx.in(0).shape.dim(0) == 1 ? 0 : size.time * size.in;
    const float* x = StateRow(ctx.in(0), part.begin, size.time * size.in) + first * size.in;
    if (spec_.projected) {
      const float* bias = Floats(bias_);
      for (int64_t row = 0; row < part.rows(); ++row) {
        for (int64_t s = 0; s < count; ++s, to += layout_.gate_width()) {
          SpreadGates(x + row * line + s * size.in, layout_.gates, to);
          for (int64_t j = 0; j < layout_.gate_width(); ++j) to[j] += bias[j];
        }
      }
      return absl::OkStatus();
    }
    GemmTask task;
    task.a = {x, count, size.in, line};
    task.runs.length = size.in;
    input_.PutInto(&task);
    task.bias = Floats(bias_);
    task.n = task.ldc = layout_.gate_width();
    task.c = to;
    const int64_t rows = part.rows() * count;
    if (part.whole) return RunGemm(gemm_, task, rows, *ctx.pool);
    gemm_.run(task, 0, rows, 0, gemm_.panels(task.n));
    return absl::OkStatus();
  }

  // A state [rows or 1, units] as padded rows, and back.
  void LoadState(const TensorView& from, const Part& part, float* to) const {
    for (int64_t row = part.begin; row < part.end; ++row, to += layout_.width()) {
      std::memcpy(to, StateRow(from, row, layout_.units), layout_.units * sizeof(float));
      std::fill(to + layout_.units, to + layout_.width(), 0.0f);
    }
  }
  void StoreState(const float* from, const Part& part, float* to, int64_t stride) const {
    for (int64_t row = part.begin; row < part.end; ++row, from += layout_.width())
      std::memcpy(to + row * stride, from, layout_.units * sizeof(float));
  }

  absl::Status RunPart(const KernelContext& ctx, const RecurrentSizes& size, const Part& part,
                       RunWatch* watch) const {
    Memory memory = MemoryOf(ctx, size, part);
    LoadState(ctx.in(1), part, memory.h);
    if (spec_.has_c()) LoadState(ctx.in(spec_.c()), part, memory.c);
    const int64_t most = std::max<int64_t>(1, part.gate_rows / part.rows());
    for (int64_t s = 0; s < size.steps; s += most) {
      if (watch->Stopped()) return absl::OkStatus();
      const int64_t count = std::min(most, size.steps - s);
      const int64_t first = spec_.backwards ? size.time - s - count : s;
      FLOE_RETURN_IF_ERROR(Gates(ctx, size, part, first, count, memory.gates));
      for (int64_t k = 0; k < count; ++k) {
        const int64_t line = spec_.backwards ? count - 1 - k : k;
        Step(memory, part.rows(), memory.gates + line * layout_.gate_width(),
             count * layout_.gate_width());
        if (spec_.masked) {
          KeepMasked(ctx, part, size, s + k, &memory);
        } else if (spec_.sequence) {
          StoreState(memory.h_next, part, ctx.out(0).as<float>() + (s + k) * layout_.units,
                     size.steps * layout_.units);
        }
        std::swap(memory.h, memory.h_next);
      }
    }
    StoreState(memory.h, part, ctx.out(1).as<float>(), layout_.units);
    if (spec_.has_c()) StoreState(memory.c, part, ctx.out(2).as<float>(), layout_.units);
    return absl::OkStatus();
  }

  void Step(const Memory& memory, int64_t rows, const float* gates, int64_t stride) const {
    if (spec_.masked && spec_.has_c())
      std::memcpy(memory.kept, memory.c, rows * layout_.width() * sizeof(float));
    const RecurrentStep step{&layout_,
                             spec_.gates.data(),
                             &recurrent_,
                             &recurrent_new_,
                             Floats(inner_bias_),
                             gates,
                             stride,
                             memory.h,
                             memory.h_next,
                             memory.c,
                             memory.update,
                             memory.reset_h};
    kernels_.step[static_cast<size_t>(spec_.cell)](step, rows);
  }

  // Rows that do not see the step keep their states; their output is 0 or that of the step before.
  void KeepMasked(const KernelContext& ctx, const Part& part, const RecurrentSizes& size,
                  int64_t step, Memory* memory) const {
    const int64_t bytes = layout_.width() * static_cast<int64_t>(sizeof(float));
    const int64_t units = layout_.units;
    for (int64_t i = 0; i < part.rows(); ++i) {
      const int64_t row = part.begin + i, at = i * layout_.width();
      const bool seen = MaskAt(spec_, ctx.in(spec_.mask()), row, step);
      if (!seen) {
        std::memcpy(memory->h_next + at, memory->h + at, bytes);
        if (spec_.has_c()) std::memcpy(memory->c + at, memory->kept + at, bytes);
      }
      if (!spec_.sequence) continue;
      float* to = ctx.out(0).as<float>() + (row * size.steps + step) * units;
      if (seen) {
        std::memcpy(to, memory->h_next + at, units * sizeof(float));
      } else if (spec_.zero_output || step == 0) {
        std::fill(to, to + units, 0.0f);
      } else {
        std::memcpy(to, to - units, units * sizeof(float));
      }
    }
  }

  const RecurrentSpec spec_;
  const GemmKernels gemm_;
  const RecurrentKernels kernels_;
  RecurrentLayout layout_;
  AlignedBuffer bias_, inner_bias_;
  PackedWeights input_, recurrent_, recurrent_new_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeRecurrent(const KernelArgs& args) {
  FLOE_ASSIGN_OR_RETURN(RecurrentSpec spec, RecurrentSpec::FromAttrs(args.node.attrs));
  if (args.options.gemm == GemmBackend::kReference) return MakePlainRecurrent(spec);
  for (int i = spec.weights(); i < spec.inputs(); ++i) {
    if (!args.inputs[i].has_constant())
      return absl::UnimplementedError("FusedRecurrent: its weights must be constants");
  }
  return std::make_unique<FusedRecurrent>(args, std::move(spec));
}
FLOE_REGISTER_KERNEL(FusedRecurrent, kCpu, MakeRecurrent, DType::kFloat32);

// Two layers. Each has a thread of its own where a layer alone would leave threads without work:
// one splits its rows among them.
class RecurrentPair final : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelArgs& args) {
    auto pair = std::make_unique<RecurrentPair>();
    FLOE_ASSIGN_OR_RETURN(pair->layers_, ops::PairedLayersOf(args.node));
    for (size_t k = 0; k < pair->layers_.size(); ++k) {
      const ops::PairedLayer& layer = pair->layers_[k];
      FLOE_ASSIGN_OR_RETURN(pair->kernels_[k],
                            MakeRecurrent({layer.node, layer.InputsOf(args.inputs), args.options}));
      pair->fused_[k] = dynamic_cast<const FusedRecurrent*>(pair->kernels_[k].get());
    }
    return pair;
  }

  int64_t ScratchBytes(absl::Span<const Shape> inputs,
                       absl::Span<const Shape> outputs) const override {
    int64_t bytes = 0;
    for (size_t k = 0; k < layers_.size(); ++k) {
      bytes +=
          kernels_[k]->ScratchBytes(layers_[k].InputsOf(inputs), layers_[k].OutputsOf(outputs));
    }
    return bytes;
  }
  std::string Route() const override {
    return absl::StrCat(kernels_[0]->Route(), " and ", kernels_[1]->Route());
  }
  bool NeedsInput(int i) const override {
    const int second = layers_[1].first_input;
    return i < second ? kernels_[0]->NeedsInput(i) : kernels_[1]->NeedsInput(i - second);
  }
  size_t PackedBytes() const override {
    return kernels_[0]->PackedBytes() + kernels_[1]->PackedBytes();
  }

  absl::Status Run(const KernelContext& ctx) const override {
    if (fused_[0] == nullptr || ctx.pool->threads() == 1) return RunInTurn(ctx);
    RecurrentSizes sizes[2];
    for (int k = 0; k < 2; ++k) {
      FLOE_ASSIGN_OR_RETURN(sizes[k], fused_[k]->SizesOf(layers_[k].InputsOf(ctx.inputs)));
    }
    const double products = fused_[0]->Products(sizes[0]) + fused_[1]->Products(sizes[1]);
    if (std::min(sizes[0].rows, sizes[1].rows) == 0 || products < kRecurrentSerialBelow ||
        std::max(sizes[0].rows, sizes[1].rows) >= ctx.pool->threads())
      return RunInTurn(ctx);
    KernelContext contexts[2] = {ContextOf(0, ctx), ContextOf(1, ctx)};
    contexts[1].scratch += FirstScratch(ctx);
    RunWatch watch;
    ctx.pool->ParallelFor(
        2, [&](int64_t k) { fused_[k]->RunHere(contexts[k], sizes[k], &watch).IgnoreError(); });
    return watch.status();
  }

 private:
  KernelContext ContextOf(size_t k, const KernelContext& ctx) const {
    KernelContext own = ctx;
    own.inputs = layers_[k].InputsOf(ctx.inputs);
    own.outputs = layers_[k].OutputsOf(ctx.outputs);
    own.donatable = 0;
    return own;
  }
  // Bytes of scratch in front of the second layer's, where both run at once.
  int64_t FirstScratch(const KernelContext& ctx) const {
    absl::InlinedVector<Shape, 8> inputs, outputs;
    for (const TensorView& in : layers_[0].InputsOf(ctx.inputs)) inputs.push_back(in.shape);
    for (const TensorView& out : layers_[0].OutputsOf(ctx.outputs)) outputs.push_back(out.shape);
    return kernels_[0]->ScratchBytes(inputs, outputs);
  }

  // In the same scratch.
  absl::Status RunInTurn(const KernelContext& ctx) const {
    for (size_t k = 0; k < layers_.size(); ++k)
      FLOE_RETURN_IF_ERROR(kernels_[k]->Run(ContextOf(k, ctx)));
    return absl::OkStatus();
  }

  std::array<ops::PairedLayer, 2> layers_;
  std::unique_ptr<Kernel> kernels_[2];
  const FusedRecurrent* fused_[2] = {nullptr, nullptr};  // null: plain loops
};
FLOE_REGISTER_KERNEL(RecurrentPair, kCpu, RecurrentPair::Make, DType::kFloat32);

}  // namespace
}  // namespace floe::kernels
