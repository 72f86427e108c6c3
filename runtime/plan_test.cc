// Compiled signatures, plans and runs: one plan for every batch size, what may be batched and why
// not, optional inputs.
#include "runtime/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "model/import/import.h"
#include "runtime/exec_context.h"
#include "runtime/model.h"
#include "runtime/test_graph.h"

namespace floe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// x[rows,4] -> relu(x w + b) -> sigmoid(. v), as a frozen Keras model has it.
TestGraph DenseGraph() {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), 4});
  const ValueRef h =
      t.Op("MatMul", "h", {x, t.Floats("w", {4, 2}, {.5f, -1, 2, .25f, -.75f, 1, 0, 3})});
  const ValueRef r =
      t.Op("Relu", "r", {t.Op("BiasAdd", "hb", {h, t.Floats("b", {2}, {.1f, -.2f})})});
  t.Output(t.Op("Sigmoid", "y", {t.Op("MatMul", "o", {r, t.Floats("v", {2, 1}, {1.5f, -2})})}));
  return t;
}

double DenseReference(const float* x) {
  const double w[4][2] = {{.5, -1}, {2, .25}, {-.75, 1}, {0, 3}};
  double h[2] = {.1f, -.2f};
  for (int k = 0; k < 4; ++k) {
    for (int n = 0; n < 2; ++n) h[n] += x[k] * w[k][n];
  }
  const double o = std::max(h[0], 0.) * 1.5 - std::max(h[1], 0.) * 2;
  return 1 / (1 + std::exp(-o));
}

std::vector<float> RunRows(ExecContext& context, const std::shared_ptr<const Plan>& plan,
                           const std::vector<float>& x, int64_t rows) {
  EXPECT_TRUE(context.Prepare(plan, rows).ok());
  std::copy(x.begin(), x.end(), context.Input(0).as<float>());
  const absl::Status status = context.Run();
  EXPECT_TRUE(status.ok()) << status;
  const TensorView& y = context.Output(0);
  return {y.as<float>(), y.as<float>() + y.elements()};
}

TEST(Plan, OnePlanServesEveryBatchSizeWithTheSameBits) {
  for (bool fuse : {true, false}) {
    const auto compiled = DenseGraph().Compile(
        {.disabled_passes = fuse ? std::vector<std::string>{} : std::vector<std::string>{"all"}});
    ExecContext context;
    std::shared_ptr<const Plan> first;
    std::vector<float> alone;
    std::vector<float> x(33 * 4);
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
    for (int64_t rows = 1; rows <= 33; ++rows) {
      const auto plan = compiled->Bind({Shape({rows, 4})});
      ASSERT_TRUE(plan.ok()) << plan.status();
      if (first == nullptr) first = *plan;
      EXPECT_EQ(*plan, first);
      EXPECT_TRUE((*plan)->batchable()) << (*plan)->why_not_batchable();
      const std::vector<float> y = RunRows(context, *plan, {x.begin(), x.begin() + rows * 4}, rows);
      ASSERT_EQ(static_cast<int64_t>(y.size()), rows);
      alone.push_back(
          RunRows(context, *plan, {x.begin() + (rows - 1) * 4, x.begin() + rows * 4}, 1)[0]);
      EXPECT_EQ(y, alone) << "batch of " << rows;
    }
    for (int64_t i = 0; i < 33; ++i) EXPECT_NEAR(alone[i], DenseReference(&x[i * 4]), 1e-6);
  }
}

TEST(Plan, EmptyBatchesRun) {
  ExecContext context;
  const auto plan = DenseGraph().Compile()->Bind({Shape({0, 4})});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_TRUE(context.Prepare(*plan, 0).ok());
  EXPECT_EQ(context.Input(0).elements(), 0);
  EXPECT_TRUE(context.Run().ok());
  EXPECT_EQ(context.Output(0).shape, Shape({0, 1}));
}

TEST(Plan, BoundInputsAreReadInPlaceAndLeftAlone) {
  const auto plan = DenseGraph().Compile()->Bind({Shape({1, 4})});
  ASSERT_TRUE(plan.ok());
  ExecContext context;
  std::vector<float> x = {1, 2, 3, 4};
  const std::vector<float> expected = RunRows(context, *plan, x, 1);
  ASSERT_TRUE(context.Prepare(*plan, 1).ok());
  context.BindInput(0, x.data());
  ASSERT_TRUE(context.Run().ok());
  EXPECT_EQ(context.Output(0).as<float>()[0], expected[0]);
  EXPECT_THAT(x, ElementsAre(1, 2, 3, 4));
  // The next Prepare goes back to the context's own memory.
  EXPECT_NEAR(RunRows(context, *plan, {0, 0, 0, 0}, 1)[0],
              DenseReference(std::vector<float>(4, 0).data()), 1e-6);
}

TEST(Plan, AnInputThatIsNotFedIsAnError) {
  const auto plan = DenseGraph().Compile()->Bind({Shape({1, 4})});
  ASSERT_TRUE(plan.ok());
  ExecContext context;
  RunRows(context, *plan, {1, 2, 3, 4}, 1);
  EXPECT_TRUE(context.Run().ok()) << "as it was fed";
  ASSERT_TRUE(context.Prepare(*plan, 1).ok());
  EXPECT_EQ(context.Run().code(), absl::StatusCode::kInternal);
}

