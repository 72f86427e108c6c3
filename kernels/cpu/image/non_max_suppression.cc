// NonMaxSuppression: the best boxes that do not overlap each other much.
#include <cmath>
#include <functional>
#include <limits>
#include <queue>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "kernels/cpu/dynamic_output.h"
#include "kernels/cpu/float_order.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/image/overlap_f32.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cpu/run_watch.h"

namespace floe::kernels {
namespace {

struct Limits {
  int64_t most = 0;
  float iou = 0;
  float score = std::numeric_limits<float>::lowest();
  float sigma = 0;    // above 0: overlapping boxes lose score instead of being dropped
  bool half = false;  // scores are kept in float16
  OverlapsF32 overlaps = nullptr;
};
struct Chosen {
  std::vector<int32_t> boxes;
  std::vector<float> scores;
};

// The corners of a box may come in any order.
Corners CornersOf(const float* box) {
  const float y0 = std::min(box[0], box[2]), y1 = std::max(box[0], box[2]),
              x0 = std::min(box[1], box[3]), x1 = std::max(box[1], box[3]);
  return {y0, x0, y1, x1, (y1 - y0) * (x1 - x0)};
}

float Overlap(const float* box_a, const float* box_b) {
  const Corners a = CornersOf(box_a), b = CornersOf(box_b);
  if (a.area <= 0 || b.area <= 0) return 0;
  const float height = std::max(std::min(a.y1, b.y1) - std::max(a.y0, b.y0), 0.f);
  const float width = std::max(std::min(a.x1, b.x1) - std::max(a.x0, b.x0), 0.f);
  const float common = height * width;
  return common / (a.area + b.area - common);
}

// A box that may be chosen. The greatest one has the best score, of equal ones the first box: both
// are in one number, which a queue compares without branches.
class Candidate {
 public:
  Candidate(float score, int32_t box)
      : rank_(uint64_t{OrderOf(score)} << 32 | ~static_cast<uint32_t>(box)) {}
  bool operator<(const Candidate& o) const { return rank_ < o.rank_; }
  int32_t box() const { return static_cast<int32_t>(~static_cast<uint32_t>(rank_)); }
  float score() const { return FloatOfOrder(static_cast<uint32_t>(rank_ >> 32)); }

  size_t compared = 0;  // with so many of the chosen boxes

 private:
  uint64_t rank_;
};

// Compares one pair after the other. overlap_of(a, b) is that of two boxes.
template <class O>
class PairSuppressor {
 public:
  PairSuppressor(const O& overlap_of, const Limits& limits)
      : overlap_of_(overlap_of), limits_(limits) {}

  // True when the candidate is out because of a chosen box; with a sigma its score falls instead.
  bool Suppresses(const Candidate& candidate, float* score) const {
    for (size_t j = chosen_.size(); j-- > candidate.compared;) {
      const float overlap = overlap_of_(candidate.box(), chosen_[j]);
      if (limits_.sigma > 0) {
        const float weight = std::exp(-0.5f / limits_.sigma * overlap * overlap);
        *score *= limits_.half ? static_cast<float>(Half(weight)) : weight;
        if (limits_.half) *score = Half(*score);
      } else if (overlap > limits_.iou) {
        return true;
      }
      if (*score <= limits_.score) return true;
    }
    return false;
  }
  void Add(int32_t box) { chosen_.push_back(box); }

 private:
  const O& overlap_of_;
  const Limits& limits_;
  std::vector<int32_t> chosen_;
};

// Compares a candidate with several chosen boxes at once. For boxes without a sigma, of which any
// may suppress another.
class BoxSuppressor {
 public:
  // Boxes of 4 floats, `step` floats apart; limits.iou >= 0.
  BoxSuppressor(const float* boxes, int64_t step, const Limits& limits)
      : boxes_(boxes), step_(step), limits_(limits) {}

  bool Suppresses(const Candidate& candidate, float*) const {
    const Corners box = CornersOf(boxes_ + candidate.box() * step_);
    return !(box.area <= 0) && limits_.overlaps(groups_.data(), groups_.size(), box, limits_.iou);
  }

