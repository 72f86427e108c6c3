// Several element-wise ops over one tile of elements after the other, so that what one leaves is
// still in the nearest cache when the next one reads it. The ops' own kernels do the work, so the
// bits are theirs.
#include "model/ops/fused_elementwise.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "kernels/cpu/elementwise/broadcast.h"
#include "kernels/cpu/elementwise/chain_f32.h"
#include "kernels/elementwise.h"

namespace floe::kernels {
namespace {

constexpr int kInputs = ops::kMaxFusedInputs, kSteps = ops::kMaxFusedSteps;
constexpr int64_t kTileBytes = 8192;
// Runs that are shorter are not worth a call of each step: operands are written out for a tile of
// several runs.
constexpr int64_t kLongRun = 256, kLongBlock = 1024;

struct TileStep {
  std::unique_ptr<Kernel> owner;
  const ElementwiseKernel* kernel = nullptr;
  std::vector<int> operands;
  int buffer = -1;  // where its result goes; -1: the output
  // In place of a kernel: ops that take the first operand one after the other, each with the next
  // operand if it has one.
  std::vector<ChainOp> chain;
};

// Results of steps and repeated operands of one thread. On the stack; most of it is never touched.
struct TileMemory {
  alignas(64) std::byte buffers[kSteps][kTileBytes];
  alignas(64) std::byte repeated[kInputs][kTileBytes];
};

// An operand that broadcasts, element by element of the output.
class Expander {
 public:
  Expander(const Shape& out, const TensorView& in)
      : walk_(MakeBroadcast<1>(out, {&in.shape})),
        data_(in.as<std::byte>()),
        size_(static_cast<int64_t>(DTypeSize(in.dtype))),
        index_(walk_.dims.size(), 0) {}

  // The next element is that of output element `i`.
  void Seek(int64_t i) {
    at_ = 0;
    for (size_t k = walk_.dims.size(); k-- > 0;) {
      index_[k] = i % walk_.dims[k];
      i /= walk_.dims[k];
      if (k + 1 < walk_.dims.size()) at_ += index_[k] * walk_.strides[0][k];
    }
  }

  void Write(int64_t count, std::byte* to) {
    const int64_t run = walk_.dims.back(), step = walk_.strides[0].back();
    int64_t& in_run = index_.back();
    while (count > 0) {
      const int64_t part = std::min(count, run - in_run);
      const std::byte* from = data_ + (at_ + in_run * step) * size_;
      if (step != 0) {
        std::memcpy(to, from, part * size_);
      } else {
        Repeat(from, part, to);
      }
      to += part * size_;
      count -= part;
      in_run += part;
      if (in_run == run) Advance();
    }
  }

 private:
  void Advance() {
    index_.back() = 0;
    for (size_t k = walk_.dims.size() - 1; k-- > 0;) {
      at_ += walk_.strides[0][k];
      if (++index_[k] < walk_.dims[k]) return;
      at_ -= walk_.dims[k] * walk_.strides[0][k];
      index_[k] = 0;
    }
  }

  void Repeat(const std::byte* from, int64_t count, std::byte* to) const {
    if (size_ == 4) {
      uint32_t value;
      std::memcpy(&value, from, sizeof(value));
      std::fill_n(reinterpret_cast<uint32_t*>(to), count, value);
      return;
    }
    for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * size_, from, size_);
  }

  const Broadcast<1> walk_;
  const std::byte* const data_;
  const int64_t size_;
  Broadcast<1>::Dims index_;
  int64_t at_ = 0;  // of the run, in elements
};

class FusedKernel final : public Kernel {
 public:
  FusedKernel(std::vector<TileStep> steps, int inputs, int64_t widest, std::string route)
      : steps_(std::move(steps)),
        inputs_(inputs),
        tile_(kTileBytes / widest),
        route_(std::move(route)) {}

  std::string Route() const override { return route_; }
  bool ReadsSpacedLines(int i, absl::Span<const Shape> inputs,
                        absl::Span<const Shape> outputs) const override {
    return inputs[i] == outputs[0];
  }

  absl::Status Run(const KernelContext& ctx) const override {
    if (ctx.out(0).elements() == 0) return absl::OkStatus();
    std::atomic<const char*> failure{nullptr};
    const Blocks blocks = BlocksOf(ctx);
    if (blocks.axis == 0 || blocks.elements >= kLongBlock) {
      RunBlocks(ctx, blocks, &failure);
    } else {
      RunBroadcast(ctx, &failure);
    }
    const char* why = failure.load();
    return why == nullptr ? absl::OkStatus() : absl::InvalidArgumentError(why);
  }

