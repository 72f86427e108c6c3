#include "kernels/cpu/image/area_f32.h"

#include <utility>
#include <vector>

#include "kernels/cpu/every_isa_for_test.h"
#include "kernels/cpu/kernel_test_util.h"

namespace floe {
namespace {

// The plain loop, which images of integers take, gives float32 its bits.
TEST(AreaF32, HasThePlainLoopsBitsOnEveryIsa) {
  OnEveryIsa([] {
    for (const int64_t channels : {1, 2, 3, 5, 8, 16, 19, 37}) {
      for (const auto& [height, width] : {std::pair(8, 11), std::pair(3, 2), std::pair(1, 1)}) {
        const Shape shape = {2, 9, 7, channels};
        Tensor floats = Tensor::Allocate(DType::kFloat32, shape),
               whole = Tensor::Allocate(DType::kInt32, shape);
        for (int64_t i = 0; i < whole.elements(); ++i) {
          static_cast<int32_t*>(whole.mutable_data())[i] = static_cast<int32_t>(i * 7919 % 1009);
          static_cast<float*>(floats.mutable_data())[i] = static_cast<float>(i * 7919 % 1009);
        }
        const Tensor size = Tensor::Vector(DType::kInt32, std::vector<int32_t>{height, width});
        const auto by_vectors = RunKernel("ResizeArea", {}, {floats, size}, {.const_mask = 2}),
                   plain = RunKernel("ResizeArea", {}, {whole, size}, {.const_mask = 2});
        ASSERT_TRUE(by_vectors.ok() && plain.ok()) << by_vectors.status() << plain.status();
        for (int64_t i = 0; i < (*plain)[0].elements(); ++i)
          ASSERT_EQ((*by_vectors)[0].as<float>()[i], (*plain)[0].as<float>()[i])
              << i << " of " << channels << " channels to " << height << " x " << width;
      }
    }
  });
}

}  // namespace
}  // namespace floe
