#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cpu/conv/conv_routes_for_test.h"
#include "kernels/cpu/every_isa_for_test.h"
#include "kernels/cpu/gemm/activation.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/openblas.h"
#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/kernel_test_util.h"

namespace floe {
namespace {

struct ConvCase {
  int64_t images, height, width, channels;
  int64_t kernel_h, kernel_w, out_channels;  // depthwise: out_channels is the multiplier
  int64_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  std::string padding = "VALID";
  int64_t groups = 1;
  bool depthwise = false;
  uint64_t const_mask = 6;
  Activation activation = Activation::kNone;
  int threads = 1;
  bool residual = false;
  std::string route = "";  // empty: the backend's
};

Attrs AttrsOf(const ConvCase& t) {
  Attrs attrs;
  attrs.Set("strides", std::vector<int64_t>{1, t.stride_h, t.stride_w, 1});
  attrs.Set("dilations", std::vector<int64_t>{1, t.dilation_h, t.dilation_w, 1});
  attrs.Set("padding", t.padding);
  SetEpilogue(
      {.activation = t.activation, .bias = t.residual ? 3 : 2, .residual = t.residual ? 2 : -1},
      &attrs);
  if (t.padding == "EXPLICIT")
    attrs.Set("explicit_paddings", std::vector<int64_t>{0, 0, 2, 1, 0, 3, 0, 0});
  return attrs;
}

// Output size and zeros before the input, as TensorFlow defines them.
struct Side {
  int64_t out, before;
  Side(const std::string& padding, int64_t in, int64_t kernel, int64_t stride, int64_t dilation,
       int64_t low, int64_t high) {
    const int64_t span = (kernel - 1) * dilation + 1;
    if (padding == "SAME") {
      out = (in + stride - 1) / stride;
      before = std::max<int64_t>((out - 1) * stride + span - in, 0) / 2;
    } else {
      before = padding == "EXPLICIT" ? low : 0;
      out = (in + before + (padding == "EXPLICIT" ? high : 0) - span) / stride + 1;
    }
  }
};

std::vector<Tensor> InputsOf(const ConvCase& t) {
  const Shape filter = t.depthwise
                           ? Shape{t.kernel_h, t.kernel_w, t.channels, t.out_channels}
                           : Shape{t.kernel_h, t.kernel_w, t.channels / t.groups, t.out_channels};
  const int64_t out = t.depthwise ? t.channels * t.out_channels : t.out_channels;
  std::vector<Tensor> inputs = {RandomTensor({t.images, t.height, t.width, t.channels}, 1),
                                RandomTensor(filter, 2)};
  if (t.residual) {
    const Side h(t.padding, t.height, t.kernel_h, t.stride_h, t.dilation_h, 2, 1);
    const Side w(t.padding, t.width, t.kernel_w, t.stride_w, t.dilation_w, 0, 3);
    inputs.push_back(RandomTensor({t.images, h.out, w.out, out}, 4));
  }
  inputs.push_back(RandomTensor({out}, 3));
  return inputs;
}

const char* OpOf(const ConvCase& t) { return t.depthwise ? "DepthwiseConv2dNative" : "Conv2D"; }

// The convolution by its definition in float64, one output element.
double Want(const ConvCase& t, const std::vector<Tensor>& inputs, const Side& h, const Side& w,
            int64_t n, int64_t y, int64_t x, int64_t c) {
  const int64_t in_per_group = t.depthwise ? 1 : t.channels / t.groups;
  const int64_t first =
      t.depthwise ? c / t.out_channels : c / (t.out_channels / t.groups) * in_per_group;
  double sum = 0;
  for (int64_t ky = 0; ky < t.kernel_h; ++ky) {
    for (int64_t kx = 0; kx < t.kernel_w; ++kx) {
      const int64_t iy = y * t.stride_h + ky * t.dilation_h - h.before;
      const int64_t ix = x * t.stride_w + kx * t.dilation_w - w.before;
      if (iy < 0 || ix < 0 || iy >= t.height || ix >= t.width) continue;
      for (int64_t i = 0; i < in_per_group; ++i) {
        const int64_t ic = first + i;
        const int64_t at = ((n * t.height + iy) * t.width + ix) * t.channels + ic;
        const int64_t tap = ky * t.kernel_w + kx;
        const int64_t weight = t.depthwise ? tap * t.channels * t.out_channels + c
                                           : (tap * in_per_group + i) * t.out_channels + c;
        sum += static_cast<double>(inputs[0].as<float>()[at]) * inputs[1].as<float>()[weight];
      }
    }
  }
  sum += inputs.back().as<float>()[c];
  if (t.residual) sum += inputs[2].as<float>()[((n * h.out + y) * w.out + x) * t.out_channels + c];
  const Epilogue epilogue{.activation = t.activation};
  return kernels::ActivatePlain(epilogue, sum);
}

void ExpectConv(const ConvCase& t, GemmBackend backend) {
  SCOPED_TRACE(testing::Message() << GemmBackendName(backend) << " " << OpOf(t) << " " << t.images
                                  << "x" << t.height << "x" << t.width << "x" << t.channels
                                  << " filter " << t.kernel_h << "x" << t.kernel_w << "x"
                                  << t.out_channels << " stride " << t.stride_h << t.stride_w
                                  << " dilation " << t.dilation_h << t.dilation_w << " "
                                  << t.padding << " groups " << t.groups << " const "
                                  << t.const_mask);
  const std::vector<Tensor> inputs = InputsOf(t);
  RunOptions options = {{backend}, t.threads, t.const_mask};
  if (!t.route.empty()) options.kernels.routes["under_test"] = t.route;
  const auto outputs = RunKernel(OpOf(t), AttrsOf(t), inputs, options);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  const Side h(t.padding, t.height, t.kernel_h, t.stride_h, t.dilation_h, 2, 1);
  const Side w(t.padding, t.width, t.kernel_w, t.stride_w, t.dilation_w, 0, 3);
  const int64_t out_c = t.depthwise ? t.channels * t.out_channels : t.out_channels;
  const int64_t products = t.kernel_h * t.kernel_w * (t.depthwise ? 1 : t.channels / t.groups);
  const double tolerance = 3e-6 * std::sqrt(static_cast<double>(products)) + 1e-6;
  ASSERT_EQ((*outputs)[0].shape(), Shape({t.images, h.out, w.out, out_c}));
  for (int64_t n = 0; n < t.images; ++n) {
    for (int64_t y = 0; y < h.out; ++y) {
      for (int64_t x = 0; x < w.out; ++x) {
        for (int64_t c = 0; c < out_c; ++c) {
          const int64_t at = ((n * h.out + y) * w.out + x) * out_c + c;
          ASSERT_NEAR((*outputs)[0].as<float>()[at], Want(t, inputs, h, w, n, y, x, c), tolerance)
              << n << "," << y << "," << x << "," << c;
        }
      }
    }
  }
}

std::vector<GemmBackend> Backends() {
  std::vector<GemmBackend> backends = {GemmBackend::kNative, GemmBackend::kReference};
  if (kernels::OpenBlas().ok()) backends.push_back(GemmBackend::kOpenBlas);
  return backends;
}

TEST(Conv2D, StridesDilationsAndPaddingsOnEveryBackend) {
  for (GemmBackend backend : Backends()) {
    for (const char* padding : {"VALID", "SAME", "EXPLICIT"}) {
      for (int64_t stride : {1, 2, 3}) {
        for (int64_t dilation : {1, 2}) {
          ConvCase t{2, 11, 9, 3, 3, 2, 5};
          t.padding = padding;
          t.stride_h = stride;
          t.stride_w = 4 - stride;
          t.dilation_h = dilation;
          t.dilation_w = 3 - dilation;
          ASSERT_NO_FATAL_FAILURE(ExpectConv(t, backend));
        }
      }
    }
  }
}

TEST(Conv2D, ManySizesOnEveryIsa) {
  for (int64_t isa : IsasToTest()) {
    hwy::SetSupportedTargetsForTest(isa);
    SCOPED_TRACE(hwy::TargetName(isa));
    for (const char* padding : {"VALID", "SAME"}) {
      for (int64_t channels : {1, 2, 7, 33}) {
        for (int64_t out : {1, 2, 3, 4, 10, 32, 47}) {
          ConvCase t{1, 7, 13, channels, 5, 5, out};
          t.padding = padding;
          t.activation = Activation::kRelu;
          EXPECT_NO_FATAL_FAILURE(ExpectConv(t, GemmBackend::kNative));
        }
      }
      ConvCase line{2, 1, 140, 8, 1, 20, 24};  // a convolution along one dim
      line.padding = padding;
      EXPECT_NO_FATAL_FAILURE(ExpectConv(line, GemmBackend::kNative));
      ConvCase point{3, 5, 6, 20, 1, 1, 40};
      point.padding = padding;
      EXPECT_NO_FATAL_FAILURE(ExpectConv(point, GemmBackend::kNative));
      point.stride_h = point.stride_w = 2;
      EXPECT_NO_FATAL_FAILURE(ExpectConv(point, GemmBackend::kNative));
    }
    hwy::SetSupportedTargetsForTest(0);
  }
}

TEST(Conv2D, ResidualsOnEveryIsaAndBackend) {
  for (int64_t isa : IsasToTest()) {
    hwy::SetSupportedTargetsForTest(isa);
    SCOPED_TRACE(hwy::TargetName(isa));
    for (GemmBackend backend : Backends()) {
      for (const Activation activation :
           {Activation::kNone, Activation::kRelu, Activation::kRelu6, Activation::kTanh}) {
        ConvCase t{2, 7, 9, 12, 3, 3, 38};
        t.residual = true;
        t.const_mask = 2 + 8;
        t.padding = "SAME";
        t.activation = activation;
        EXPECT_NO_FATAL_FAILURE(ExpectConv(t, backend));
        t.groups = 2;
        EXPECT_NO_FATAL_FAILURE(ExpectConv(t, backend));
        for (const int64_t outputs : {3, 10}) {
          ConvCase narrow{2, 7, 9, 40, 3, 3, outputs};
          narrow.residual = true;
          narrow.const_mask = 2 + 8;
          narrow.activation = activation;
          EXPECT_NO_FATAL_FAILURE(ExpectConv(narrow, backend));
        }
        ConvCase point{3, 5, 6, 400, 1, 1, 33};  // more than one block of K
        point.residual = true;
        point.activation = activation;
        point.const_mask = 2;
        EXPECT_NO_FATAL_FAILURE(ExpectConv(point, backend));
      }
    }
    hwy::SetSupportedTargetsForTest(0);
  }
}

TEST(Conv2D, AResidualOfAnotherShapeIsRefused) {
  ConvCase t{2, 7, 9, 3, 3, 3, 4};
  t.residual = true;
  std::vector<Tensor> inputs = InputsOf(t);
  inputs[2] = RandomTensor({1, 5, 7, 4}, 4);
  const auto refused = RunKernel("Conv2D", AttrsOf(t), inputs, {{}, 1, 2});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().message()), testing::HasSubstr("cannot add [1,5,7,4]"));
}