 private:
  // The output cut at the dims in front of `axis`. In each block every operand is whole, one
  // element, or repeats after some elements, and `period` is where all of these repeat together.
  struct Blocks {
    int axis;
    int64_t elements, period;
  };

  // The largest blocks.
  Blocks BlocksOf(const KernelContext& ctx) const {
    const Shape& out = ctx.out(0).shape;
    Blocks blocks{0, out.elements(), Period(ctx, 0)};
    while (blocks.period == 0) {
      blocks.elements /= out.dim(blocks.axis);
      ++blocks.axis;
      blocks.period = Period(ctx, blocks.axis);
    }
    return blocks;
  }

  // Dim `axis` of `in` as it broadcasts to `rank` dims.
  static int64_t DimOf(const Shape& in, int rank, int axis) {
    const int own = axis - (rank - in.rank());
    return own < 0 ? 1 : in.dim(own);
  }

  // Elements of `in` behind the dims in front of `axis`.
  static int64_t Inner(const Shape& in, int rank, int axis) {
    int64_t elements = 1;
    for (int i = axis; i < rank; ++i) elements *= DimOf(in, rank, i);
    return elements;
  }

  // 0 when an operand lies otherwise, or does not fit into a tile. The shorter ones divide the
  // longest: all lie along the last dims.
  int64_t Period(const KernelContext& ctx, int axis) const {
    const Shape& out = ctx.out(0).shape;
    const int rank = out.rank();
    const int64_t n = Inner(out, rank, axis);
    int64_t period = 1;
    for (const TensorView& in : ctx.inputs) {
      const int64_t elements = Inner(in.shape, rank, axis);
      if (elements == 1 || elements == n) continue;
      int i = rank - 1;  // dims from the back that are equal, then only ones
      while (i >= axis && DimOf(in.shape, rank, i) == out.dim(i)) --i;
      for (; i >= axis; --i) {
        if (DimOf(in.shape, rank, i) != 1) return 0;
      }
      if (elements > tile_) return 0;
      period = std::max(period, elements);
    }
    return period;
  }

  // Where block `block` of operand `in` begins.
  static int64_t BlockOffset(const Shape& in, const Shape& out, int axis, int64_t block) {
    int64_t offset = 0, step = Inner(in, out.rank(), axis);
    for (int i = axis - 1; i >= 0; --i) {
      const int64_t size = DimOf(in, out.rank(), i);
      if (size != 1) offset += block % out.dim(i) * step;
      block /= out.dim(i);
      step *= size;
    }
    return offset;
  }

  void RunBlocks(const KernelContext& ctx, const Blocks& blocks,
                 std::atomic<const char*>* failure) const {
    const Shape& out = ctx.out(0).shape;
    const int64_t n = blocks.elements, tile = tile_ / blocks.period * blocks.period;
    const int64_t tiles = (n + tile - 1) / tile;
    ParallelRange(
        ctx.pool, out.elements() / n * tiles, std::max<int64_t>(1, kElementGrain / tile),
        [&](int64_t begin, int64_t end) {
          TileMemory memory;
          std::array<TileOperand, kInputs + kSteps> values;
          // By operand: its first element in the block, which others follow; -1: it repeats.
          std::array<int64_t, kInputs> whole{};
          for (int64_t t = begin; t < end; ++t) {
            const int64_t block = t / tiles, at = t % tiles * tile, count = std::min(tile, n - at);
            for (int k = 0; k < inputs_; ++k) {
              const TensorView& in = ctx.in(k);
              if (t == begin || at == 0) {
                const int64_t elements = Inner(in.shape, out.rank(), blocks.axis);
                const int64_t first = BlockOffset(in.shape, out, blocks.axis, block);
                values[k] = FirstTile(At(in, first), elements, DTypeSize(in.dtype), n, tile,
                                      memory.repeated[k]);
                whole[k] = elements == n && n != 1 ? first : -1;
              }
              if (whole[k] >= 0)
                values[k].data = Elements(ctx, k, whole[k] + at, count, memory.repeated[k]);
            }
            if (!Tile(values.data(), &memory, At(ctx.out(0), block * n + at), count, failure))
              return;
          }
        });
  }

  // An operand as all tiles of a block see it; whole ones are moved along afterwards. What repeats
  // is written out once.
  static TileOperand FirstTile(const void* from, int64_t elements, size_t size, int64_t n,
                               int64_t tile, std::byte* to) {
    if (elements == 1) return {from, n == 1 ? 1 : 0};
    if (elements == n) return {from, 1};
    const size_t bytes = elements * size;
    for (int64_t i = 0; i < std::min(tile, n); i += elements)
      std::memcpy(to + i / elements * bytes, from, bytes);
    return {to, 1};
  }

