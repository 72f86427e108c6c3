// SampleDistortedBoundingBox and its V2: a random part of an image that covers enough of one of its
// objects. Seeded, the parts are TensorFlow's, so the numbers are drawn and rounded in its order.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cpu/random/philox.h"
#include "kernels/cpu/random/random_sequence.h"
#include "kernels/kernel.h"

namespace floe::kernels {
namespace {

// Whole pixels, the ends excluded.
struct Box {
  int64_t top = 0, left = 0, bottom = 0, right = 0;
  double area() const {
    return bottom <= top || right <= left
               ? 0
               : static_cast<double>(bottom - top) * static_cast<double>(right - left);
  }
};

struct Range {
  float least = 0, most = 0;
};

absl::StatusOr<Range> ReadRange(const Attrs& attrs, const char* name, Range otherwise,
                                float limit) {
  const std::vector<float> given = attrs.Get<std::vector<float>>(name, {});
  if (given.empty()) return otherwise;
  if (given.size() != 2 || !(given[0] >= 1e-6f) || !(given[1] >= given[0]) || !(given[1] <= limit))
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is not a range of numbers from 1e-6 to ", limit));
  return Range{given[0], given[1]};
}

class RandomBoxKernel : public Kernel {
 public:
  RandomBoxKernel(const Attrs& attrs, Range aspects, Range areas)
      : seed_(static_cast<uint64_t>(attrs.Int("seed"))),
        seed2_(static_cast<uint64_t>(attrs.Int("seed2"))),
        aspects_(aspects),
        areas_(areas),
        attempts_(attrs.Int("max_attempts", 100)),
        covered_(attrs.Float("min_object_covered", 0.1f)),
        whole_if_none_(attrs.Bool("use_image_if_no_bounding_boxes")) {
    if (seed_ == 0 && seed2_ == 0) seed_ = SeedOf(attrs);
  }

  absl::Status Run(const KernelContext& ctx) const override {
    std::vector<int64_t> size;
    FLOE_RETURN_IF_ERROR(ReadSize(ctx.in(0), &size));
    std::vector<Box> objects;
    FLOE_RETURN_IF_ERROR(ReadObjects(ctx.in(1), size, &objects));
    const float covered = ctx.inputs.size() > 2 ? *ctx.in(2).as<float>() : covered_;
    if (!(covered >= 0 && covered <= 1))
      return absl::InvalidArgumentError(
          absl::StrCat("min_object_covered ", covered, " is not in [0, 1]"));
    Box crop{0, 0, size[0], size[1]};
    const auto blocks = static_cast<uint64_t>(attempts_);
    Philox random(seed_, seed2_, next_block_.fetch_add(blocks, std::memory_order_relaxed));
    for (int64_t i = 0; i < attempts_; ++i) {
      Box tried;
      if (Draw(size, &random, &tried) && Covers(tried, objects, covered)) {
        crop = tried;
        break;
      }
    }
    Store(ctx.out(0), {crop.top, crop.left, 0});
    Store(ctx.out(1), {crop.bottom - crop.top, crop.right - crop.left, -1});
    if (ctx.out(2).data != nullptr) {
      const auto height = static_cast<float>(size[0]), width = static_cast<float>(size[1]);
      const float corners[] = {
          static_cast<float>(crop.top) / height, static_cast<float>(crop.left) / width,
          static_cast<float>(crop.bottom) / height, static_cast<float>(crop.right) / width};
      std::copy_n(corners, 4, ctx.out(2).as<float>());
    }
    return absl::OkStatus();
  }

 private:
  template <class F>
  static void WithType(const TensorView& view, const F& f) {
    switch (view.dtype) {
      case DType::kUInt8:
        return f(view.as<uint8_t>());
      case DType::kInt8:
        return f(view.as<int8_t>());
      case DType::kInt16:
        return f(view.as<int16_t>());
      case DType::kInt32:
        return f(view.as<int32_t>());
      default:
        return f(view.as<int64_t>());
    }
  }

  static absl::Status ReadSize(const TensorView& view, std::vector<int64_t>* size) {
    if (view.elements() != 3)
      return absl::InvalidArgumentError(
          absl::StrCat("image_size has ", view.elements(), " elements, expected 3"));
    WithType(view, [&](auto* values) { size->assign(values, values + 3); });
    constexpr int64_t kMost = int64_t{1} << 31;
    if ((*size)[0] <= 0 || (*size)[1] <= 0 || (*size)[0] >= kMost || (*size)[1] >= kMost)
      return absl::InvalidArgumentError(
          absl::StrCat("an image of ", (*size)[0], " x ", (*size)[1], " pixels"));
    return absl::OkStatus();
  }

  static void Store(const TensorView& out, std::initializer_list<int64_t> values) {
    if (out.data == nullptr) return;
    WithType(out, [&](auto* to) {
      for (int64_t value : values)
        *to++ = static_cast<std::remove_reference_t<decltype(*to)>>(value);
    });
  }

