#include <gtest/gtest.h>

#include "runtime/passes/pass_test_util.h"
#include "runtime/passes/passes.h"

namespace floe {
namespace {

struct Bags {
  explicit Bags(int64_t entries = 20, int64_t features = 5)
      : indices(t.Input("indices", DType::kInt32, {Dim::Unknown(), 3})),
        table(t.Const("table", Wavy(Shape({entries, features}), 1))) {}

  ValueRef Gather() { return t.Op("GatherV2", "rows", {table, indices, t.Int("zero", 0)}); }
  void Reduce(const char* op, ValueRef rows, int axis, bool keep = false) {
    t.Output(t.Op(op, "sum", {rows, t.Int("axis", axis)}, {{"keep_dims", keep}}));
  }

  TestGraph t;
  ValueRef indices, table;
};

void ExpectBag(bool fused, const Bags& b) {
  Graph graph = b.t.graph;
  const absl::Status status = FuseEmbeddingBags(&graph, b.t.InputTypes(), {});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(CountOps(graph, "EmbeddingBag"), fused ? 1 : 0) << DebugString(graph);
  EXPECT_EQ(CountOps(graph, "GatherV2"), fused ? 0 : 1) << DebugString(graph);
  for (const int64_t n : {0, 1, 7}) {
    Tensor in = Tensor::Allocate(DType::kInt32, Shape({n, 3}));
    for (int64_t i = 0; i < in.elements(); ++i)
      static_cast<int32_t*>(in.mutable_data())[i] = static_cast<int32_t>(i * 7 % 20);
    const auto got = RunGraph(b.t, {in}), want = RunGraph(b.t, {in}, {"all"});
    ASSERT_EQ(got.size(), want.size());
    for (size_t k = 0; k < got.size(); ++k) ExpectSameBits(got[k], want[k]);
  }
}

TEST(FuseEmbeddingBags, SumsAndMeans) {
  for (const char* op : {"Sum", "Mean"}) {
    for (const int axis : {1, -2}) {
      Bags b;
      b.Reduce(op, b.Gather(), axis);
      ExpectBag(true, b);
    }
  }
}

TEST(FuseEmbeddingBags, OthersStay) {
  Bags features;
  features.Reduce("Sum", features.Gather(), 2);
  ExpectBag(false, features);
  Bags requests;
  requests.Reduce("Sum", requests.Gather(), 0);
  ExpectBag(false, requests);
  Bags kept;
  kept.Reduce("Mean", kept.Gather(), 1, /*keep=*/true);
  ExpectBag(false, kept);
  Bags largest;
  largest.Reduce("Max", largest.Gather(), 1);
  ExpectBag(false, largest);
  Bags read;  // the rows are an answer too
  const ValueRef rows = read.Gather();
  read.Reduce("Sum", rows, 1);
  read.t.Output(rows);
  ExpectBag(false, read);
}

TEST(FuseEmbeddingBags, NamesAnIndexThatIsNotInTheTable) {
  Bags b(6);
  b.Reduce("Sum", b.Gather(), 1);
  const auto compiled = CompiledSignature::Compile(b.t.graph, b.t.signature, {});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const auto plan = (*compiled)->Bind({Shape({1, 3})});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExecContext context;
  ASSERT_TRUE(context.Prepare(*plan, 1).ok());
  for (const int32_t wrong : {6, -1}) {
    const int32_t indices[3] = {0, wrong, 5};
    context.BindInput(0, indices);
    const absl::Status status = context.Run();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(
        status.message().find(absl::StrCat("index ", wrong, " at position 1 is not in [0, 6)")),
        std::string::npos)
        << status;
  }
}

}  // namespace
}  // namespace floe
