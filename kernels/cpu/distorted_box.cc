// SampleDistortedBoundingBox: a random crop with an area and an aspect ratio within bounds that
// shows enough of one of the boxes given. With seeds, the crops are TensorFlow's.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/grid_copy.h"
#include "kernels/cpu/philox.h"
#include "kernels/cpu/random_sequence.h"

namespace floe::kernels {
namespace {

struct Box {
  int64_t x0 = 0, y0 = 0, x1 = 0, y1 = 0;  // pixels

  int64_t Area() const { return std::max<int64_t>(x1 - x0, 0) * std::max<int64_t>(y1 - y0, 0); }
  Box Intersection(const Box& o) const {
    return {std::max(x0, o.x0), std::max(y0, o.y0), std::min(x1, o.x1), std::min(y1, o.y1)};
  }
};

constexpr int64_t kMaxSide = int64_t{1} << 30;

int64_t Round(float value) {
  constexpr auto kMax = static_cast<float>(kMaxSide);
  return std::isfinite(value) ? std::lrint(std::clamp(value, 0.0f, kMax)) : kMaxSide;
}

struct Limits {
  float min_ratio, max_ratio;  // width / height
  float min_area, max_area;    // of the image's
  int64_t attempts;
};

int64_t Below(Philox* random, int64_t n) { return random->Below(static_cast<uint32_t>(n)); }

// Uniform among the heights that keep the area within its limits and the width within the image,
// then uniform among its places. False when rounding to pixels leaves none. In float throughout,
// so that it rounds as TensorFlow does.
bool DrawCrop(int64_t width, int64_t height, float ratio, const Limits& limits, Philox* random,
              Box* crop) {
  const auto w_image = static_cast<float>(width), h_image = static_cast<float>(height);
  const float min_area = limits.min_area * w_image * h_image,
              max_area = limits.max_area * w_image * h_image;
  if (!(ratio > 0) || limits.min_area > limits.max_area) return false;
  const auto width_of = [ratio](int64_t h) { return Round(static_cast<float>(h) * ratio); };
  const auto area_of = [](int64_t w, int64_t h) { return static_cast<float>(w * h); };
  int64_t most = Round(std::sqrt(max_area / ratio));
  if (width_of(most) > width) {
    constexpr double kBelowHalf = 0.5 - 1e-7;
    most = static_cast<int64_t>(
        std::min<double>((static_cast<double>(width) + kBelowHalf) / ratio, kMaxSide));
    if (width_of(most) > width) --most;
  }
  most = std::min(most, height);
  int64_t h = std::min(Round(std::sqrt(min_area / ratio)), most);
  if (h < most) h += Below(random, most - h + 1);
  int64_t w = width_of(h);
  // Rounding may have led out of the limits by a pixel.
  if (area_of(w, h) < min_area) w = width_of(++h);
  if (area_of(w, h) > max_area) w = width_of(--h);
  const float area = area_of(w, h);
  if (area < min_area || area > max_area || w > width || h > height || w <= 0 || h <= 0)
    return false;
  crop->y0 = h < height ? Below(random, height - h) : 0;
  crop->x0 = w < width ? Below(random, width - w) : 0;
  crop->x1 = crop->x0 + w;
  crop->y1 = crop->y0 + h;
  return true;
}

bool ShowsOne(const Box& crop, const std::vector<Box>& boxes, float covered) {
  return crop.Area() >= 1 && std::any_of(boxes.begin(), boxes.end(), [&](const Box& box) {
           if (box.Area() < 1) return false;
           const auto shown = static_cast<float>(crop.Intersection(box).Area());
           return shown / static_cast<float>(box.Area()) >= covered;
         });
}

absl::StatusOr<std::vector<Box>> ReadBoxes(const TensorView& boxes, int64_t width, int64_t height,
                                           bool whole_image_instead) {
  if (boxes.shape.rank() != 3 || boxes.shape.dim(2) != 4)
    return absl::InvalidArgumentError(
        absl::StrCat("boxes of shape ", boxes.shape.ToString(), ", expected [batch, n, 4]"));
  std::vector<Box> read;
  const float* at = boxes.as<float>();
  for (int64_t i = 0; i < boxes.elements(); ++i) {
    if (!(at[i] >= 0 && at[i] <= 1))
      return absl::InvalidArgumentError(absl::StrCat("coordinate ", at[i], " is not in [0, 1]"));
  }
  const auto pixels = [](float part, int64_t size) {
    return static_cast<int64_t>(part * static_cast<float>(size));
  };
  for (int64_t i = 0; i < boxes.elements() / 4; ++i, at += 4) {
    read.push_back(
        {pixels(at[1], width), pixels(at[0], height), pixels(at[3], width), pixels(at[2], height)});
  }
  if (read.empty() && !whole_image_instead)
    return absl::InvalidArgumentError("no boxes, and use_image_if_no_bounding_boxes is not set");
  if (read.empty()) read.push_back({0, 0, width, height});
  return read;
}

class DistortedBox final : public Kernel {
 public:
  DistortedBox(const Limits& limits, const Attrs& attrs)
      : limits_(limits),
        covered_(attrs.Float("min_object_covered", 0.1f)),
        whole_image_instead_(attrs.Bool("use_image_if_no_bounding_boxes")),
        seed_(static_cast<uint64_t>(attrs.Int("seed"))),
        stream_(static_cast<uint64_t>(attrs.Int("seed2"))) {
    if (seed_ == 0 && stream_ == 0) seed_ = SeedOf(attrs);
  }

