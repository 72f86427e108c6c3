#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

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

TEST(NonMaxSuppression, ManyBoxesAsPairByPair) {
  for (const int count : {1, 7, 8, 9, 40, 300}) {
    for (const float iou : {0.0f, 0.1f, 0.5f, 1.0f}) {
      Tensor boxes = RandomTensor({count, 4}, static_cast<uint32_t>(count));
      auto* values = static_cast<float*>(boxes.mutable_data());
      values[2] = values[0];  // one has no size
      const Tensor scores = RandomTensor({count}, 7);
      const std::vector<Tensor> inputs = {boxes, scores,
                                          Tensor::Scalar<int32_t>(DType::kInt32, 100),
                                          Tensor::Scalar(DType::kFloat32, iou)};
      const auto made = MakeTestKernel("NonMaxSuppressionV2", {}, inputs);
      ASSERT_TRUE(made.ok()) << made.status();
      const TensorView views[] = {inputs[0].view(), inputs[1].view(), inputs[2].view(),
                                  inputs[3].view()};
      ThreadPool pool(1);
      OneOutput got;
      ASSERT_TRUE((*made)->kernel->Run({views, {}, nullptr, &pool, &got}).ok());
      const auto* chosen = got.tensor.as<int32_t>();
      EXPECT_EQ(std::vector<int32_t>(chosen, chosen + got.tensor.elements()),
                Expected(boxes, scores, 100, iou))
          << count << " boxes, " << iou;
    }
  }
}

}  // namespace
}  // namespace floe