TEST(Conv2D, GroupsAndFiltersThatAreNotConstant) {
  for (GemmBackend backend : Backends()) {
    for (uint64_t mask : {0, 2, 6}) {
      ConvCase t{2, 6, 5, 12, 3, 3, 18};
      t.const_mask = mask;
      t.padding = "SAME";
      for (int64_t groups : {1, 2, 3, 6}) {
        t.groups = groups;
        ASSERT_NO_FATAL_FAILURE(ExpectConv(t, backend));
      }
    }
  }
}

TEST(Conv2D, SmallGroupsOnEveryIsa) {
  OnEveryIsa([] {
    const int64_t lanes = kernels::PickGemm().lanes;
    for (int64_t width = 2; width <= lanes; width *= 2) {
      for (const char* padding : {"VALID", "SAME", "EXPLICIT"}) {
        for (const int64_t stride : {1, 2}) {
          for (const int64_t dilation : {1, 2}) {
            for (const int64_t taps : {2, 3}) {
              ConvCase t{2, 9, 21, 3 * lanes, 3, taps, 3 * lanes};
              t.groups = t.channels / width;
              t.padding = padding;
              t.stride_h = 3 - stride;
              t.stride_w = stride;
              t.dilation_h = t.dilation_w = dilation;
              t.activation = stride == 1 ? Activation::kRelu6 : Activation::kTanh;
              t.route = "groups";
              t.const_mask = 0;
              t.threads = static_cast<int>(dilation);
              ASSERT_NO_FATAL_FAILURE(ExpectConv(t, GemmBackend::kAuto));
            }
          }
        }
      }
    }
  });
}

