#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/cuda/device_for_test.h"

namespace floe::cuda {
namespace {

struct ConvCase {
  std::string op;
  std::vector<int64_t> image, filter;  // NHWC or NDHWC, HWIO or DHWIO
  std::vector<int64_t> stride, dilation = {};
  std::string padding = "SAME";
  Activation activation = Activation::kNone;  // with a bias
  bool residual = false;
};

std::vector<int64_t> Framed(const std::vector<int64_t>& inner) {
  std::vector<int64_t> all = {1};
  all.insert(all.end(), inner.begin(), inner.end());
  all.push_back(1);
  return all;
}

Attrs AttrsOf(const ConvCase& c, int inputs) {
  Attrs attrs;
  const size_t spatial = c.stride.size();
  attrs.Set("strides", Framed(c.stride));
  attrs.Set("dilations",
            Framed(c.dilation.empty() ? std::vector<int64_t>(spatial, 1) : c.dilation));
  attrs.Set("padding", c.padding);
  attrs.Set("data_format", std::string(spatial == 2 ? "NHWC" : "NDHWC"));
  if (c.padding == "EXPLICIT")
    attrs.Set("explicit_paddings", std::vector<int64_t>{0, 0, 2, 1, 0, 3, 0, 0});
  SetEpilogue({.activation = c.activation,
               .alpha = 0.2f,
               .bias = c.activation == Activation::kNone ? -1 : inputs,
               .residual = c.residual ? inputs + (c.activation == Activation::kNone ? 0 : 1) : -1},
              &attrs);
  return attrs;
}

Tensor Reference(const std::string& op, const Attrs& attrs, const std::vector<Tensor>& inputs,
                 uint64_t const_mask = 0) {
  RunOptions options;
  options.kernels.gemm = GemmBackend::kReference;
  options.const_mask = const_mask;
  const auto made = RunKernel(op, attrs, inputs, options);
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? (*made)[0] : Tensor();
}

int64_t Outputs(const ConvCase& c) {
  const int64_t last = c.filter.back();
  return c.op == "DepthwiseConv2dNative" ? last * c.filter[c.filter.size() - 2] : last;
}

void Check(const ConvCase& c) {
  std::vector<Tensor> inputs = {RandomTensor(Shape(c.image), 1), RandomTensor(Shape(c.filter), 2)};
  Attrs attrs = AttrsOf(c, 2);
  if (c.activation != Activation::kNone) inputs.push_back(RandomTensor(Shape({Outputs(c)}), 3));
  uint64_t batched = 1;
  if (c.residual) {
    ConvCase bare = c;
    bare.residual = false;
    const Shape out = Reference(c.op, AttrsOf(bare, 2), inputs).shape();
    batched |= uint64_t{1} << inputs.size();
    inputs.push_back(RandomTensor(out, 4));
  }
  SCOPED_TRACE(inputs[0].shape().ToString() + inputs[1].shape().ToString() + c.padding);
  const Tensor want = Reference(c.op, attrs, inputs);
  for (const uint64_t const_mask : {0, 2}) {
    const Tensor got = RunInEveryOrder(c.op, attrs, inputs, const_mask);
    ASSERT_EQ(got.shape(), want.shape());
    ExpectNear(got, want.as<float>(), 2e-5);
    ExpectRowsAlone(c.op, attrs, inputs, batched, got, const_mask);
  }
}

TEST(ConvOnDeviceTest, AgreesWithPlainLoops) {
  Check({"Conv2D", {2, 9, 11, 5}, {3, 3, 5, 8}, {1, 1}});
  Check({"Conv2D", {2, 9, 11, 5}, {3, 2, 5, 7}, {2, 1}, {1, 1}, "VALID"});
  Check({"Conv2D", {3, 17, 12, 3}, {5, 5, 3, 36}, {2, 2}, {1, 1}, "SAME", Activation::kRelu});
  Check({"Conv2D", {2, 9, 11, 4}, {3, 3, 4, 8}, {1, 1}, {2, 3}, "SAME", Activation::kSwish});
  Check({"Conv2D", {2, 8, 8, 6}, {3, 3, 6, 5}, {1, 1}, {1, 1}, "EXPLICIT"});
  Check(
      {"Conv2D", {2, 7, 7, 20}, {1, 1, 20, 40}, {1, 1}, {1, 1}, "VALID", Activation::kRelu6, true});
  Check({"Conv2D", {2, 7, 7, 3}, {1, 1, 3, 5}, {2, 2}, {1, 1}, "SAME", Activation::kTanh, true});
  Check({"Conv2D", {2, 3, 3, 1}, {7, 7, 1, 1}, {1, 1}});
  Check({"Conv2D", {4, 40, 44, 3}, {3, 3, 3, 70}, {1, 1}});  // larger tiles
}

TEST(ConvOnDeviceTest, ComputesGroups) {
  Check({"Conv2D", {2, 6, 7, 12}, {3, 3, 4, 9}, {1, 1}});
  Check({"Conv2D", {2, 6, 7, 12}, {3, 3, 3, 16}, {2, 1}, {1, 1}, "SAME", Activation::kLeakyRelu});
  Check({"Conv2D", {2, 6, 7, 6}, {2, 2, 1, 6}, {1, 1}, {1, 1}, "VALID", Activation::kGelu, true});
}

TEST(ConvOnDeviceTest, ComputesDepthwise) {
  Check({"DepthwiseConv2dNative", {2, 9, 8, 8}, {3, 3, 8, 1}, {1, 1}});
  Check({"DepthwiseConv2dNative",
         {2, 9, 8, 8},
         {3, 3, 8, 1},
         {2, 2},
         {1, 1},
         "SAME",
         Activation::kRelu6});
  Check({"DepthwiseConv2dNative",
         {2, 9, 8, 5},
         {3, 5, 5, 3},
         {1, 1},
         {2, 2},
         "VALID",
         Activation::kSigmoid});
  Check({"DepthwiseConv2dNative", {2, 9, 8, 4}, {3, 3, 4, 2}, {1, 1}, {1, 1}, "EXPLICIT"});
}

TEST(ConvOnDeviceTest, ComputesVolumes) {
  Check({"Conv3D", {2, 5, 6, 7, 3}, {3, 3, 3, 3, 8}, {1, 1, 1}});
  Check({"Conv3D", {2, 5, 6, 7, 4}, {2, 3, 1, 2, 6}, {2, 1, 2}, {1, 1, 1}, "VALID"});
  Check({"Conv3D", {1, 5, 6, 7, 2}, {1, 2, 2, 2, 3}, {3, 4, 1}, {1, 1, 1}, "SAME"});
}

// `image`: what comes out.
void CheckBackward(const ConvCase& c, const std::vector<int64_t>& result) {
  const auto spatial = static_cast<int64_t>(c.stride.size());
  Tensor sizes = Tensor::Allocate(DType::kInt32, Shape({spatial + 2}));
  for (int64_t i = 0; i < spatial + 2; ++i)
    static_cast<int32_t*>(sizes.mutable_data())[i] = static_cast<int32_t>(c.image[i]);
  std::vector<Tensor> inputs = {sizes, RandomTensor(Shape(c.filter), 2),
                                RandomTensor(Shape(result), 1)};
  if (c.activation != Activation::kNone) inputs.push_back(RandomTensor(Shape({c.image.back()}), 3));
  const Attrs attrs = AttrsOf(c, 3);
  SCOPED_TRACE(inputs[1].shape().ToString() + inputs[2].shape().ToString() + c.padding);
  const Tensor want = Reference(c.op, attrs, inputs, 1);
  const Tensor got = RunInEveryOrder(c.op, attrs, inputs, 3);
  ASSERT_EQ(got.shape(), want.shape());
  ExpectNear(got, want.as<float>(), 2e-5);
  if (result[0] == 1) return;
  for (int64_t row = 0; row < result[0]; ++row) {
    static_cast<int32_t*>(sizes.mutable_data())[0] = 1;
    inputs[0] = sizes;
    std::vector<Tensor> alone = inputs;
    alone[2] = RowsOf(inputs[2], row, row + 1);
    const auto made = RunKernel(c.op, attrs, alone, OnDevice(3));
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_TRUE(SameBits((*made)[0], RowsOf(got, row, row + 1)));
  }
}

TEST(ConvOnDeviceTest, ComputesTransposed) {
  const std::string op = "Conv2DBackpropInput";
  CheckBackward({op, {2, 8, 10, 5}, {3, 3, 5, 7}, {2, 2}}, {2, 4, 5, 7});
  CheckBackward({op, {2, 9, 9, 8}, {3, 3, 8, 6}, {2, 2}, {1, 1}, "VALID", Activation::kRelu},
                {2, 4, 4, 6});
  CheckBackward({op, {2, 10, 9, 4}, {2, 1, 4, 6}, {3, 2}, {1, 1}, "SAME", Activation::kElu},
                {2, 4, 5, 6});
  CheckBackward({op, {1, 9, 9, 4}, {3, 3, 4, 6}, {1, 1}, {2, 2}, "VALID"}, {1, 5, 5, 6});
  CheckBackward({op, {2, 6, 7, 6}, {3, 3, 2, 9}, {2, 1}}, {2, 3, 7, 9});  // three groups
  CheckBackward({"Conv3DBackpropInputV2", {2, 6, 4, 5, 3}, {3, 2, 2, 3, 4}, {2, 1, 2}},
                {2, 3, 4, 3, 4});
}

TEST(ConvOnDeviceTest, RefusesWhatItCannotCompute) {
  const ConvCase c = {"Conv2D", {2, 9, 11, 5}, {3, 3, 5, 8}, {1, 1}};
  const Tensor image = RandomTensor(Shape(c.image), 1);
  EXPECT_TRUE(Computes("Conv2D", AttrsOf(c, 2), {image, RandomTensor(Shape(c.filter), 2)}));
  EXPECT_FALSE(Computes("Conv2D", AttrsOf(c, 2), {image, RandomTensor(Shape({3, 3, 4, 8}), 2)}));
  ConvCase far = c;
  far.stride = {1, int64_t{1} << 25};
  EXPECT_FALSE(Computes("Conv2D", AttrsOf(far, 2), {image, RandomTensor(Shape(c.filter), 2)}));
}

}  // namespace
}  // namespace floe::cuda
