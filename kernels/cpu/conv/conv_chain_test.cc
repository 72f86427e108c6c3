#include "model/ops/conv_chain.h"

#include <gtest/gtest.h>

#include "kernels/cpu/every_isa_for_test.h"
#include "kernels/cpu/kernel_test_util.h"

namespace floe {
namespace {

struct ChainCase {
  const char* name;
  Shape image;
  int64_t expanded;   // channels
  int64_t projected;  // channels; 0: no project stage
  int64_t kernel = 3, stride = 1, dilation = 1;
  bool residual = false;
  std::string padding = "SAME";
  std::vector<int64_t> pads = {};  // of padding EXPLICIT
};

struct Chain {
  Node node;
  std::vector<Tensor> inputs;
  uint64_t constants = 0;
  uint32_t seed = 1;

  void Add(const std::string& name, Node stage, const Shape& filter, int64_t outputs,
           const Tensor* residual) {
    Epilogue epilogue = EpilogueOf(stage.attrs);
    epilogue.bias = residual == nullptr ? 2 : 3;
    epilogue.residual = residual == nullptr ? -1 : 2;
    SetEpilogue(epilogue, &stage.attrs);
    AddWeight(filter);
    if (residual != nullptr) inputs.push_back(*residual);
    AddWeight(Shape({outputs}));
    ops::AppendConvStage(name, stage, &node);
  }
  void AddWeight(const Shape& shape) {
    constants |= uint64_t{1} << inputs.size();
    inputs.push_back(RandomTensor(shape, seed++));
  }
};

Node Pointwise(Activation activation) {
  Node node;
  node.attrs.Set("strides", std::vector<int64_t>{1, 1, 1, 1});
  node.attrs.Set("padding", std::string("VALID"));
  SetEpilogue({.activation = activation}, &node.attrs);
  return node;
}

Node Depthwise(const ChainCase& c) {
  Node node;
  node.attrs.Set("strides", std::vector<int64_t>{1, c.stride, c.stride, 1});
  node.attrs.Set("dilations", std::vector<int64_t>{1, c.dilation, c.dilation, 1});
  node.attrs.Set("padding", c.padding);
  if (!c.pads.empty()) node.attrs.Set("explicit_paddings", c.pads);
  SetEpilogue({.activation = Activation::kRelu6}, &node.attrs);
  return node;
}

Chain ChainOf(const ChainCase& c, const Tensor& image, const Tensor* residual) {
  Chain chain;
  chain.inputs = {image};
  chain.Add("expand", Pointwise(Activation::kSwish),
            Shape({1, 1, image.shape().dim(3), c.expanded}), c.expanded, nullptr);
  chain.Add("depthwise", Depthwise(c), Shape({c.kernel, c.kernel, c.expanded, 1}), c.expanded,
            nullptr);
  if (c.projected > 0) {
    chain.Add("project", Pointwise(Activation::kNone), Shape({1, 1, c.expanded, c.projected}),
              c.projected, residual);
  }
  return chain;
}

// The stages as ops of their own, whose kernels have oracles of their own.
Tensor StepByStep(const Chain& chain, const RunOptions& options) {
  Tensor value = chain.inputs[0];
  for (const ops::ConvStage& stage : ops::ConvStagesOf(chain.node)) {
    std::vector<Tensor> inputs = {value};
    for (int i = 0; i < stage.inputs; ++i) inputs.push_back(chain.inputs[stage.first_input + i]);
    RunOptions own = options;
    own.const_mask = ~uint64_t{1};
    if (stage.epilogue.has_residual()) own.const_mask &= ~uint64_t{4};
    auto result = RunKernel(stage.node.op->name, stage.node.attrs, inputs, own);
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return {};
    value = (*result)[0];
  }
  return value;
}

// Wide images are computed some rows at a time, small ones several at a time.
std::vector<ChainCase> Cases() {
  return {
      {"rows", Shape({2, 61, 153, 5}), 67, 9},
      {"rows, stride 2", Shape({1, 63, 195, 3}), 70, 11, 3, 2},
      {"rows, dilation", Shape({1, 40, 201, 4}), 66, 5, 3, 1, 3},
      {"rows, 5 x 5, stride 3", Shape({1, 70, 194, 4}), 65, 6, 5, 3},
      {"rows, stride past the kernel", Shape({1, 71, 194, 4}), 65, 6, 2, 3, 1, false, "VALID"},
      {"rows, residual", Shape({2, 60, 150, 8}), 48, 8, 3, 1, 1, true},
      {"rows, explicit",
       Shape({1, 50, 163, 4}),
       65,
       6,
       3,
       1,
       1,
       false,
       "EXPLICIT",
       {0, 0, 4, 3, 2, 5, 0, 0}},
      {"rows, without projection", Shape({2, 64, 151, 6}), 70, 0, 3, 2},
      {"a single wide row",
       Shape({1, 1, 7000, 3}),
       40,
       5,
       3,
       1,
       1,
       false,
       "EXPLICIT",
       {0, 0, 1, 1, 1, 1, 0, 0}},
      {"images", Shape({9, 7, 5, 19}), 33, 17},
      {"images, residual", Shape({50, 14, 14, 20}), 60, 20, 3, 1, 1, true},
      {"images, without projection", Shape({3, 9, 7, 4}), 10, 0, 5},
      {"one pixel", Shape({4, 1, 1, 6}), 5, 3},
      {"padding beyond the image",
       Shape({1, 2, 2, 3}),
       4,
       3,
       3,
       1,
       1,
       false,
       "EXPLICIT",
       {0, 0, 7, 6, 5, 8, 0, 0}},
      {"no image", Shape({0, 8, 8, 3}), 4, 3},
  };
}

TEST(ConvChain, HasTheBitsOfItsStages) {
  OnEveryIsa([] {
    for (const ChainCase& c : Cases()) {
      for (const int threads : {1, 3}) {
        SCOPED_TRACE(absl::StrCat(c.name, ", ", threads, " threads"));
        const Tensor image = RandomTensor(c.image, 99);
        const Tensor residual =
            RandomTensor(Shape({c.image.dim(0), c.image.dim(1), c.image.dim(2), c.projected}), 98);
        const Chain chain = ChainOf(c, image, c.residual ? &residual : nullptr);
        RunOptions options;
        options.threads = threads;
        options.const_mask = chain.constants;
        const auto got = RunKernel("ConvChain", chain.node.attrs, chain.inputs, options);
        ASSERT_TRUE(got.ok()) << got.status();
        options.kernels.routes = {{"under_test", "gemm"}};
        const Tensor want = StepByStep(chain, options);
        ASSERT_EQ((*got)[0].shape(), want.shape());
        EXPECT_EQ(std::memcmp((*got)[0].data(), want.data(), want.bytes()), 0);
      }
    }
  });
}

TEST(ConvChain, RefusesInputsThatDoNotFit) {
  const Tensor image = RandomTensor(Shape({1, 8, 8, 3}), 1);
  Chain chain = ChainOf(Cases()[0], image, nullptr);
  chain.inputs.pop_back();
  EXPECT_EQ(RunKernel("ConvChain", chain.node.attrs, chain.inputs, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  chain = ChainOf(Cases()[0], image, nullptr);  // filters that are not constant
  EXPECT_EQ(RunKernel("ConvChain", chain.node.attrs, chain.inputs, {}).status().code(),
            absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace floe
