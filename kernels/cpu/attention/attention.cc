// Attention: softmax(scale * Q K^T + mask) V. Keys and values of one head are packed once, then
// tiles of queries pass: their scores stay in the cache from the first product to the second.
// Each score and each output element is summed as the GEMM sums it, so its bits do not depend on
// the tiles, the batch or the threads.
#include "model/ops/attention.h"

#include <algorithm>
#include <atomic>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/gemm_operands.h"
#include "kernels/cpu/normalize/softmax_f32.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/run_watch.h"

namespace floe::kernels {
namespace {

using ops::AttentionAxes;

// Queries whose scores are in work at once: a multiple of every tile of the GEMM.
constexpr int64_t kTile = 48;
// Threads that can work at once; each needs packed keys and values of its own.
constexpr int64_t kLanes = 4;

// Steps of an operand for batch, head, place and feature; 0 where it has one for all.
struct Steps {
  int64_t batch, head, place, feature;
};

Steps StepsOf(const Shape& shape, const AttentionAxes& axes) {
  int64_t step[4] = {0, 0, 0, 0};
  int64_t dense = 1;
  for (int i = shape.rank(); i-- > 0;) {
    for (int k = 0; k < 4; ++k) {
      if (axes[k] == i && shape.dim(i) != 1) step[k] = dense;
    }
    dense *= shape.dim(i);
  }
  return {step[0], step[1], step[2], step[3]};
}

int64_t SizeOf(const Shape& shape, const AttentionAxes& axes, int which) {
  return axes[which] < 0 ? 1 : shape.dim(axes[which]);
}

struct Sizes {
  int64_t batch, heads, queries, keys, features, width;
};

struct Job {
  Sizes size;
  Steps q, k, v, out, mask;  // the mask's features are the keys
  const float *q_data, *k_data, *v_data;
  const void* mask_data;  // bools or float32
  float* out_data;
};

// One thread's memory.
struct Lane {
  float *keys, *values, *scores, *keep;
};

class AttentionKernel final : public Kernel {
 public:
  AttentionKernel(const ops::AttentionForm& form)
      : form_(form), gemm_(PickGemm()), softmax_(PickScaledSoftmaxF32()) {}

  std::string Route() const override { return NativeRoute(gemm_); }

  int64_t ScratchBytes(absl::Span<const Shape> inputs, absl::Span<const Shape>) const override {
    return kLanes * LaneBytes(SizesOf(inputs));
  }

  absl::Status Run(const KernelContext& ctx) const override {
    absl::InlinedVector<Shape, 4> shapes;
    for (const TensorView& in : ctx.inputs) shapes.push_back(in.shape);
    Job job;
    job.size = SizesOf(shapes);
    FLOE_RETURN_IF_ERROR(Check(shapes, job.size));
    if (ctx.out(0).elements() == 0) return absl::OkStatus();
    job.q = StepsOf(shapes[0], form_.q);
    job.k = StepsOf(shapes[1], form_.k);
    job.v = StepsOf(shapes[2], form_.v);
    job.out = StepsOf(ctx.out(0).shape, form_.out);
    job.q_data = ctx.in(0).as<float>();
    job.k_data = ctx.in(1).as<float>();
    job.v_data = ctx.in(2).as<float>();
    job.out_data = ctx.out(0).as<float>();
    job.mask_data = shapes.size() > 3 ? ctx.in(3).data : nullptr;
    job.mask = shapes.size() > 3 ? StepsOf(shapes[3], ops::MaskAxes(form_, shapes[3].rank()))
                                 : Steps{0, 0, 0, 0};
    return RunUnits(ctx, job);
  }

