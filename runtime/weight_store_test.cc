#include "runtime/weight_store.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/memory_budget.h"
#include "runtime/exec_context.h"
#include "runtime/model.h"
#include "runtime/test_graph.h"

namespace floe {
namespace {

constexpr int64_t kWidth = 512, kDenseBytes = kWidth * kWidth * sizeof(float);

Tensor Weights(float seed) {
  Tensor weights = Tensor::Allocate(DType::kFloat32, Shape({kWidth, kWidth}));
  auto* const values = static_cast<float*>(weights.mutable_data());
  for (int64_t i = 0; i < weights.elements(); ++i)
    values[i] = seed + static_cast<float>(i % 13) / 100;
  return weights;
}

// Matrix products, one behind the other. Its constants are nobody else's.
absl::StatusOr<std::shared_ptr<const Model>> Chain(const std::vector<float>& seeds,
                                                   const CompileOptions& options) {
  TestGraph t;
  ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), kWidth});
  for (size_t i = 0; i < seeds.size(); ++i) {
    const std::string number = std::to_string(i);
    x = t.Op("MatMul", "y" + number, {x, t.Const("w" + number, Weights(seeds[i]))});
  }
  t.Output(x);
  t.signature.name = "serving_default";
  t.graph.inputs.clear();  // the signature selects them
  t.graph.outputs.clear();
  Model::Source source;
  source.graph = std::move(t.graph);
  source.signatures = {std::move(t.signature)};
  return Model::Create(std::move(source), options);
}

const Kernel* KernelOf(const Model& model, const std::string& name) {
  const CompiledSignature& compiled = model.Find("")->default_variant();
  for (int i = 0; i < compiled.graph().size(); ++i)
    if (compiled.graph().node(i).name == name) return compiled.kernel(i);
  return nullptr;
}

class WeightStoreTest : public testing::Test {
 protected:
  std::shared_ptr<const Model> Load(const std::vector<float>& seeds) {
    const MemoryScope scope(budget_);
    auto model = Chain(seeds, options_);
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *model : nullptr;
  }
  const MemoryBudget budget_{0};
  CompileOptions options_{.weights = std::make_shared<WeightStore>()};
};

TEST_F(WeightStoreTest, ModelsHoldEqualWeightsOnce) {
  auto first = Load({1, 2});
  const int64_t alone = budget_.in_use();
  EXPECT_GE(alone, 2 * kDenseBytes);
  auto second = Load({1, 3});
  EXPECT_EQ(KernelOf(*first, "y0"), KernelOf(*second, "y0"));
  EXPECT_NE(KernelOf(*first, "y1"), KernelOf(*second, "y1"));
  EXPECT_EQ(second->weight_bytes(), first->weight_bytes());
  EXPECT_LT(budget_.in_use(), alone + kDenseBytes * 3 / 2);

  first.reset();  // what the second has stays
  EXPECT_GE(budget_.in_use(), 2 * kDenseBytes);
  EXPECT_LT(budget_.in_use(), 3 * kDenseBytes);
  second.reset();
  EXPECT_EQ(budget_.in_use(), 0);
}

TEST_F(WeightStoreTest, OptionsTellKernelsApart) {
  const auto exact = Load({1});
  options_.kernels.precision = Precision::kBf16;
  const auto rounded = Load({1});
  EXPECT_NE(KernelOf(*exact, "y0"), KernelOf(*rounded, "y0"));
  EXPECT_LT(rounded->weight_bytes(), exact->weight_bytes());
  options_.kernels = {.gemm = GemmBackend::kReference};
  EXPECT_NE(KernelOf(*Load({1}), "y0"), KernelOf(*exact, "y0"));
}

TEST_F(WeightStoreTest, LoadsAtTheSameTimeShareToo) {
  std::shared_ptr<const Model> models[4];
  std::vector<std::thread> loads;
  for (auto& model : models) loads.emplace_back([&] { model = Load({1, 2}); });
  for (std::thread& load : loads) load.join();
  for (const auto& model : models) EXPECT_EQ(KernelOf(*model, "y1"), KernelOf(*models[0], "y1"));
  EXPECT_LT(budget_.in_use(), 3 * kDenseBytes);
}

TEST_F(WeightStoreTest, ForgetsKernelsWithoutUsers) {
  for (int i = 0; i < 500; ++i) options_.weights->Add(i, nullptr);
  EXPECT_LT(options_.weights->size(), 100u);
}

// Not once as they were read and once packed.
TEST(Compile, GivesBackEachConstantOnceItIsPacked) {
  std::vector<float> seeds(20);
  std::iota(seeds.begin(), seeds.end(), 0.0f);
  const MemoryBudget budget(26 * kDenseBytes);
  const MemoryScope scope(budget);
  const auto model = Chain(seeds, {});
  EXPECT_TRUE(model.ok()) << model.status();
}

}  // namespace
}  // namespace floe