TEST(Bind, WrongShapesNameTheInput) {
  const auto compiled = DenseGraph().Compile();
  const auto status = compiled->Bind({Shape({2, 5})}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("'x'"), HasSubstr("[2,5]"), HasSubstr("[?,4]")));
}

TEST(Bind, AScalarIsNotAVectorWithoutItsRows) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, SymShape::UnknownRank());
  const ValueRef y = t.Input("y", DType::kFloat32, SymShape::UnknownRank());
  t.Output(t.Op("Add", "z", {x, y}));
  const auto compiled = t.Compile();
  const auto both = compiled->Bind({Shape({3}), Shape({3})});
  const auto one = compiled->Bind({Shape(), Shape({3})});
  ASSERT_TRUE(both.ok() && one.ok());
  EXPECT_NE(*both, *one);
  EXPECT_EQ((*one)->input_types()[0].shape.rank(), 0);
}

TEST(Bind, TheCacheOfPlansIsBoundedAndDropsTheOldest) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), Dim::Unknown()});
  t.Output(t.Op("Relu", "y", {x}));
  const auto compiled = t.Compile({.max_plans = 3});
  std::vector<std::weak_ptr<const Plan>> plans;
  for (int64_t n = 1; n <= 5; ++n) plans.push_back(*compiled->Bind({Shape({2, n})}));
  EXPECT_TRUE(plans[0].expired());
  EXPECT_TRUE(plans[1].expired());
  EXPECT_FALSE(plans[2].expired());
  ASSERT_TRUE(compiled->Bind({Shape({2, 3})}).ok());  // used again: now the newest
  ASSERT_TRUE(compiled->Bind({Shape({2, 9})}).ok());
  EXPECT_FALSE(plans[2].expired());
  EXPECT_TRUE(plans[3].expired());
}

// What waits for a run is told apart by its plan.
TEST(Bind, APlanThatIsHeldIsEverybodys) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), Dim::Unknown()});
  t.Output(t.Op("Relu", "y", {x}));
  const auto compiled = t.Compile({.max_plans = 3});
  std::shared_ptr<const Plan> held = *compiled->Bind({Shape({2, 1})});
  const std::weak_ptr<const Plan> watched = held;
  for (int round = 0; round < 2; ++round) {
    for (int64_t n = 2; n <= 9; ++n) ASSERT_TRUE(compiled->Bind({Shape({2, n})}).ok());
    EXPECT_EQ(*compiled->Bind({Shape({5, 1})}), held);
  }
  held.reset();
  EXPECT_FALSE(watched.expired());  // it is in the cache again
  for (int64_t n = 2; n <= 9; ++n) ASSERT_TRUE(compiled->Bind({Shape({2, n})}).ok());
  EXPECT_TRUE(watched.expired());
}

TEST(Bind, ThoseWhoComeAtTheSameTimeGetTheSamePlan) {
  constexpr int64_t kShapes = 200;
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), Dim::Unknown()});
  t.Output(t.Op("Relu", "y", {x}));
  const auto compiled = t.Compile({.max_plans = kShapes});
  std::vector<std::shared_ptr<const Plan>> plans[3];
  std::atomic<int64_t> arrived{0};
  const auto bind = [&](std::vector<std::shared_ptr<const Plan>>* mine) {
    for (int64_t n = 1; n <= kShapes; ++n) {
      ++arrived;
      while (arrived < n * 3) std::this_thread::yield();
      mine->push_back(*compiled->Bind({Shape({2, n})}));
    }
  };
  std::thread others[] = {std::thread(bind, &plans[1]), std::thread(bind, &plans[2])};
  bind(&plans[0]);
  for (std::thread& other : others) other.join();
  EXPECT_EQ(plans[1], plans[0]);
  EXPECT_EQ(plans[2], plans[0]);
}

TEST(Bind, PlansAndSignaturesDoNotKeepEachOtherAlive) {
  std::weak_ptr<const CompiledSignature> signature;
  std::weak_ptr<const Plan> cached;
  std::shared_ptr<const Plan> held;
  {
    const auto compiled = DenseGraph().Compile();
    signature = compiled;
    cached = *compiled->Bind({Shape({1, 4})});
    held = *compiled->Bind({Shape({1, 4})});
  }
  EXPECT_TRUE(signature.expired());
  {
    ExecContext context;  // a plan in use keeps what it needs
    EXPECT_EQ(RunRows(context, held, {1, 2, 3, 4}, 1).size(), 1u);
  }
  held.reset();
  EXPECT_TRUE(cached.expired());
}

