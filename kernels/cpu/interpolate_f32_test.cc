#include "kernels/cpu/interpolate_f32.h"

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

// Images of many channels go by vectors, those of one by a plain loop.
TEST(ResizeBilinear, EveryChannelIsResizedAlone) {
  for (const int64_t channels : {3, 5, 16, 37}) {
    const Tensor image = RandomTensor({2, 5, 7, channels}, 3);
    const Tensor size = Tensor::Vector(DType::kInt32, std::vector<int32_t>{8, 11});
    const auto all = RunKernel("ResizeBilinear", {}, {image, size}, {.const_mask = 2});
    ASSERT_TRUE(all.ok()) << all.status();
    for (int64_t c = 0; c < channels; ++c) {
      Tensor one = Tensor::Allocate(DType::kFloat32, {2, 5, 7, 1});
      for (int64_t i = 0; i < one.elements(); ++i)
        static_cast<float*>(one.mutable_data())[i] = image.as<float>()[i * channels + c];
      const auto alone = RunKernel("ResizeBilinear", {}, {one, size}, {.const_mask = 2});
      ASSERT_TRUE(alone.ok()) << alone.status();
      for (int64_t i = 0; i < (*alone)[0].elements(); ++i)
        ASSERT_NEAR((*all)[0].as<float>()[i * channels + c], (*alone)[0].as<float>()[i], 1e-6);
    }
  }
}

}  // namespace
}  // namespace floe