  void RunBroadcast(const KernelContext& ctx, std::atomic<const char*>* failure) const {
    static const Shape kScalar;
    std::array<const Shape*, kInputs> shapes;
    shapes.fill(&kScalar);
    for (int k = 0; k < inputs_; ++k) shapes[k] = &ctx.in(k).shape;
    const auto walk = MakeBroadcast<kInputs>(ctx.out(0).shape, shapes);
    if (walk.run() < kLongRun && walk.runs() > 1) {
      RunExpanded(ctx, failure);
      return;
    }
    ForEachRun(walk, ctx.pool,
               [&](int64_t at, const std::array<int64_t, kInputs>& in, int64_t run) {
                 TileMemory memory;
                 std::array<TileOperand, kInputs + kSteps> values;
                 for (int64_t i = 0; i < run; i += tile_) {
                   const int64_t count = std::min(tile_, run - i);
                   for (int k = 0; k < inputs_; ++k) {
                     const int64_t step = walk.strides[k].back(), from = in[k] + i * step;
                     values[k] = {Elements(ctx, k, from, count, memory.repeated[k]), step};
                   }
                   if (!Tile(values.data(), &memory, At(ctx.out(0), at + i), count, failure))
                     return;
                 }
               });
  }

  void RunExpanded(const KernelContext& ctx, std::atomic<const char*>* failure) const {
    const int64_t n = ctx.out(0).elements(), tiles = (n + tile_ - 1) / tile_;
    ParallelRange(ctx.pool, tiles, std::max<int64_t>(1, kElementGrain / tile_),
                  [&](int64_t begin, int64_t end) {
                    TileMemory memory;
                    std::array<TileOperand, kInputs + kSteps> values;
                    std::array<std::optional<Expander>, kInputs> expanders;
                    for (int k = 0; k < inputs_; ++k) {
                      const int64_t elements = ctx.in(k).elements();
                      values[k] = {ctx.in(k).data, elements == 1 ? 0 : 1};
                      if (elements == 1 || elements == n) continue;
                      values[k].data = memory.repeated[k];
                      expanders[k].emplace(ctx.out(0).shape, ctx.in(k)).Seek(begin * tile_);
                    }
                    for (int64_t t = begin; t < end; ++t) {
                      const int64_t at = t * tile_, count = std::min(tile_, n - at);
                      for (int k = 0; k < inputs_; ++k) {
                        if (expanders[k].has_value()) {
                          expanders[k]->Write(count, memory.repeated[k]);
                        } else if (values[k].step != 0) {
                          values[k].data = Elements(ctx, k, at, count, memory.repeated[k]);
                        }
                      }
                      if (!Tile(values.data(), &memory, At(ctx.out(0), at), count, failure)) return;
                    }
                  });
  }

  // `count` elements of an input from element `at` on, one behind the other: where they are, or
  // gathered into `to` where lines lie apart. Those are too short for the processor to fetch the
  // next ones from memory by itself. Such an input has the output's shape (ReadsSpacedLines).
  static const void* Elements(const KernelContext& ctx, int k, int64_t at, int64_t count,
                              std::byte* to) {
    const TensorView& in = ctx.in(k);
    if (ctx.line_strides.empty() || ctx.line_strides[k] == 0) return At(in, at);
    const auto size = static_cast<int64_t>(DTypeSize(in.dtype));
    const int64_t width = in.shape.dim(in.shape.rank() - 1), stride = ctx.InLineStride(k);
    const int64_t ahead = (kTileBytes / (width * size) + 1) * stride * size;
    std::byte* next = to;
    for (int64_t line = at / width, i = at % width; count > 0; ++line, i = 0) {
      const int64_t part = std::min(count, width - i), bytes = part * size;
      const auto* const from = static_cast<const std::byte*>(At(in, line * stride + i));
      for (int64_t b = 0; b < bytes; b += kAlignment) __builtin_prefetch(from + ahead + b);
      std::memcpy(next, from, bytes);
      next += bytes;
      count -= part;
    }
    return to;
  }

  static void* At(const TensorView& view, int64_t element) {
    return view.as<std::byte>() + element * static_cast<int64_t>(DTypeSize(view.dtype));
  }