TEST(Conv2D, SmallGroupsWhereTheyFit) {
  const int64_t lanes = kernels::PickGemm().lanes;
  if (lanes == 1) return;
  const auto chosen = [](const ConvCase& t) {
    return ConvOffers(AttrsOf(t), InputsOf(t), {{}, 1, t.residual ? 10u : 6u}).back();
  };
  ConvCase t{1, 8, 8, 2 * lanes, 3, 3, 2 * lanes};
  t.groups = lanes;
  EXPECT_EQ(chosen(t), "chosen groups");
  t.residual = true;
  EXPECT_EQ(chosen(t), "chosen gemm");
  t.residual = false;
  t.channels = t.out_channels = 2 * lanes + 2;  // no whole vectors
  t.groups = lanes + 1;
  EXPECT_EQ(chosen(t), "chosen gemm");
  t.channels = t.out_channels = 3 * lanes;  // no power of two
  t.groups = lanes;
  EXPECT_EQ(chosen(t), "chosen gemm");
  t.out_channels = 6 * lanes;  // more outputs than inputs
  EXPECT_EQ(chosen(t), "chosen gemm");
}

TEST(Conv2D, ThreadsGiveTheSameBits) {
  for (const auto& [padding, columns] :
       {std::pair("VALID", 40), std::pair("SAME", 40), std::pair("SAME", 1)}) {
    ConvCase t{2, 120, 121, 16, 3, 3, columns};
    t.padding = padding;
    const std::vector<Tensor> inputs = InputsOf(t);
    const auto one = RunKernel("Conv2D", AttrsOf(t), inputs, {{}, 1, 6});
    ASSERT_TRUE(one.ok()) << one.status();
    for (int threads : {2, 3}) {
      const auto more = RunKernel("Conv2D", AttrsOf(t), inputs, {{}, threads, 6});
      ASSERT_EQ(std::memcmp((*one)[0].data(), (*more)[0].data(), (*one)[0].bytes()), 0) << threads;
    }
  }
}

