#include <gtest/gtest.h>

#include "runtime/model.h"
#include "runtime/passes/pass_test_util.h"

namespace floe {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20, kLayerBytes = 12 * 256 * 256 * sizeof(float);

// What the transforms of a long convolution take in a model that has so many bytes of other
// constants.
size_t PackedBytesBeside(int64_t others) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), 1, 14'000, 256});
  const ValueRef filter = t.Const("filter", Wavy(Shape({1, 12, 256, 256}), 1));
  const std::vector<int64_t> ones = {1, 1, 1, 1};
  t.Output(t.Op("Conv2D", "conv", {x, filter},
                {{"strides", ones}, {"padding", std::string("VALID")}, {"T", DType::kFloat32}}));
  t.Output(t.Const("table", Wavy(Shape({others / static_cast<int64_t>(sizeof(float))}), 2)));
  t.signature.name = "serving_default";
  t.graph.inputs.clear();  // the signature selects them
  t.graph.outputs.clear();
  Model::Source source;
  source.graph = std::move(t.graph);
  source.signatures = {std::move(t.signature)};
  const auto model = Model::Create(std::move(source), {});
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return 0;
  const CompiledSignature& compiled = (*model)->Find("")->default_variant();
  for (int i = 0; i < compiled.graph().size(); ++i) {
    if (compiled.graph().node(i).op->name != "Conv2D") continue;
    EXPECT_EQ(compiled.kernel(i)->choice().chosen, "fft");
    return compiled.kernel(i)->PackedBytes();
  }
  ADD_FAILURE() << "no convolution";
  return 0;
}

// The kernel keeps the weights themselves as well.
TEST(TransformedWeights, AreBoundedByTheSizeOfTheModel) {
  const size_t small = PackedBytesBeside(kMiB), large = PackedBytesBeside(40 * kMiB);
  EXPECT_GT(small, 5 * kLayerBytes);
  EXPECT_LE(small, 56 * kMiB + kLayerBytes);
  EXPECT_GT(large, 2 * kLayerBytes);
  EXPECT_LE(large, 3 * kLayerBytes);
}

}  // namespace
}  // namespace floe
