#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cpu/kernel_test_util.h"
#include "kernels/cpu/philox.h"

namespace floe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The test vectors of the generator's authors: counter and key of zeros, of ones, and of pi.
TEST(Philox, GivesItsAuthorsNumbers) {
  kernels::Philox zeros(0, 0, 0);
  EXPECT_EQ(zeros.Next(), 0x6627e8d5u);
  EXPECT_EQ(zeros.Next(), 0xe169c58du);
  EXPECT_EQ(zeros.Next(), 0xbc57ac4cu);
  EXPECT_EQ(zeros.Next(), 0x9b00dbd8u);
  kernels::Philox ones(UINT64_MAX, UINT64_MAX, UINT64_MAX);
  EXPECT_EQ(ones.Next(), 0x408f276du);
  kernels::Philox pi(0x299f31d0a4093822u, 0x0370734413198a2eu, 0x85a308d3243f6a88u);
  EXPECT_EQ(pi.Next(), 0xd16cfe09u);
}

struct Crop {
  std::vector<int64_t> begin, size;
  std::vector<float> box;
};

class DistortedBox {
 public:
  DistortedBox(Attrs attrs, const std::vector<int64_t>& size, const std::vector<float>& boxes,
               float covered = .1f) {
    const auto n = static_cast<int64_t>(boxes.size()) / 4;
    inputs_ = {Tensor::Vector(DType::kInt64, size), FloatTensor({1, n, 4}, boxes),
               Tensor::Scalar(DType::kFloat32, covered)};
    made_ = MakeTestKernel("SampleDistortedBoundingBox", attrs, inputs_);
  }
  absl::StatusOr<Crop> Draw() const {
    if (!made_.ok()) return made_.status();
    FLOE_ASSIGN_OR_RETURN(const std::vector<Tensor> out,
                          RunTestKernel(*(*made_)->kernel, inputs_, (*made_)->output_types));
    return Crop{{out[0].as<int64_t>(), out[0].as<int64_t>() + 3},
                {out[1].as<int64_t>(), out[1].as<int64_t>() + 3},
                {out[2].as<float>(), out[2].as<float>() + 4}};
  }

 private:
  std::vector<Tensor> inputs_;
  absl::StatusOr<std::unique_ptr<TestKernel>> made_ = absl::UnknownError("not made");
};

Attrs With(const std::vector<std::pair<std::string, AttrValue>>& list) {
  Attrs attrs;
  for (const auto& [name, value] : list) attrs.Set(name, value);
  return attrs;
}

TEST(SampleDistortedBoundingBox, KeepsItsLimitsAndIsUniform) {
  const std::vector<float> whole = {0, 0, 1, 1};
  const DistortedBox drawn(With({{"seed", int64_t{7}},
                                 {"area_range", std::vector<float>{.25f, .25f}},
                                 {"aspect_ratio_range", std::vector<float>{1, 1}}}),
                           {100, 100, 3}, whole);
  constexpr int kDraws = 5000;
  double y = 0, yy = 0;
  for (int i = 0; i < kDraws; ++i) {
    const auto crop = drawn.Draw();
    ASSERT_TRUE(crop.ok()) << crop.status();
    ASSERT_THAT(crop->size, ElementsAre(50, 50, -1));
    ASSERT_EQ(crop->begin[2], 0);
    ASSERT_GE(crop->begin[0], 0);
    ASSERT_LT(crop->begin[0], 50);
    EXPECT_FLOAT_EQ(crop->box[0], static_cast<float>(crop->begin[0]) / 100);
    EXPECT_FLOAT_EQ(crop->box[2] - crop->box[0], .5f);
    y += static_cast<double>(crop->begin[0]) / kDraws;
    yy += static_cast<double>(crop->begin[0] * crop->begin[0]) / kDraws;
  }
  // Uniform over 0..49: mean 24.5, variance 208.25; five standard errors.
  EXPECT_NEAR(y, 24.5, 5 * std::sqrt(208.25 / kDraws));
  EXPECT_NEAR(yy - y * y, 208.25, 15);
}

TEST(SampleDistortedBoundingBox, ShowsEnoughOfABoxOrTheWholeImage) {
  const DistortedBox corner(With({{"seed", int64_t{1}}}), {60, 80, 3}, {0, 0, .2f, .2f}, 1.0f);
  int whole = 0;
  for (int i = 0; i < 200; ++i) {
    const auto crop = corner.Draw();
    ASSERT_TRUE(crop.ok());
    if (crop->size[0] == 60 && crop->size[1] == 80) {
      ++whole;
      continue;
    }
    EXPECT_EQ(crop->begin[0], 0);
    EXPECT_EQ(crop->begin[1], 0);
    const auto ratio = static_cast<double>(crop->size[1]) / static_cast<double>(crop->size[0]);
    EXPECT_GT(ratio, .7);
    EXPECT_LT(ratio, 1.4);
  }
  EXPECT_LT(whole, 200);
  const DistortedBox impossible(With({{"area_range", std::vector<float>{.01f, .02f}}}), {60, 80, 3},
                                {0, 0, 1, 1}, 1.0f);
  EXPECT_THAT(impossible.Draw()->size, ElementsAre(60, 80, -1));
}

TEST(SampleDistortedBoundingBox, BadInputsAreNamed) {
  const std::vector<float> whole = {0, 0, 1, 1};
  const auto error = [](const DistortedBox& box) {
    return std::string(box.Draw().status().message());
  };
  EXPECT_THAT(error({With({}), {60, 80, 3}, {}}), HasSubstr("no boxes"));
  EXPECT_THAT(error({With({}), {60, 80, 3}, {0, 0, 1, 1.5f}}), HasSubstr("coordinate 1.5"));
  EXPECT_THAT(error({With({}), {60, -80, 3}, whole}), HasSubstr("image_size"));
  EXPECT_THAT(error({With({}), {60, 80}, whole}), HasSubstr("image_size"));
  EXPECT_THAT(error({With({}), {60, 80, 3}, whole, 1.5f}), HasSubstr("min_object_covered 1.5"));
  EXPECT_THAT(error({With({{"max_attempts", int64_t{1} << 40}}), {60, 80, 3}, whole}),
              HasSubstr("max_attempts"));
  EXPECT_THAT(error({With({{"area_range", std::vector<float>{NAN, 1}}}), {60, 80, 3}, whole}),
              HasSubstr("area_range"));
}

}  // namespace
}  // namespace floe