// Image i of a batch has the bits it has alone.
void ExpectImagesAreIndependent(const ConvCase& t) {
  const std::vector<Tensor> inputs = InputsOf(t);
  const auto all = RunKernel(OpOf(t), AttrsOf(t), inputs, {{}, 1, 6});
  ASSERT_TRUE(all.ok()) << all.status();
  const int64_t image = inputs[0].elements() / t.images, result = (*all)[0].elements() / t.images;
  for (int64_t i = 0; i < t.images; ++i) {
    Shape shape = inputs[0].shape();
    shape.set_dim(0, 1);
    const float* begin = inputs[0].as<float>() + i * image;
    const Tensor one = FloatTensor(shape, std::vector<float>(begin, begin + image));
    const auto alone = RunKernel(OpOf(t), AttrsOf(t), {one, inputs[1], inputs[2]}, {{}, 1, 6});
    ASSERT_TRUE(alone.ok()) << alone.status();
    ASSERT_EQ(
        std::memcmp((*alone)[0].data(), (*all)[0].as<float>() + i * result, result * sizeof(float)),
        0)
        << i;
  }
}

TEST(Conv2D, BitsOfAnImageDoNotDependOnTheBatch) {
  ConvCase t{9, 7, 9, 5, 3, 3, 20};
  ExpectImagesAreIndependent(t);
  t.padding = "SAME";
  t.activation = Activation::kSigmoid;
  ExpectImagesAreIndependent(t);
  t.kernel_h = t.kernel_w = 1;
  ExpectImagesAreIndependent(t);
  t = {9, 7, 9, 32, 3, 3, 3};
  ExpectImagesAreIndependent(t);
  t.out_channels = 32;
  t.groups = 16;
  ExpectImagesAreIndependent(t);
  t = {9, 7, 9, 5, 3, 3, 2};
  t.depthwise = true;
  ExpectImagesAreIndependent(t);
}

TEST(Depthwise, StridesDilationsPaddingsAndMultipliers) {
  for (GemmBackend backend : {GemmBackend::kNative, GemmBackend::kReference}) {
    for (const char* padding : {"VALID", "SAME", "EXPLICIT"}) {
      for (int64_t multiplier : {1, 3}) {
        for (int64_t stride : {1, 2}) {
          for (int64_t dilation : {1, 3}) {
            ConvCase t{2, 11, 9, 5, 3, 2, multiplier};
            t.depthwise = true;
            t.padding = padding;
            t.stride_h = t.stride_w = stride;
            t.dilation_h = t.dilation_w = dilation;
            t.activation = Activation::kRelu6;
            ASSERT_NO_FATAL_FAILURE(ExpectConv(t, backend));
          }
        }
      }
    }
  }
}

TEST(Depthwise, EveryChannelTailOnEveryIsa) {
  for (int64_t isa : IsasToTest()) {
    hwy::SetSupportedTargetsForTest(isa);
    SCOPED_TRACE(hwy::TargetName(isa));
    for (int64_t channels : {1, 3, 4, 8, 15, 16, 17, 31, 64, 65, 100}) {
      for (const int64_t taps : {3, 5}) {
        for (const int64_t stride : {1, 2}) {
          ConvCase t{1, 6, 21, channels, taps, taps, 1};
          t.depthwise = true;
          t.padding = "SAME";
          t.stride_h = t.stride_w = stride;
          t.activation = Activation::kLeakyRelu;
          EXPECT_NO_FATAL_FAILURE(ExpectConv(t, GemmBackend::kNative));
        }
      }
    }
    hwy::SetSupportedTargetsForTest(0);
  }
}