  absl::Status ReadObjects(const TensorView& view, const std::vector<int64_t>& size,
                           std::vector<Box>* objects) const {
    const float* b = view.as<float>();
    const auto height = static_cast<float>(size[0]), width = static_cast<float>(size[1]);
    for (int64_t i = 0; i < view.elements() / 4; ++i, b += 4) {
      const bool fits =
          b[0] >= 0 && b[1] >= 0 && b[2] <= 1 && b[3] <= 1 && b[0] <= b[2] && b[1] <= b[3];
      if (!fits)
        return absl::InvalidArgumentError(absl::StrCat("bounding box ", i, " is [", b[0], ", ",
                                                       b[1], ", ", b[2], ", ", b[3],
                                                       "], expected corners in [0, 1]"));
      objects->push_back({static_cast<int64_t>(b[0] * height), static_cast<int64_t>(b[1] * width),
                          static_cast<int64_t>(b[2] * height), static_cast<int64_t>(b[3] * width)});
    }
    if (!objects->empty()) return absl::OkStatus();
    if (!whole_if_none_)
      return absl::InvalidArgumentError(
          "there are no bounding boxes, and use_image_if_no_bounding_boxes is off");
    objects->push_back({0, 0, size[0], size[1]});
    return absl::OkStatus();
  }

  static int64_t Below(int64_t bound, Philox* random) {
    return random->Below(static_cast<uint32_t>(bound));
  }

  // An aspect ratio, then a height among those whose area is allowed, then a place.
  bool Draw(const std::vector<int64_t>& size, Philox* random, Box* box) const {
    const auto height = static_cast<float>(size[0]), width = static_cast<float>(size[1]);
    const float aspect = random->Unit() * (aspects_.most - aspects_.least) + aspects_.least;
    const float least = areas_.least * width * height, most = areas_.most * width * height;
    const auto columns_of = [aspect](int64_t rows) -> int64_t {
      return std::lrint(static_cast<float>(rows) * aspect);
    };
    int64_t rows = std::lrint(std::sqrt(least / aspect)),
            highest = std::lrint(std::sqrt(most / aspect));
    if (columns_of(highest) > size[1]) {
      highest = static_cast<int64_t>((width + 0.5 - 1e-7) / aspect);
      if (columns_of(highest) > size[1]) --highest;
    }
    highest = std::min(highest, size[0]);
    rows = std::min(rows, highest);
    if (rows < highest) rows += Below(highest - rows + 1, random);
    const auto area_of = [&](int64_t r) {
      return static_cast<float>(r) * static_cast<float>(columns_of(r));
    };
    if (area_of(rows) < least) ++rows;
    if (area_of(rows) > most) --rows;
    const int64_t columns = columns_of(rows);
    if (area_of(rows) < least || area_of(rows) > most || rows <= 0 || columns <= 0 ||
        rows > size[0] || columns > size[1])
      return false;
    box->top = rows < size[0] ? Below(size[0] - rows, random) : 0;
    box->left = columns < size[1] ? Below(size[1] - columns, random) : 0;
    box->bottom = box->top + rows;
    box->right = box->left + columns;
    return true;
  }

  static bool Covers(const Box& crop, const std::vector<Box>& objects, float covered) {
    for (const Box& object : objects) {
      if (object.area() <= 0) continue;
      const Box common{std::max(crop.top, object.top), std::max(crop.left, object.left),
                       std::min(crop.bottom, object.bottom), std::min(crop.right, object.right)};
      if (common.area() >= covered * object.area()) return true;
    }
    return false;
  }

  uint64_t seed_;
  const uint64_t seed2_;
  mutable std::atomic<uint64_t> next_block_{0};
  const Range aspects_, areas_;
  const int64_t attempts_;
  const float covered_;
  const bool whole_if_none_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeRandomBox(const KernelArgs& args) {
  const Attrs& attrs = args.node.attrs;
  FLOE_ASSIGN_OR_RETURN(const Range aspects,
                        ReadRange(attrs, "aspect_ratio_range", {0.75f, 1.33f}, 1e6f));
  FLOE_ASSIGN_OR_RETURN(const Range areas, ReadRange(attrs, "area_range", {0.05f, 1.0f}, 1.0f));
  if (attrs.Int("max_attempts", 100) <= 0 || attrs.Int("max_attempts", 100) > 1'000'000)
    return absl::InvalidArgumentError(
        absl::StrCat("max_attempts is ", attrs.Int("max_attempts", 100)));
  return std::make_unique<RandomBoxKernel>(attrs, aspects, areas);
}
FLOE_REGISTER_KERNEL(SampleDistortedBoundingBox, kCpu, MakeRandomBox, DType::kUInt8, DType::kInt8,
                     DType::kInt16, DType::kInt32, DType::kInt64);
FLOE_REGISTER_KERNEL(SampleDistortedBoundingBoxV2, kCpu, MakeRandomBox, DType::kUInt8, DType::kInt8,
                     DType::kInt16, DType::kInt32, DType::kInt64);

}  // namespace
}  // namespace floe::kernels