TEST(Compile, NodesThatDifferOnlyInAnAttributeShareNoKernel) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown()});
  t.Output(t.Op("Cast", "a", {x}, {{"SrcT", DType::kFloat32}, {"DstT", DType::kInt32}}));
  t.Output(t.Op("Cast", "b", {x}, {{"SrcT", DType::kFloat32}, {"DstT", DType::kFloat64}}));
  KernelCache cache;
  const auto compiled = CompiledSignature::Compile(t.graph, t.signature, {}, &cache);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const auto plan = (*compiled)->Bind({Shape({1})});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExecContext context;
  ASSERT_TRUE(context.Prepare(*plan, 1).ok());
  *context.Input(0).as<float>() = 2.5f;
  ASSERT_TRUE(context.Run().ok());
  EXPECT_EQ(*context.Output(0).as<int32_t>(), 2);
  EXPECT_EQ(*context.Output(1).as<double>(), 2.5);
}

TEST(Compile, ListsEveryUnsupportedNode) {
  const auto model = ImportBytes(R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "first" op: "NoSuchOp" input: "x" }
    node { name: "second" op: "NorThis" input: "first" }
    node { name: "y" op: "Relu" input: "second" attr { key: "T" value { type: DT_FLOAT } } })",
                                 {});
  ASSERT_TRUE(model.ok()) << model.status();
  const auto created = Model::Create({{}, model->graph, model->signatures}, {});
  EXPECT_EQ(created.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(created.status().message()),
              AllOf(HasSubstr("'first' (NoSuchOp)"), HasSubstr("'second' (NorThis)"),
                    HasSubstr("2 nodes")));
}

// A cond behind a learning phase, with an op floe lacks in the branch that serving never takes.
constexpr char kPhase[] = R"(
  node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { dim { size: -1 } dim { size: 2 } } } } }
  node { name: "keras_learning_phase" op: "Placeholder" attr { key: "dtype" value { type: DT_BOOL } } attr { key: "shape" value { shape {} } } }
  node { name: "s" op: "Switch" input: "x" input: "keras_learning_phase" attr { key: "T" value { type: DT_FLOAT } } }
  node { name: "train" op: "%s" input: "s:1" attr { key: "T" value { type: DT_FLOAT } } }
  node { name: "serve" op: "Identity" input: "s" attr { key: "T" value { type: DT_FLOAT } } }
  node { name: "y" op: "Merge" input: "serve" input: "train" attr { key: "T" value { type: DT_FLOAT } } attr { key: "N" value { i: 2 } } })";

std::shared_ptr<const Model> PhaseModel(const std::string& op) {
  std::string text = kPhase;
  text.replace(text.find("%s"), 2, op);
  ImportOptions options;
  options.output_aliases = {{"y", "y"}};
  auto imported = ImportBytes(text, options);
  EXPECT_TRUE(imported.ok()) << imported.status();
  auto model = Model::Create({{}, std::move(imported->graph), imported->signatures}, {});
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *model : nullptr;
}

absl::StatusOr<float> Predict(const Model& model, const bool* phase) {
  const Signature& signature = *model.Find("");
  float x[2] = {-3, 5};
  bool p = phase != nullptr && *phase;
  const TensorView x_view{DType::kFloat32, Shape({1, 2}), x}, p_view{DType::kBool, Shape(), &p};
  std::vector<const TensorView*> fed(2, nullptr);
  fed[signature.FindInput("x")] = &x_view;
  if (phase != nullptr) fed[signature.FindInput("keras_learning_phase")] = &p_view;
  FLOE_ASSIGN_OR_RETURN(const Signature::Variant* const variant,
                        signature.Choose(absl::MakeSpan(fed)));
  std::vector<Shape> shapes;
  for (int i : variant->inputs) shapes.push_back(fed[i]->shape);
  FLOE_ASSIGN_OR_RETURN(auto plan, variant->compiled->Bind(shapes));
  ExecContext context;
  FLOE_RETURN_IF_ERROR(context.Prepare(plan, 1));
  for (size_t k = 0; k < variant->inputs.size(); ++k)
    context.BindInput(static_cast<int>(k), fed[variant->inputs[k]]->data);
  FLOE_RETURN_IF_ERROR(context.Run());
  return context.Output(0).as<float>()[0];
}

TEST(OptionalInputs, TheLearningPhaseIsFalseUnlessFed) {
  const auto model = PhaseModel("Relu");
  ASSERT_NE(model, nullptr);
  const bool on = true, off = false;
  EXPECT_EQ(*Predict(*model, nullptr), -3.f);
  EXPECT_EQ(*Predict(*model, &off), -3.f);
  EXPECT_EQ(*Predict(*model, &on), 0.f);
  const Signature& signature = *model->Find("");
  for (const char* gone : {"Switch", "Merge", "If"})
    EXPECT_EQ(CountOps(signature.default_variant().graph(), gone), 0) << gone;
  EXPECT_EQ(CountOps(signature.variants()[1].compiled->graph(), "If"), 1);
}

TEST(OptionalInputs, AnUnsupportedOpInTheUnusedBranchOnlyMattersWhenFed) {
  const auto model = PhaseModel("NoSuchOp");
  ASSERT_NE(model, nullptr);
  const bool on = true;
  EXPECT_EQ(*Predict(*model, nullptr), -3.f);
  const auto refused = Predict(*model, &on).status();
  EXPECT_THAT(std::string(refused.message()), HasSubstr("NoSuchOp"));
}

}  // namespace
}  // namespace floe