absl::StatusOr<Types> Infer(const std::string& op, const Attrs& attrs,
                            const std::vector<SymShape>& shapes) {
  Node node;
  node.op = FindOp(op);
  node.attrs = attrs;
  std::vector<ValueInfo> infos;
  infos.reserve(shapes.size());
  for (const SymShape& shape : shapes) infos.push_back({{DType::kFloat32, shape}, {}, {}});
  return node.op->infer(InferContext{node, infos});
}

TEST(ConvInference, KeepsRowsAndUnknownDims) {
  Attrs attrs;
  attrs.Set("strides", std::vector<int64_t>{1, 2, 2, 1});
  attrs.Set("padding", std::string("SAME"));
  const Dim unknown = Dim::Unknown();
  EXPECT_EQ((*Infer("Conv2D", attrs, {{Dim::Rows(), 28, 27, 1}, {5, 5, 1, 32}}))[0].shape,
            SymShape({Dim::Rows(), 14, 14, 32}));
  EXPECT_EQ(
      (*Infer("Conv2D", attrs, {{Dim::Rows(), unknown, 27, unknown}, {5, 5, 1, 32}}))[0].shape,
      SymShape({Dim::Rows(), unknown, 14, 32}));
  EXPECT_EQ((*Infer("Conv2D", attrs, {SymShape::UnknownRank(), {5, 5, 1, 32}}))[0].shape,
            SymShape({unknown, unknown, unknown, 32}));
  EXPECT_EQ(
      (*Infer("DepthwiseConv2dNative", attrs, {{Dim::Rows(), 28, 27, 6}, {5, 5, 6, 2}}))[0].shape,
      SymShape({Dim::Rows(), 14, 14, 12}));
}

TEST(ConvInference, RefusesWhatDoesNotFit) {
  const Attrs none;
  EXPECT_FALSE(
      Infer("Conv2D", none, {{1, 8, 8, 3}, {3, 3, 2, 4}}).ok());  // 3 channels in groups of 2
  EXPECT_FALSE(Infer("Conv2D", none, {{1, 8, 8, 4}, {3, 3, 2, 5}}).ok());  // 5 outputs in 2 groups
  EXPECT_FALSE(Infer("Conv2D", none, {{1, 8, 3}, {3, 3, 2, 4}}).ok());
  EXPECT_FALSE(Infer("Conv2D", none, {{1, 1, 8, 3}, {3, 3, 3, 4}})
                   .ok());  // the filter is larger than the image
  EXPECT_FALSE(Infer("DepthwiseConv2dNative", none, {{1, 8, 8, 3}, {3, 3, 2, 4}}).ok());
  Attrs attrs;
  attrs.Set("strides", std::vector<int64_t>{2, 1, 1, 1});
  EXPECT_FALSE(Infer("Conv2D", attrs, {{1, 8, 8, 3}, {3, 3, 3, 4}}).ok());
  attrs.Set("strides", std::vector<int64_t>{1, 0, 1, 1});
  EXPECT_FALSE(Infer("Conv2D", attrs, {{1, 8, 8, 3}, {3, 3, 3, 4}}).ok());
  attrs = {};
  attrs.Set("padding", std::string("HALF"));
  EXPECT_FALSE(Infer("Conv2D", attrs, {{1, 8, 8, 3}, {3, 3, 3, 4}}).ok());
}

// Channels that were unknown when the filter was packed turn out to be two groups.
TEST(Conv2D, PacksAgainWhenUnknownChannelsAreGroups) {
  const Tensor filter = RandomTensor({1, 1, 2, 4}, 2), image = RandomTensor({1, 3, 3, 4}, 1);
  Node node;
  node.op = FindOp("Conv2D");
  std::vector<ValueInfo> infos(2);
  infos[0].type = {DType::kFloat32, SymShape({1, 3, 3, Dim::Unknown()})};
  infos[1].type = {DType::kFloat32, SymShape(filter.shape())};
  infos[1].constant = filter;
  const KernelOptions options;
  const auto kernel =
      FindKernel("Conv2D", DeviceKind::kCpu, DType::kFloat32)(KernelArgs{node, infos, options});
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const auto got =
      RunTestKernel(**kernel, {image, filter}, {{DType::kFloat32, SymShape({1, 3, 3, 4})}});
  ASSERT_TRUE(got.ok()) << got.status();
  const auto want = RunKernel("Conv2D", {}, {image, filter}, {{GemmBackend::kReference}, 1, 0});
  for (int64_t i = 0; i < 36; ++i)
    EXPECT_NEAR((*got)[0].as<float>()[i], (*want)[0].as<float>()[i], 1e-6);
}

}  // namespace
}  // namespace floe
