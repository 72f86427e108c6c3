#include "kernels/cpu/image/interpolate_f32.h"

#include <vector>

#include "kernels/cpu/every_isa_for_test.h"
#include "kernels/cpu/kernel_test_util.h"

namespace floe {
namespace {

TEST(InterpolateF32, EveryTailOnEveryIsa) {
  OnEveryIsa([] {
    const kernels::InterpolateF32 interpolate = kernels::PickInterpolateF32();
    const Tensor a = RandomTensor({70}, 1), b = RandomTensor({70}, 2);
    for (size_t n = 0; n <= 70; ++n) {
      std::vector<float> y(71, 9);
      interpolate(a.as<float>(), b.as<float>(), 0.3f, y.data(), n);
      for (size_t i = 0; i < n; ++i) {
        const double x = a.as<float>()[i];
        ASSERT_NEAR(y[i], x + (b.as<float>()[i] - x) * 0.3f, 2e-7) << i << " of " << n;
      }
      ASSERT_EQ(y[n], 9);
    }
  });
}

TEST(WeighFourF32, EveryTailOnEveryIsa) {
  OnEveryIsa([] {
    const kernels::WeighFourF32 weigh = kernels::PickWeighFourF32();
    const Tensor rows = RandomTensor({4, 70}, 1);
    const float* const from[] = {rows.as<float>(), rows.as<float>() + 70, rows.as<float>() + 140,
                                 rows.as<float>() + 210};
    const float weights[] = {-0.1f, 0.7f, 0.5f, -0.2f};
    for (size_t n = 0; n <= 70; ++n) {
      std::vector<float> y(71, 9);
      weigh(from, weights, y.data(), n);
      for (size_t i = 0; i < n; ++i) {
        double sum = 0;
        for (int k = 0; k < 4; ++k) sum += static_cast<double>(weights[k]) * from[k][i];
        ASSERT_NEAR(y[i], sum, 5e-7) << i << " of " << n;
      }
      ASSERT_EQ(y[n], 9);
    }
  });
}

// Images of many channels go by vectors, those of one by a plain loop.
TEST(Resize, EveryChannelIsResizedAlone) {
  for (const char* op :
       {"ResizeBilinear", "ResizeBicubic", "ResizeArea", "ResizeNearestNeighbor"}) {
    for (const int64_t channels : {3, 5, 16, 37}) {
      for (const auto& [height, width] : {std::pair(8, 11), std::pair(3, 2), std::pair(15, 5)}) {
        const Tensor image = RandomTensor({2, 5, 7, channels}, 3);
        const Tensor size = Tensor::Vector(DType::kInt32, std::vector<int32_t>{height, width});
        const auto all = RunKernel(op, {}, {image, size}, {.const_mask = 2});
        ASSERT_TRUE(all.ok()) << all.status();
        for (int64_t c = 0; c < channels; ++c) {
          Tensor one = Tensor::Allocate(DType::kFloat32, {2, 5, 7, 1});
          for (int64_t i = 0; i < one.elements(); ++i)
            static_cast<float*>(one.mutable_data())[i] = image.as<float>()[i * channels + c];
          const auto alone = RunKernel(op, {}, {one, size}, {.const_mask = 2});
          ASSERT_TRUE(alone.ok()) << alone.status();
          for (int64_t i = 0; i < (*alone)[0].elements(); ++i)
            ASSERT_NEAR((*all)[0].as<float>()[i * channels + c], (*alone)[0].as<float>()[i], 2e-6)
                << op << " of " << channels << " channels to " << height << " x " << width;
        }
      }
    }
  }
}

}  // namespace
}  // namespace floe