  // The ops of a chain over `n` elements; returns whether the result has as many.
  int64_t RunChain(const TileStep& step, const TileOperand* values, void* to, int64_t n) const {
    std::array<ChainLink, kSteps> links;
    const TileOperand& first = values[step.operands[0]];
    int64_t steps = first.step;
    size_t next = 1;
    for (size_t i = 0; i < step.chain.size(); ++i) {
      links[i].op = step.chain[i];
      if (IsRelu(step.chain[i])) continue;
      const TileOperand& operand = values[step.operands[next++]];
      links[i].operand = static_cast<const float*>(operand.data);
      links[i].step = operand.step;
      steps |= operand.step;
    }
    chain_(static_cast<const float*>(first.data), first.step, links.data(), step.chain.size(),
           static_cast<float*>(to), static_cast<size_t>(steps != 0 ? n : 1));
    return steps;
  }

  // All steps over `n` elements. `values`: the inputs, then room for the results.
  bool Tile(TileOperand* values, TileMemory* memory, void* out, int64_t n,
            std::atomic<const char*>* failure) const {
    for (size_t s = 0; s < steps_.size(); ++s) {
      const TileStep& step = steps_[s];
      void* to = step.buffer < 0 ? out : memory->buffers[step.buffer];
      if (step.kernel == nullptr) {
        values[inputs_ + s] = {to, RunChain(step, values, to, n)};
        continue;
      }
      std::array<TileOperand, ops::kMaxStepInputs> in;
      int64_t steps = 0;
      for (size_t k = 0; k < step.operands.size(); ++k) {
        in[k] = values[step.operands[k]];
        steps |= in[k].step;
      }
      const absl::Span<const TileOperand> operands(in.data(), step.operands.size());
      if (!step.kernel->RunTile(operands, to, steps != 0 ? n : 1)) {
        failure->store(step.kernel->Failure());
        return false;
      }
      values[inputs_ + s] = {to, steps};
    }
    return true;
  }

  const std::vector<TileStep> steps_;
  const ChainF32 chain_ = PickChainF32();
  const int inputs_;
  const int64_t tile_;  // elements
  const std::string route_;
};

// Makes one step of ops in a row where each takes what the one before leaves, and nobody else reads
// it. `dtypes`: of the inputs, then of the steps' results; what is merged is taken out of both.
class ChainMaker {
 public:
  ChainMaker(const std::vector<ops::FusedStep>& fused, int inputs, std::vector<DType>* dtypes,
             std::vector<TileStep>* steps)
      : fused_(fused), inputs_(inputs), dtypes_(*dtypes), steps_(*steps), uses_(steps->size(), 0) {
    for (const TileStep& step : steps_) {
      for (int operand : step.operands) {
        if (operand >= inputs_) ++uses_[operand - inputs_];
      }
    }
  }

  void Run() {
    std::vector<TileStep> made;
    std::vector<DType> dtypes(dtypes_.begin(), dtypes_.begin() + inputs_);
    std::vector<int> places(dtypes_.size());  // of inputs and results, afterwards
    for (int i = 0; i < inputs_; ++i) places[i] = i;
    for (size_t s = 0; s < steps_.size();) {
      TileStep step = std::move(steps_[s]);
      const size_t count = Longest(s);
      if (count > 1) step = Merge(s, count, step.operands);
      for (int& operand : step.operands) operand = places[operand];
      s += count;
      places[inputs_ + s - 1] = inputs_ + static_cast<int>(made.size());
      dtypes.push_back(dtypes_[inputs_ + s - 1]);
      made.push_back(std::move(step));
    }
    steps_ = std::move(made);
    dtypes_ = std::move(dtypes);
  }

 private:
  // What step `s` does with the value so far: operand `from`; nullopt where it is no link.
  std::optional<ChainOp> LinkOf(size_t s, int from) const {
    const std::vector<int>& operands = fused_[s].operands;
    if (dtypes_[inputs_ + s] != DType::kFloat32 || operands.size() > 2) return std::nullopt;
    for (int operand : operands) {
      if (dtypes_[operand] != DType::kFloat32) return std::nullopt;
    }
    const std::optional<ChainOp> link = ChainOpOf(fused_[s].node.op->name, operands[0] != from);
    if (!link.has_value() || operands.size() != (IsRelu(*link) ? 1u : 2u)) return std::nullopt;
    return link;
  }

  // How many steps from `s` on make a chain; at least 1.
  size_t Longest(size_t s) const {
    if (!LinkOf(s, fused_[s].operands[0]).has_value()) return 1;
    size_t count = 1;
    for (; s + count < fused_.size(); ++count) {
      const int before = inputs_ + static_cast<int>(s + count) - 1;
      const std::vector<int>& operands = fused_[s + count].operands;
      if (uses_[s + count - 1] != 1 ||
          std::find(operands.begin(), operands.end(), before) == operands.end() ||
          !LinkOf(s + count, before).has_value())
        break;
    }
    return count;
  }

