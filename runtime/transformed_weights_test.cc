#include <gtest/gtest.h>

#include "runtime/model.h"
#include "runtime/passes/pass_test_util.h"

namespace floe {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20, kLayerBytes = 12 * 256 * 256 * sizeof(float);

// The kernel of a convolution in a model that has so many bytes of other constants.
std::shared_ptr<const Kernel> ConvBeside(int64_t others, const SymShape& image,
                                         const Shape& filter) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, image);
  const std::vector<int64_t> ones = {1, 1, 1, 1};
  t.Output(t.Op("Conv2D", "conv", {x, t.Const("filter", Wavy(filter, 1))},
                {{"strides", ones}, {"padding", std::string("VALID")}, {"T", DType::kFloat32}}));
  t.Output(t.Const("table", Wavy(Shape({others / static_cast<int64_t>(sizeof(float))}), 2)));
  t.signature.name = "serving_default";
  t.graph.inputs.clear();  // the signature selects them
  t.graph.outputs.clear();
  Model::Source source;
  source.graph = std::move(t.graph);
  source.signatures = {std::move(t.signature)};
  auto model = Model::Create(std::move(source), {});
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return nullptr;
  const CompiledSignature& compiled = (*model)->Find("")->default_variant();
  for (int i = 0; i < compiled.graph().size(); ++i) {
    if (compiled.graph().node(i).op->name == "Conv2D")
      return {*std::move(model), compiled.kernel(i)};  // lives as long as its model
  }
  ADD_FAILURE() << "no convolution";
  return nullptr;
}

size_t PackedBytesBeside(int64_t others) {
  const auto kernel = ConvBeside(others, {Dim::Unknown(), 1, 14'000, 256}, {1, 12, 256, 256});
  if (kernel == nullptr) return 0;
  EXPECT_EQ(kernel->choice().chosen, "fft");
  return kernel->PackedBytes();
}

// The kernel keeps the weights themselves as well.
TEST(TransformedWeights, AreBoundedByTheSizeOfTheModel) {
  const size_t small = PackedBytesBeside(kMiB), large = PackedBytesBeside(40 * kMiB);
  EXPECT_GT(small, 5 * kLayerBytes);
  EXPECT_LE(small, 56 * kMiB + kLayerBytes);
  EXPECT_GT(large, 2 * kLayerBytes);
  EXPECT_LE(large, 3 * kLayerBytes);
}

double WinogradCostBeside(int64_t others) {
  const auto kernel = ConvBeside(others, {Dim::Unknown(), 9, 9, 128}, {3, 3, 128, 32});
  if (kernel == nullptr) return 0;
  for (const RouteChoice::Offer& offer : kernel->choice().offers) {
    if (offer.name == "winograd4x4") return offer.cost_us.value_or(0);
  }
  ADD_FAILURE() << "winograd4x4 is not open";
  return 0;
}

// Between runs a large model pushes a layer's weights out of the cache.
TEST(TransformedWeights, CostMoreToReadInALargeModel) {
  const double small = WinogradCostBeside(8 * kMiB);
  EXPECT_EQ(WinogradCostBeside(12 * kMiB), small);
  EXPECT_GT(WinogradCostBeside(20 * kMiB), 1.02 * small);
}

}  // namespace
}  // namespace floe
