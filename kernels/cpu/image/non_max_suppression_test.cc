#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/cpu/every_isa_for_test.h"
#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/kernel_test_util.h"

namespace floe {
namespace {

using Box = std::vector<double>;  // two corners, each (y, x)

double Iou(const Box& a, const Box& b) {
  const auto along = [&](int i) {
    return std::max(0.0, std::min(std::max(a[i], a[i + 2]), std::max(b[i], b[i + 2])) -
                             std::max(std::min(a[i], a[i + 2]), std::min(b[i], b[i + 2])));
  };
  const auto area = [](const Box& box) {
    return std::abs(box[2] - box[0]) * std::abs(box[3] - box[1]);
  };
  const double common = along(0) * along(1);
  return common <= 0 ? 0 : common / (area(a) + area(b) - common);
}

// Every pair is compared, in the order of scores.
std::vector<int32_t> Expected(const Tensor& boxes, const Tensor& scores, size_t most, double iou) {
  const auto box = [&](int32_t i) {
    return Box(boxes.as<float>() + 4 * i, boxes.as<float>() + 4 * i + 4);
  };
  std::vector<int32_t> order(scores.elements()), chosen;
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return scores.as<float>()[a] > scores.as<float>()[b];
  });
  for (const int32_t i : order) {
    const bool out = std::any_of(chosen.begin(), chosen.end(),
                                 [&](int32_t j) { return Iou(box(i), box(j)) > iou; });
    if (!out && chosen.size() < most) chosen.push_back(i);
  }
  return chosen;
}

class OneOutput final : public OutputAllocator {
 public:
  absl::StatusOr<TensorView> Allocate(int, DType dtype, const Shape& shape) override {
    tensor = Tensor::Allocate(dtype, shape);
    return tensor.view();
  }
  Tensor tensor;
};

absl::StatusOr<std::vector<int32_t>> Chosen(const std::string& op,
                                            const std::vector<Tensor>& inputs) {
  const auto made = MakeTestKernel(op, {}, inputs);
  if (!made.ok()) return made.status();
  std::vector<TensorView> views;
  views.reserve(inputs.size());
  for (const Tensor& input : inputs) views.push_back(input.view());
  ThreadPool pool(1);
  OneOutput got;
  const absl::Status run = (*made)->kernel->Run({views, {}, nullptr, &pool, &got});
  if (!run.ok()) return run;
  const auto* chosen = got.tensor.as<int32_t>();
  return std::vector<int32_t>(chosen, chosen + got.tensor.elements());
}

Tensor Most(int32_t n) { return Tensor::Scalar<int32_t>(DType::kInt32, n); }
Tensor Number(float value) { return Tensor::Scalar(DType::kFloat32, value); }

TEST(NonMaxSuppression, ManyBoxesAsPairByPair) {
  for (const int64_t isa : IsasToTest()) {
    hwy::SetSupportedTargetsForTest(isa);
    for (const int count : {1, 7, 15, 16, 17, 40, 300}) {
      for (const float iou : {0.0f, 0.1f, 0.5f, 1.0f}) {
        Tensor boxes = RandomTensor({count, 4}, static_cast<uint32_t>(count));
        auto* values = static_cast<float*>(boxes.mutable_data());
        values[2] = values[0];  // one has no size
        const Tensor scores = RandomTensor({count}, 7);
        const auto chosen = Chosen("NonMaxSuppressionV2", {boxes, scores, Most(100), Number(iou)});
        ASSERT_TRUE(chosen.ok()) << chosen.status();
        EXPECT_EQ(*chosen, Expected(boxes, scores, 100, iou))
            << count << " boxes, " << iou << " " << hwy::TargetName(isa);
      }
    }
    hwy::SetSupportedTargetsForTest(0);
  }
}

TEST(FilteredNonMaxSuppression, TakesScoresAboveBothThresholds) {
  const Tensor boxes = FloatTensor({3, 4}, {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto chosen = [&](const std::vector<float>& scores, float score, float filter) {
    return Chosen("FilteredNonMaxSuppression",
                  {boxes, FloatTensor({static_cast<int64_t>(scores.size())}, scores), Most(9),
                   Number(0.5f), Number(score), Number(filter)});
  };
  const std::vector<float> scores = {0.2f, -0.5f, 0.8f};
  EXPECT_EQ(*chosen(scores, -1, -1), (std::vector<int32_t>{2, 0, 1}));
  EXPECT_EQ(*chosen(scores, -1, 0.2f), (std::vector<int32_t>{2}));
  EXPECT_EQ(*chosen(scores, 0, -1), (std::vector<int32_t>{2, 0}));
  EXPECT_TRUE(chosen(scores, nan, -1)->empty());
  EXPECT_TRUE(chosen(scores, -1, nan)->empty());
  EXPECT_EQ(*chosen({0.1f, nan, -0.0f}, -1, -1), (std::vector<int32_t>{0, 2}));
  // Boxes may be left over, scores above the filter may not.
  EXPECT_EQ(*chosen({0.1f}, -1, -1), (std::vector<int32_t>{0}));
  EXPECT_EQ(*chosen({0.1f, 0.2f, 0.3f, -0.4f}, -1, 0), (std::vector<int32_t>{2, 1, 0}));
  EXPECT_EQ(chosen({0.1f, 0.2f, 0.3f, 0.4f}, 1, 0).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace floe