  TileStep Merge(size_t s, size_t count, const std::vector<int>& first) const {
    TileStep merged;
    int so_far = first[0];
    merged.operands.push_back(so_far);
    for (size_t i = s; i < s + count; ++i) {
      const std::vector<int>& operands = fused_[i].operands;
      merged.chain.push_back(*LinkOf(i, so_far));
      if (operands.size() == 2) merged.operands.push_back(operands[operands[0] == so_far ? 1 : 0]);
      so_far = inputs_ + static_cast<int>(i);
    }
    return merged;
  }

  const std::vector<ops::FusedStep>& fused_;
  const int inputs_;
  std::vector<DType>& dtypes_;
  std::vector<TileStep>& steps_;
  std::vector<int> uses_;  // of each step's result
};

// Gives each result a buffer until its last reader has run. The result of one operand that ends
// there and has elements of its size takes that operand's buffer: both have as many elements,
// whatever the shapes of the run. Of two operands either may be one element that is read for all
// of the result's.
void PlaceResults(const std::vector<DType>& dtypes, int inputs, std::vector<TileStep>* steps) {
  std::vector<int> last(steps->size(), -1);
  for (size_t s = 0; s < steps->size(); ++s) {
    for (int operand : (*steps)[s].operands) {
      if (operand >= inputs) last[operand - inputs] = static_cast<int>(s);
    }
  }
  std::vector<bool> taken(kSteps, false);
  for (size_t s = 0; s + 1 < steps->size(); ++s) {
    TileStep& step = (*steps)[s];
    std::vector<int> ended;
    for (int operand : step.operands) {
      const int from = operand - inputs;
      if (from < 0 || last[from] != static_cast<int>(s)) continue;
      ended.push_back((*steps)[from].buffer);
      if (step.operands.size() == 1 && DTypeSize(dtypes[operand]) == DTypeSize(dtypes[inputs + s]))
        step.buffer = ended.back();
    }
    for (int i = 0; step.buffer < 0; ++i) {
      if (!taken[i]) step.buffer = i;
    }
    for (int buffer : ended) taken[buffer] = false;
    taken[step.buffer] = true;
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeChain(const KernelArgs& args) {
  const int inputs = static_cast<int>(args.inputs.size());
  FLOE_ASSIGN_OR_RETURN(const std::vector<ops::FusedStep> fused,
                        ops::FusedStepsOf(args.node, inputs));
  FLOE_ASSIGN_OR_RETURN(const Types types, ops::InferFusedSteps(fused, args.inputs));
  std::vector<ValueInfo> infos;
  for (const ValueInfo& input : args.inputs) infos.push_back({input.type, {}, {}});
  for (const TensorType& type : types) infos.push_back({type, {}, {}});
  std::vector<DType> dtypes;
  int64_t widest = 1;
  for (const ValueInfo& info : infos) {
    dtypes.push_back(info.type.dtype);
    widest = std::max(widest, static_cast<int64_t>(DTypeSize(info.type.dtype)));
    if (DTypeSize(info.type.dtype) == 0)
      return absl::UnimplementedError(
          absl::StrCat("FusedElementwise of ", DTypeName(info.type.dtype)));
  }
  std::vector<TileStep> steps;
  std::vector<std::string> names;
  for (const ops::FusedStep& f : fused) {
    std::vector<ValueInfo> in;
    for (int operand : f.operands) in.push_back(infos[operand]);
    const std::string& op = f.node.op->name;
    const KernelFactory make = FindKernel(op, DeviceKind::kCpu, in[0].type.dtype);
    TileStep step;
    if (make != nullptr) {
      FLOE_ASSIGN_OR_RETURN(step.owner, make({f.node, in, args.options}));
    }
    step.kernel = dynamic_cast<const ElementwiseKernel*>(step.owner.get());
    if (step.kernel == nullptr) {
      return absl::UnimplementedError(
          absl::StrCat(op, " of ", DTypeName(in[0].type.dtype), " does not run in tiles"));
    }
    step.operands = f.operands;
    steps.push_back(std::move(step));
    names.push_back(op);
  }
  ChainMaker(fused, inputs, &dtypes, &steps).Run();
  PlaceResults(dtypes, inputs, &steps);
  return std::make_unique<FusedKernel>(std::move(steps), inputs, widest,
                                       absl::StrJoin(names, ", "));
}

bool ComputesFused(const KernelArgs& args) { return MakeChain(args).ok(); }

const KernelRegistrar kFused("FusedElementwise", DeviceKind::kCpu, {}, MakeChain,
                             {.computes = ComputesFused});

}  // namespace
}  // namespace floe::kernels
