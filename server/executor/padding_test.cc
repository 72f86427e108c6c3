#include "server/executor/padding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace floe::server {
namespace {

TEST(Padding, AValueIsOfTheInputsDType) {
  EXPECT_EQ(*PadValue(DType::kFloat32, 0.5)->as<float>(), 0.5f);
  EXPECT_EQ(*PadValue(DType::kInt8, -128)->as<int8_t>(), -128);
  EXPECT_EQ(PadValue(DType::kString, 0).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(PadValue(DType::kUInt8, 300).status().message()),
              testing::HasSubstr("300 is no uint8"));
}

TEST(Padding, RaisesNonBatchDimsOnly) {
  Shape shape({2, 3, 5});
  RaiseNonBatchDims(Shape({7, 4, 1}), &shape);
  EXPECT_EQ(shape, Shape({2, 4, 5}));
}

// Every element of the larger tensor is looked up by its indices in the smaller one.
TEST(Padding, CopiesToTheStartOfEveryAxis) {
  const Shape cases[][2] = {
      {Shape({2, 3}), Shape({2, 5})},       {Shape({2, 3, 2}), Shape({2, 3, 4})},
      {Shape({2, 3, 2}), Shape({2, 5, 2})}, {Shape({1, 0, 2}), Shape({1, 2, 2})},
      {Shape({3, 2, 2}), Shape({3, 3, 4})}, {Shape({2, 2}), Shape({2, 2})}};
  for (const auto& [small, large] : cases) {
    SCOPED_TRACE(small.ToString() + large.ToString());
    std::vector<int32_t> from(small.elements());
    std::iota(from.begin(), from.end(), 1);
    std::vector<int32_t> to(large.elements() + 1, 77);
    CopyPadded({DType::kInt32, small, from.data()}, {DType::kInt32, large, to.data()},
               *PadValue(DType::kInt32, -1));
    for (int64_t i = 0; i < large.elements(); ++i) {
      int64_t rest = i, index = 0, stride = 1;
      bool inside = true;
      for (int axis = large.rank() - 1; axis >= 0; --axis) {
        const int64_t at = rest % large.dim(axis);
        rest /= large.dim(axis);
        inside &= at < small.dim(axis);
        index += at * stride;
        stride *= small.dim(axis);
      }
      ASSERT_EQ(to[i], inside ? from[index] : -1) << i;
    }
    EXPECT_EQ(to.back(), 77);
  }
}

}  // namespace
}  // namespace floe::server