  absl::Status Run(const KernelContext& ctx) const override {
    int64_t size[2] = {0, 0};
    FLOE_RETURN_IF_ERROR(ReadSize(ctx.in(0), size));
    const int64_t height = size[0], width = size[1];
    float covered = covered_;
    if (ctx.inputs.size() > 2) {
      if (ctx.in(2).dtype != DType::kFloat32 || ctx.in(2).elements() != 1)
        return absl::InvalidArgumentError("min_object_covered is not a float");
      covered = *ctx.in(2).as<float>();
    }
    if (!(covered >= 0 && covered <= 1))
      return absl::InvalidArgumentError(
          absl::StrCat("min_object_covered ", covered, " is not in [0, 1]"));
    if (ctx.in(1).dtype != DType::kFloat32)
      return absl::InvalidArgumentError("boxes are not float32");
    FLOE_ASSIGN_OR_RETURN(const std::vector<Box> boxes,
                          ReadBoxes(ctx.in(1), width, height, whole_image_instead_));
    // An attempt is meant to draw at most one block.
    const auto blocks = static_cast<uint64_t>(limits_.attempts);
    Philox random(seed_, stream_, next_block_.fetch_add(blocks, std::memory_order_relaxed));
    Box crop;
    bool found = false;
    for (int64_t i = 0; i < limits_.attempts && !found; ++i) {
      const float ratio =
          random.Unit() * (limits_.max_ratio - limits_.min_ratio) + limits_.min_ratio;
      found =
          DrawCrop(width, height, ratio, limits_, &random, &crop) && ShowsOne(crop, boxes, covered);
    }
    if (!found) crop = {0, 0, width, height};
    Give(ctx, crop, width, height);
    return absl::OkStatus();
  }

 private:
  static absl::Status ReadSize(const TensorView& view, int64_t* size) {
    bool valid = view.elements() == 3;
    ForDType(view.dtype, Integers{}, [&](auto t) {
      using T = decltype(t);
      for (int i = 0; i < 2 && valid; ++i) {
        size[i] = static_cast<int64_t>(view.as<T>()[i]);
        valid = size[i] > 0 && size[i] < kMaxSide;
      }
    });
    if (valid) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "image_size is not [height, width, channels] with a positive height and width");
  }

  static void Give(const KernelContext& ctx, const Box& crop, int64_t width, int64_t height) {
    ForDType(ctx.out(0).dtype, Integers{}, [&](auto t) {
      using T = decltype(t);
      const int64_t begin[] = {crop.y0, crop.x0, 0},
                    size[] = {crop.y1 - crop.y0, crop.x1 - crop.x0, -1};
      for (int i = 0; i < 3; ++i) {
        ctx.out(0).as<T>()[i] = static_cast<T>(begin[i]);
        ctx.out(1).as<T>()[i] = static_cast<T>(size[i]);
      }
    });
    float* box = ctx.out(2).as<float>();
    box[0] = static_cast<float>(crop.y0) / static_cast<float>(height);
    box[1] = static_cast<float>(crop.x0) / static_cast<float>(width);
    box[2] = static_cast<float>(crop.y1) / static_cast<float>(height);
    box[3] = static_cast<float>(crop.x1) / static_cast<float>(width);
  }

  const Limits limits_;
  const float covered_;
  const bool whole_image_instead_;
  uint64_t seed_;
  const uint64_t stream_;
  mutable std::atomic<uint64_t> next_block_{0};  // of the next run
};

absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelArgs& args) {
  const Attrs& attrs = args.node.attrs;
  const auto ratio = attrs.Get<std::vector<float>>("aspect_ratio_range", {0.75f, 1.33f});
  const auto area = attrs.Get<std::vector<float>>("area_range", {0.05f, 1.0f});
  constexpr int64_t kMaxAttempts = 1 << 20;
  const int64_t attempts = attrs.Int("max_attempts", 100);
  if (ratio.size() != 2 || !(ratio[0] > 0 && ratio[1] > 0) || !std::isfinite(ratio[0]) ||
      !std::isfinite(ratio[1]))
    return absl::InvalidArgumentError("aspect_ratio_range is not two positive numbers");
  if (area.size() != 2 || !(area[0] > 0 && area[0] <= 1 && area[1] > 0 && area[1] <= 1))
    return absl::InvalidArgumentError("area_range is not two numbers in (0, 1]");
  if (attempts <= 0 || attempts > kMaxAttempts)
    return absl::InvalidArgumentError(
        absl::StrCat("max_attempts ", attempts, " is not in [1, ", kMaxAttempts, "]"));
  return std::make_unique<DistortedBox>(Limits{ratio[0], ratio[1], area[0], area[1], attempts},
                                        attrs);
}
FLOE_REGISTER_KERNEL(SampleDistortedBoundingBox, kCpu, Make);

}  // namespace
}  // namespace floe::kernels