 private:
  Sizes SizesOf(absl::Span<const Shape> inputs) const {
    Sizes size;
    size.queries = SizeOf(inputs[0], form_.q, ops::kPlace);
    size.keys = SizeOf(inputs[1], form_.k, ops::kPlace);
    size.features = SizeOf(inputs[0], form_.q, ops::kFeature);
    size.width = SizeOf(inputs[2], form_.v, ops::kFeature);
    size.batch = size.heads = 1;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const AttentionAxes axes = i == 0   ? form_.q
                                 : i == 1 ? form_.k
                                 : i == 2 ? form_.v
                                          : ops::MaskAxes(form_, inputs[3].rank());
      const int64_t batch = SizeOf(inputs[i], axes, ops::kBatch),
                    heads = SizeOf(inputs[i], axes, ops::kHead);
      if (batch != 1) size.batch = batch;
      if (heads != 1) size.heads = heads;
    }
    return size;
  }

  // Inference lets dims pass that it does not know.
  absl::Status Check(absl::Span<const Shape> shapes, const Sizes& size) const {
    bool fits = SizeOf(shapes[1], form_.k, ops::kFeature) == size.features &&
                SizeOf(shapes[2], form_.v, ops::kPlace) == size.keys;
    for (size_t i = 0; i < shapes.size(); ++i) {
      const AttentionAxes axes = i == 0   ? form_.q
                                 : i == 1 ? form_.k
                                 : i == 2 ? form_.v
                                          : ops::MaskAxes(form_, shapes[3].rank());
      const int64_t batch = SizeOf(shapes[i], axes, ops::kBatch),
                    heads = SizeOf(shapes[i], axes, ops::kHead);
      fits = fits && (batch == 1 || batch == size.batch) && (heads == 1 || heads == size.heads);
      if (i < 3) continue;
      const int64_t places = SizeOf(shapes[i], axes, ops::kPlace),
                    keys = SizeOf(shapes[i], axes, ops::kFeature);
      fits = fits && (places == 1 || places == size.queries) && (keys == 1 || keys == size.keys);
    }
    if (fits) return absl::OkStatus();
    std::string all;
    for (const Shape& shape : shapes) absl::StrAppend(&all, " ", shape.ToString());
    return absl::InvalidArgumentError(absl::StrCat("shapes do not fit together:", all));
  }

  // A unit is some tiles of queries of one head of one row.
  absl::Status RunUnits(const KernelContext& ctx, const Job& job) const {
    const int64_t heads = job.size.batch * job.size.heads,
                  tiles = (job.size.queries + kTile - 1) / kTile;
    const int64_t lanes = std::min<int64_t>(kLanes, ctx.pool->threads());
    const int64_t parts = std::clamp<int64_t>(lanes / heads, 1, tiles), units = heads * parts;
    const int64_t of_unit = (tiles + parts - 1) / parts;
    constexpr auto kLine = static_cast<int64_t>(kAlignment);
    const int64_t lane_bytes = LaneBytes(job.size) / kLine * kLine;
    RunWatch watch;
    std::atomic<int64_t> next{0};  // unit; threads are not equally fast
    const auto lane = [&](int64_t number) {
      ScratchPieces pieces(ctx.scratch + number * lane_bytes);
      Lane memory;
      memory.keys = pieces.Floats(PackedBound(gemm_, job.size.features, job.size.keys));
      memory.values = pieces.Floats(PackedBound(gemm_, job.size.keys, job.size.width));
      memory.scores = pieces.Floats(kTile * job.size.keys);
      memory.keep = pieces.Floats(form_.fill.has_value() ? job.size.keys : 0);
      int64_t packed = -1;
      for (int64_t unit = next.fetch_add(1, std::memory_order_relaxed); unit < units;
           unit = next.fetch_add(1, std::memory_order_relaxed)) {
        const int64_t head = unit / parts, first = unit % parts * of_unit;
        if (head != packed) PackHead(job, head, memory);
        packed = head;
        for (int64_t tile = first; tile < std::min(tiles, first + of_unit); ++tile) {
          if (watch.Stopped()) return;
          RunTile(job, head, tile * kTile, memory);
        }
      }
    };
    if (lanes == 1) {
      lane(0);
    } else {
      ctx.pool->ParallelFor(lanes, lane);
    }
    return watch.status();
  }

