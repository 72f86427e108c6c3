#include <gtest/gtest.h>

#include <cstring>

#include "runtime/passes/pass_test_util.h"
#include "runtime/passes/passes.h"

namespace floe {
namespace {

constexpr int64_t kSide = 40;

// Writes convolutions into a graph, one behind the other.
struct Net {
  Net() : x(t.Input("x", DType::kFloat32, {Dim::Unknown(), Dim(kSide), Dim(kSide), Dim(8)})) {}

  std::string Name() { return "n" + std::to_string(next++); }
  ValueRef Weights(const Shape& shape) {
    const Tensor values = Wavy(shape, static_cast<float>(next));
    return t.Const(Name(), values);
  }
  ValueRef Conv(ValueRef in, int64_t channels, int64_t outputs, int64_t stride = 1,
                int64_t taps = 1) {
    return Windowed("Conv2D", in, Shape({taps, taps, channels, outputs}), stride);
  }
  ValueRef Depthwise(ValueRef in, int64_t channels, int64_t multiplier = 1) {
    return Windowed("DepthwiseConv2dNative", in, Shape({3, 3, channels, multiplier}), 1);
  }
  ValueRef Windowed(const char* op, ValueRef in, const Shape& filter, int64_t stride) {
    const ValueRef weights = Weights(filter);
    return t.Op(op, Name(), {in, weights},
                {{"T", DType::kFloat32},
                 {"strides", std::vector<int64_t>{1, stride, stride, 1}},
                 {"padding", std::string("SAME")}});
  }
  ValueRef Relu6(ValueRef in) { return t.Op("Relu6", Name(), {in}); }

  TestGraph t;
  ValueRef x;
  int next = 0;
};

int ChainsOf(const Net& net) {
  Graph graph = net.t.graph;
  EXPECT_TRUE(RunPasses(&graph, {net.t.InputTypes(), {}}, {}).ok());
  return CountOps(graph, "ConvChain");
}

// `chains` of them, which change no bit.
void ExpectChains(Net* net, ValueRef y, int chains) {
  net->t.Output(y);
  EXPECT_EQ(ChainsOf(*net), chains);
  const std::vector<Tensor> in = {Wavy(Shape({3, kSide, kSide, 8}), 1)};
  const auto got = RunGraph(net->t, in), want = RunGraph(net->t, in, {"fuse_conv_chains"});
  ASSERT_EQ(got.size(), net->t.graph.outputs.size());
  ASSERT_EQ(want.size(), got.size());
  for (size_t k = 0; k < got.size(); ++k) {
    ASSERT_EQ(got[k].shape(), want[k].shape());
    EXPECT_EQ(std::memcmp(got[k].data(), want[k].data(), want[k].bytes()), 0);
  }
}

TEST(FuseConvChains, InvertedResidual) {
  Net net;
  const ValueRef expanded = net.Relu6(net.Conv(net.x, 8, 48));
  const ValueRef filtered = net.Relu6(net.Depthwise(expanded, 48));
  const ValueRef projected = net.Conv(filtered, 48, 8);
  ExpectChains(&net, net.t.Op("Add", "sum", {projected, net.x}), 1);
}

TEST(FuseConvChains, BlocksInARow) {
  Net net;
  ValueRef y = net.x;
  for (int i = 0; i < 3; ++i)
    y = net.Conv(net.Relu6(net.Depthwise(net.Relu6(net.Conv(y, 8, 32)), 32)), 32, 8);
  ExpectChains(&net, y, 3);
}

TEST(FuseConvChains, NoStepInTwoChains) {
  Net net;
  ValueRef y = net.Conv(net.x, 8, 16);
  y = net.Conv(net.Depthwise(y, 16), 16, 24);
  ExpectChains(&net, net.Conv(net.Depthwise(y, 24), 24, 32), 1);
}

TEST(FuseConvChains, NothingBehindTheDepthwiseStage) {
  Net net;
  ExpectChains(&net, net.Relu6(net.Depthwise(net.Relu6(net.Conv(net.x, 8, 32)), 32)), 1);
}

TEST(FuseConvChains, LeavesWhatOthersRead) {
  Net net;
  const ValueRef expanded = net.Relu6(net.Conv(net.x, 8, 16));
  const ValueRef filtered = net.Depthwise(expanded, 16);
  net.t.Output(expanded);
  net.t.Output(filtered);
  ExpectChains(&net, net.Conv(filtered, 16, 8), 0);
}

TEST(FuseConvChains, LeavesOtherConvolutions) {
  Net net;
  ValueRef y = net.Depthwise(net.Conv(net.x, 8, 8, 1, 3), 8);  // three taps
  y = net.Depthwise(net.Conv(y, 8, 8, 2), 8);                  // not every pixel
  y = net.Depthwise(y, 8, 2);                                  // two outputs a channel
  ExpectChains(&net, net.Conv(y, 16, 4), 0);
}

TEST(FuseConvChains, LeavesAStepWithARouteOfItsOwn) {
  Net net;
  const ValueRef expanded = net.Conv(net.x, 8, 16);
  net.t.Output(net.Depthwise(expanded, 16));
  for (const bool routed : {false, true}) {
    Graph graph = net.t.graph;
    KernelOptions options;
    if (routed) options.routes = {{graph.node(expanded.node).name, "gemm"}};
    EXPECT_TRUE(FuseConvChains(&graph, net.t.InputTypes(), options).ok());
    EXPECT_EQ(CountOps(graph, "ConvChain"), routed ? 0 : 1);
  }
}

TEST(FuseConvChains, OnlyWhereTheTargetComputesThem) {
  Net net;
  net.t.Output(net.Conv(net.Depthwise(net.Conv(net.x, 8, 16), 16), 16, 8));
  const auto chains = [&](const KernelOptions& options) {
    Graph graph = net.t.graph;
    EXPECT_TRUE(FuseConvChains(&graph, net.t.InputTypes(), options).ok());
    return CountOps(graph, "ConvChain");
  };
  EXPECT_EQ(chains({}), 1);
  EXPECT_EQ(chains({.gemm = GemmBackend::kNative}), 1);
  EXPECT_EQ(chains({.gemm = GemmBackend::kReference}), 0);
  EXPECT_EQ(chains({.gemm = GemmBackend::kOpenBlas}), 0);
  EXPECT_EQ(chains({.device = DeviceKind::kCuda}), 0);
}

}  // namespace
}  // namespace floe
