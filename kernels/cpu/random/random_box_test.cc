// SampleDistortedBoundingBox: TensorFlow 2.21's boxes for the same seeds, run after run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu/kernel_test_util.h"

namespace floe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Numbers = std::vector<int32_t>;
using AttrList = std::vector<std::pair<std::string, AttrValue>>;

struct Sampler {
  Sampler(const Numbers& size, const std::vector<float>& boxes, float covered,
          const AttrList& options) {
    Attrs attrs;
    for (const auto& [name, value] : options) attrs.Set(name, value);
    inputs = {Tensor::Vector(DType::kInt32, size),
              FloatTensor({1, static_cast<int64_t>(boxes.size()) / 4, 4}, boxes),
              FloatTensor({}, {covered})};
    auto result = MakeTestKernel("SampleDistortedBoundingBoxV2", attrs, inputs);
    EXPECT_TRUE(result.ok()) << result.status();
    if (result.ok()) made = *std::move(result);
  }
  absl::StatusOr<std::vector<Tensor>> Run() const {
    return RunTestKernel(*made->kernel, inputs, made->output_types);
  }
  // Where the next box begins and how large it is: top, left, height, width.
  Numbers Next() const {
    const auto out = Run();
    EXPECT_TRUE(out.ok()) << out.status();
    if (!out.ok()) return {};
    const auto *begin = out->at(0).as<int32_t>(), *size = out->at(1).as<int32_t>();
    EXPECT_EQ(begin[2], 0);
    EXPECT_EQ(size[2], -1);
    return {begin[0], begin[1], size[0], size[1]};
  }

  std::vector<Tensor> inputs;
  std::unique_ptr<TestKernel> made;
};
AttrList Seeds(int64_t seed, int64_t seed2, const AttrList& others = {}) {
  AttrList all = {{"seed", seed}, {"seed2", seed2}};
  all.insert(all.end(), others.begin(), others.end());
  return all;
}
AttrValue Range(float least, float most) { return std::vector<float>{least, most}; }

TEST(RandomBox, FollowsTensorFlowsSequence) {
  const std::vector<float> object = {.1f, .2f, .8f, .9f};
  const Sampler plain({40, 60, 3}, object, .1f, Seeds(3, 7));
  EXPECT_THAT(plain.Next(), ElementsAre(9, 15, 28, 33));
  EXPECT_THAT(plain.Next(), ElementsAre(17, 27, 17, 22));
  EXPECT_THAT(plain.Next(), ElementsAre(15, 2, 21, 21));

  const Sampler ranges(
      {40, 60, 3}, object, .1f,
      Seeds(0, 5, {{"area_range", Range(.1f, .5f)}, {"aspect_ratio_range", Range(.5f, 2)}}));
  EXPECT_THAT(ranges.Next(), ElementsAre(5, 21, 20, 38));
  EXPECT_THAT(ranges.Next(), ElementsAre(1, 31, 38, 21));
  EXPECT_THAT(ranges.Next(), ElementsAre(0, 27, 17, 22));
}

TEST(RandomBox, TheWholeImageWhenNoAttemptSucceeds) {
  const Sampler few({100, 37, 3}, {.1f, .2f, .3f, .4f, .6f, .6f, .9f, .95f}, .8f,
                    Seeds(11, 2, {{"max_attempts", int64_t{5}}}));
  EXPECT_THAT(few.Next(), ElementsAre(0, 0, 100, 37));
  EXPECT_THAT(few.Next(), ElementsAre(0, 0, 100, 37));
  EXPECT_THAT(few.Next(), ElementsAre(43, 0, 45, 37));
  const Sampler impossible(
      {10, 1000, 1}, {0, 0, 1, 1}, 1,
      Seeds(1, 1, {{"max_attempts", int64_t{3}}, {"area_range", Range(.05f, .1f)}}));
  EXPECT_THAT(impossible.Next(), ElementsAre(0, 0, 10, 1000));
}

TEST(RandomBox, WithoutObjectsTheImageIsOneWhereThatIsAllowed) {
  const Sampler whole({50, 50, 1}, {}, .5f,
                      Seeds(1, 1, {{"use_image_if_no_bounding_boxes", true}}));
  const auto out = whole.Run();
  ASSERT_TRUE(out.ok()) << out.status();
  const float* corners = out->at(2).as<float>();
  EXPECT_THAT(std::vector<float>(corners, corners + 4), ElementsAre(.14f, .2f, .96f, .84f));
  EXPECT_THAT(whole.Next(), ElementsAre(10, 5, 35, 38));
  const Sampler none({50, 50, 1}, {}, .5f, Seeds(1, 1));
  EXPECT_THAT(std::string(none.Run().status().message()), HasSubstr("there are no bounding boxes"));
}

TEST(RandomBox, RefusesWhatIsNoImageAndNoBox) {
  const auto error = [](const Numbers& size, const std::vector<float>& boxes, float covered) {
    return std::string(Sampler(size, boxes, covered, Seeds(1, 1)).Run().status().message());
  };
  EXPECT_THAT(error({0, 5, 3}, {0, 0, 1, 1}, .1f), HasSubstr("an image of 0 x 5"));
  EXPECT_THAT(error({5, 5}, {0, 0, 1, 1}, .1f), HasSubstr("has 2 elements"));
  EXPECT_THAT(error({5, 5, 3}, {0, 0, 1, 1.5f}, .1f), HasSubstr("bounding box 0"));
  EXPECT_THAT(error({5, 5, 3}, {0, 0, 1, 1}, 1.5f), HasSubstr("min_object_covered 1.5"));
}

}  // namespace
}  // namespace floe