  // With a cache line to spare, by which lanes are kept aligned.
  int64_t LaneBytes(const Sizes& size) const {
    return ScratchPieces::Bytes(
        {PackedBound(gemm_, size.features, size.keys), PackedBound(gemm_, size.keys, size.width),
         ScratchFloats({kTile, size.keys}), form_.fill.has_value() ? size.keys : 0, 0});
  }

  static int64_t At(const Job& job, const Steps& steps, int64_t head) {
    return head / job.size.heads * steps.batch + head % job.size.heads * steps.head;
  }

  void PackHead(const Job& job, int64_t head, const Lane& memory) const {
    PackGemm(gemm_, job.k_data + At(job, job.k, head), job.k.feature, job.k.place,
             job.size.features, job.size.keys, memory.keys);
    PackGemm(gemm_, job.v_data + At(job, job.v, head), job.v.place, job.v.feature, job.size.keys,
             job.size.width, memory.values);
  }

  void RunTile(const Job& job, int64_t head, int64_t first, const Lane& memory) const {
    const Sizes& size = job.size;
    const int64_t rows = std::min(kTile, size.queries - first);
    GemmTask task;
    task.a.base = job.q_data + At(job, job.q, head) + first * job.q.place;
    task.a.stride = job.q.place;
    task.runs.length = size.features;
    task.b = memory.keys;
    task.n = task.ldc = size.keys;
    task.c = memory.scores;
    Multiply(task, rows);
    for (int64_t i = 0; i < rows; ++i) {
      float* row = memory.scores + i * size.keys;
      softmax_(row, form_.scale, MaskOf(job, head, first + i, memory), row,
               static_cast<size_t>(size.keys));
    }
    task.a.base = memory.scores;
    task.a.stride = task.runs.length = size.keys;
    task.b = memory.values;
    task.n = size.width;
    task.c = job.out_data + At(job, job.out, head) + first * job.out.place;
    task.ldc = job.out.place == 0 ? size.width : job.out.place;
    Multiply(task, rows);
  }

  ScoreMask MaskOf(const Job& job, int64_t head, int64_t query, const Lane& memory) const {
    ScoreMask mask;
    if (job.mask_data == nullptr) return mask;
    const int64_t at = At(job, job.mask, head) + query * job.mask.place;
    if (!form_.fill.has_value()) {
      mask.add = static_cast<const float*>(job.mask_data) + at;
      mask.each = job.mask.feature != 0;
      return mask;
    }
    const bool* keep = static_cast<const bool*>(job.mask_data) + at;
    for (int64_t i = 0; i < job.size.keys; ++i)
      memory.keep[i] = keep[i * job.mask.feature] ? 1.0f : 0.0f;
    mask.keep = memory.keep;
    mask.fill = *form_.fill;
    mask.zero = form_.zero;
    return mask;
  }

  // Sums of nothing are 0.
  void Multiply(const GemmTask& task, int64_t rows) const {
    if (task.runs.length > 0) {
      gemm_.run(task, 0, rows, 0, gemm_.panels(task.n));
      return;
    }
    for (int64_t i = 0; i < rows; ++i) std::fill_n(task.c + i * task.ldc, task.n, 0.0f);
  }

  const ops::AttentionForm form_;
  const GemmKernels gemm_;
  const ScaledSoftmaxF32 softmax_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeAttention(const KernelArgs& args) {
  FLOE_ASSIGN_OR_RETURN(const ops::AttentionForm form, ops::AttentionFormOf(args.node));
  return std::make_unique<AttentionKernel>(form);
}
FLOE_REGISTER_KERNEL(Attention, kCpu, MakeAttention, DType::kFloat32);

}  // namespace
}  // namespace floe::kernels