  void Add(int32_t box) {
    const Corners b = CornersOf(boxes_ + box * step_);
    const size_t k = count_++ % BoxGroup::kBoxes;
    if (k == 0) groups_.emplace_back();
    BoxGroup& g = groups_.back();
    g.y0[k] = b.y0;
    g.x0[k] = b.x0;
    g.y1[k] = b.y1;
    g.x1[k] = b.x1;
    g.area[k] = b.area;
  }

 private:
  const float* boxes_;
  const int64_t step_;
  const Limits& limits_;
  size_t count_ = 0;
  std::vector<BoxGroup> groups_;
};

// Overlaps that are computed between two looks whether the run should go on.
constexpr size_t kLookEvery = size_t{1} << 18;

// `count` boxes, their scores `score_step` apart.
template <class S>
absl::StatusOr<Chosen> ChooseBy(S suppressor, const float* scores, int64_t score_step,
                                int64_t count, const Limits& limits) {
  std::vector<Candidate> candidates;
  for (int64_t i = 0; i < count; ++i) {
    const float score = scores[i * score_step];
    if (score > limits.score) candidates.emplace_back(score, static_cast<int32_t>(i));
  }
  std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(candidates));
  Chosen chosen;
  RunWatch watch;
  size_t overlaps = 0;
  while (static_cast<int64_t>(chosen.boxes.size()) < limits.most && !queue.empty()) {
    const Candidate next = queue.top();
    queue.pop();
    overlaps += chosen.boxes.size() - next.compared + 1;
    if (overlaps >= kLookEvery) {
      if (watch.Stopped()) return watch.status();
      overlaps = 0;
    }
    float score = next.score();
    if (suppressor.Suppresses(next, &score)) continue;
    if (score == next.score()) {
      suppressor.Add(next.box());
      chosen.boxes.push_back(next.box());
      chosen.scores.push_back(score);
    } else if (score > limits.score) {  // not NaN, which would come back for ever
      Candidate again(score, next.box());
      again.compared = chosen.boxes.size();
      queue.push(again);
    }
  }
  return chosen;
}

// `count` boxes of 4 floats, `step` floats apart, their scores `score_step` apart.
absl::StatusOr<Chosen> Choose(const float* boxes, int64_t step, const float* scores,
                              int64_t score_step, int64_t count, const Limits& limits) {
  if (limits.sigma == 0 && limits.iou >= 0)
    return ChooseBy(BoxSuppressor(boxes, step, limits), scores, score_step, count, limits);
  const auto overlap_of = [boxes, step](int32_t a, int32_t b) {
    return Overlap(boxes + a * step, boxes + b * step);
  };
  return ChooseBy(PairSuppressor(overlap_of, limits), scores, score_step, count, limits);
}

absl::StatusOr<float> ReadFloat(const TensorView& view) {
  const bool half = view.dtype == DType::kFloat16;
  if ((!half && view.dtype != DType::kFloat32) || view.elements() != 1)
    return absl::InvalidArgumentError(absl::StrCat("a threshold of type ", DTypeName(view.dtype),
                                                   " and shape ", view.shape.ToString()));
  return half ? static_cast<float>(*view.as<Half>()) : *view.as<float>();
}

// float32 elements in place; float16 ones copied to `store`.
const float* AsFloats(const TensorView& view, std::vector<float>* store) {
  if (view.dtype == DType::kFloat32) return view.as<float>();
  store->assign(view.as<Half>(), view.as<Half>() + view.elements());
  return store->data();
}

// Inputs 2 to `end`: max_output_size, iou_threshold, score_threshold, soft_nms_sigma.
absl::StatusOr<Limits> ReadLimits(const KernelContext& ctx, size_t end, OverlapsF32 overlaps) {
  Limits limits;
  limits.overlaps = overlaps;
  FLOE_ASSIGN_OR_RETURN(limits.most, ReadInt(ctx.in(2)));
  FLOE_ASSIGN_OR_RETURN(limits.iou, ReadFloat(ctx.in(3)));
  if (end > 4) {
    FLOE_ASSIGN_OR_RETURN(limits.score, ReadFloat(ctx.in(4)));
  }
  if (end > 5) {
    FLOE_ASSIGN_OR_RETURN(limits.sigma, ReadFloat(ctx.in(5)));
  }
  if (limits.most < 0)
    return absl::InvalidArgumentError(absl::StrCat("max_output_size is ", limits.most));
  if (!(limits.iou >= 0 && limits.iou <= 1))
    return absl::InvalidArgumentError(
        absl::StrCat("iou_threshold ", limits.iou, " is not in [0, 1]"));
  if (limits.sigma < 0)
    return absl::InvalidArgumentError(absl::StrCat("soft_nms_sigma is ", limits.sigma));
  return limits;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeNms(const KernelArgs& args) {
  const bool pad = args.node.attrs.Bool("pad_to_max_output_size");
  const int outputs = args.node.op->outputs;
  const OverlapsF32 overlaps = PickOverlapsF32();
  return FromFunction([pad, outputs, overlaps](const KernelContext& ctx) -> absl::Status {
    FLOE_ASSIGN_OR_RETURN(Limits limits, ReadLimits(ctx, ctx.inputs.size(), overlaps));
    limits.half = ctx.in(0).dtype == DType::kFloat16;
    const Shape &boxes = ctx.in(0).shape, &scores = ctx.in(1).shape;
    if (boxes.rank() != 2 || boxes.dim(1) != 4 || scores.rank() != 1 ||
        scores.dim(0) != boxes.dim(0) || ctx.in(1).dtype != ctx.in(0).dtype)
      return absl::InvalidArgumentError(
          absl::StrCat("boxes ", boxes.ToString(), " with scores ", scores.ToString()));
    std::vector<float> box_store, score_store;
    FLOE_ASSIGN_OR_RETURN(
        Chosen chosen, Choose(AsFloats(ctx.in(0), &box_store), 4, AsFloats(ctx.in(1), &score_store),
                              1, boxes.dim(0), limits));
    const auto valid = static_cast<int32_t>(chosen.boxes.size());
    if (pad) {
      FLOE_RETURN_IF_ERROR(CheckedElements({limits.most}, sizeof(float), 1 << 30).status());
      FLOE_RETURN_IF_ERROR(CheckValueBytes(limits.most * static_cast<int64_t>(sizeof(float))));
      chosen.boxes.resize(limits.most);
      chosen.scores.resize(limits.most);
    }
    FLOE_RETURN_IF_ERROR(Give(ctx, 0, chosen.boxes));
    if (outputs == 3 && limits.half) {
      FLOE_RETURN_IF_ERROR(
          Give(ctx, 1, std::vector<Half>(chosen.scores.begin(), chosen.scores.end())));
    } else if (outputs == 3) {
      FLOE_RETURN_IF_ERROR(Give(ctx, 1, chosen.scores));
    }
    return outputs == 1 ? absl::OkStatus()
                        : Give(ctx, outputs - 1, std::vector<int32_t>{valid}, Shape());
  });
}

// Inputs: boxes, scores, max_output_size, iou_threshold, score_threshold, and a threshold that
// boxes had to pass before.
absl::Status Filtered(const KernelContext& ctx, OverlapsF32 overlaps) {
  FLOE_ASSIGN_OR_RETURN(Limits limits, ReadLimits(ctx, 5, overlaps));
  FLOE_ASSIGN_OR_RETURN(const float filter, ReadFloat(ctx.in(5)));
  const Shape &boxes = ctx.in(0).shape, &scores = ctx.in(1).shape;
  if (boxes.rank() != 2 || boxes.dim(1) != 4 || scores.rank() != 1)
    return absl::InvalidArgumentError(
        absl::StrCat("boxes ", boxes.ToString(), " with scores ", scores.ToString()));
  const float* of_box = ctx.in(1).as<float>();
  for (int64_t i = boxes.dim(0); i < scores.dim(0); ++i) {
    if (of_box[i] > filter)
      return absl::InvalidArgumentError(
          absl::StrCat("score ", i, " has no box, there are ", boxes.dim(0)));
  }
  if (!std::isnan(limits.score) && !(filter <= limits.score)) limits.score = filter;
  FLOE_ASSIGN_OR_RETURN(const Chosen chosen, Choose(ctx.in(0).as<float>(), 4, of_box, 1,
                                                    std::min(boxes.dim(0), scores.dim(0)), limits));
  return Give(ctx, 0, chosen.boxes);
}
absl::StatusOr<std::unique_ptr<Kernel>> MakeFiltered(const KernelArgs&) {
  return FromFunction(
      [overlaps = PickOverlapsF32()](const KernelContext& ctx) { return Filtered(ctx, overlaps); });
}
FLOE_REGISTER_KERNEL(FilteredNonMaxSuppression, kCpu, MakeFiltered, DType::kFloat32);

// Inputs: overlaps of all pairs, scores, max_output_size, overlap_threshold, score_threshold.
absl::Status ByOverlaps(const KernelContext& ctx) {
  const Shape &overlaps = ctx.in(0).shape, &scores = ctx.in(1).shape;
  const int64_t count = scores.elements();
  if (overlaps != Shape({count, count}) || scores.rank() != 1)
    return absl::InvalidArgumentError(
        absl::StrCat("overlaps ", overlaps.ToString(), " with scores ", scores.ToString()));
  Limits limits;
  FLOE_ASSIGN_OR_RETURN(limits.most, ReadInt(ctx.in(2)));
  FLOE_ASSIGN_OR_RETURN(limits.iou, ReadFloat(ctx.in(3)));
  FLOE_ASSIGN_OR_RETURN(limits.score, ReadFloat(ctx.in(4)));
  if (limits.most < 0)
    return absl::InvalidArgumentError(absl::StrCat("max_output_size is ", limits.most));
  const float* const matrix = ctx.in(0).as<float>();
  const auto overlap = [matrix, count](int32_t a, int32_t b) { return matrix[a * count + b]; };
  FLOE_ASSIGN_OR_RETURN(const Chosen chosen, ChooseBy(PairSuppressor(overlap, limits),
                                                      ctx.in(1).as<float>(), 1, count, limits));
  return Give(ctx, 0, chosen.boxes);
}
FLOE_REGISTER_KERNEL(NonMaxSuppressionWithOverlaps, kCpu, MakeFunction<ByOverlaps>,
                     DType::kFloat32);

struct Detection {
  float score;
  int32_t box, of_class;
};

// Inputs: boxes, scores, most of a class, most of all, iou_threshold, score_threshold.
absl::Status Combined(const KernelContext& ctx, bool pad_per_class, bool clip,
                      OverlapsF32 overlaps) {
  const Shape &boxes = ctx.in(0).shape, &scores = ctx.in(1).shape;
  if (boxes.rank() != 4 || scores.rank() != 3 || boxes.dim(3) != 4 ||
      boxes.dim(0) != scores.dim(0) || boxes.dim(1) != scores.dim(1) ||
      (boxes.dim(2) != 1 && boxes.dim(2) != scores.dim(2)))
    return absl::InvalidArgumentError(
        absl::StrCat("boxes ", boxes.ToString(), " with scores ", scores.ToString()));
  Limits limits;
  limits.overlaps = overlaps;
  FLOE_ASSIGN_OR_RETURN(limits.most, ReadInt(ctx.in(2)));
  FLOE_ASSIGN_OR_RETURN(int64_t total, ReadInt(ctx.in(3)));
  FLOE_ASSIGN_OR_RETURN(limits.iou, ReadFloat(ctx.in(4)));
  FLOE_ASSIGN_OR_RETURN(limits.score, ReadFloat(ctx.in(5)));
  if (limits.most <= 0 || total <= 0)
    return absl::InvalidArgumentError(
        absl::StrCat("max_output_size_per_class is ", limits.most, ", max_total_size ", total));
  const int64_t batch = boxes.dim(0), count = boxes.dim(1), sets = boxes.dim(2),
                classes = scores.dim(2);
  if (pad_per_class) total = std::min(total, limits.most * std::min(classes, total));
  FLOE_ASSIGN_OR_RETURN(const TensorView out,
                        ctx.allocator->Allocate(0, DType::kFloat32, Shape({batch, total, 4})));
  FLOE_ASSIGN_OR_RETURN(const TensorView out_scores,
                        ctx.allocator->Allocate(1, DType::kFloat32, Shape({batch, total})));
  FLOE_ASSIGN_OR_RETURN(const TensorView out_classes,
                        ctx.allocator->Allocate(2, DType::kFloat32, Shape({batch, total})));
  FLOE_ASSIGN_OR_RETURN(const TensorView out_valid,
                        ctx.allocator->Allocate(3, DType::kInt32, Shape({batch})));
  for (const TensorView* view : {&out, &out_scores, &out_classes})
    std::fill_n(view->as<float>(), view->elements(), 0.f);
  for (int64_t n = 0; n < batch; ++n) {
    const float* of_image = ctx.in(0).as<float>() + n * count * sets * 4;
    const float* image_scores = ctx.in(1).as<float>() + n * count * classes;
    std::vector<Detection> found;
    for (int64_t c = 0; c < classes; ++c) {
      FLOE_ASSIGN_OR_RETURN(const Chosen chosen,
                            Choose(of_image + (sets == 1 ? 0 : c * 4), sets * 4, image_scores + c,
                                   classes, count, limits));
      for (size_t i = 0; i < chosen.boxes.size(); ++i)
        found.push_back({chosen.scores[i], chosen.boxes[i], static_cast<int32_t>(c)});
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Detection& a, const Detection& b) { return a.score > b.score; });
    const int64_t valid = std::min<int64_t>(total, static_cast<int64_t>(found.size()));
    out_valid.as<int32_t>()[n] = static_cast<int32_t>(valid);
    for (int64_t i = 0; i < valid; ++i) {
      const Detection& d = found[i];
      const float* box = of_image + (d.box * sets + (sets == 1 ? 0 : d.of_class)) * 4;
      for (int k = 0; k < 4; ++k)
        out.as<float>()[(n * total + i) * 4 + k] = clip ? std::clamp(box[k], 0.f, 1.f) : box[k];
      out_scores.as<float>()[n * total + i] = d.score;
      out_classes.as<float>()[n * total + i] = static_cast<float>(d.of_class);
    }
  }
  return absl::OkStatus();
}
absl::StatusOr<std::unique_ptr<Kernel>> MakeCombined(const KernelArgs& args) {
  const bool pad = args.node.attrs.Bool("pad_per_class"),
             clip = args.node.attrs.Bool("clip_boxes", true);
  return FromFunction([pad, clip, overlaps = PickOverlapsF32()](const KernelContext& ctx) {
    return Combined(ctx, pad, clip, overlaps);
  });
}

FLOE_REGISTER_KERNEL(NonMaxSuppressionV2, kCpu, MakeNms, DType::kFloat32, DType::kFloat16);
FLOE_REGISTER_KERNEL(NonMaxSuppressionV3, kCpu, MakeNms, DType::kFloat32, DType::kFloat16);
FLOE_REGISTER_KERNEL(NonMaxSuppressionV4, kCpu, MakeNms, DType::kFloat32, DType::kFloat16);
FLOE_REGISTER_KERNEL(NonMaxSuppressionV5, kCpu, MakeNms, DType::kFloat32, DType::kFloat16);
FLOE_REGISTER_KERNEL(CombinedNonMaxSuppression, kCpu, MakeCombined, DType::kFloat32);

}  // namespace
}  // namespace floe::kernels
