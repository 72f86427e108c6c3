#include <gtest/gtest.h>

#include "runtime/passes/pass_test_util.h"
#include "runtime/passes/passes.h"

namespace floe {
namespace {

void Expect(bool multiplied, const std::string& equation, const std::vector<int64_t>& dims,
            const Shape& weights) {
  SCOPED_TRACE(equation);
  TestGraph t;
  SymShape open;
  for (const int64_t dim : dims) open.push_back(dim);
  open.set_dim(0, Dim::Unknown());
  const ValueRef x = t.Input("x", DType::kFloat32, open);
  t.Output(t.Op("Einsum", "y", {x, t.Const("w", Wavy(weights, 2))}, {{"equation", equation}}));
  Graph graph = t.graph;
  const absl::Status status = MultiplyEinsums(&graph, t.InputTypes(), {});
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(CountOps(graph, "BatchMatMul"), multiplied ? 1 : 0) << DebugString(graph);
  EXPECT_EQ(CountOps(graph, "Einsum"), multiplied ? 0 : 1) << DebugString(graph);
  const std::vector<Tensor> in = {Wavy(Shape(dims), 1)};
  const auto got = RunGraph(t, in), want = RunGraph(t, in, {"all"});
  ASSERT_EQ(got.size(), 1u);
  ASSERT_EQ(want.size(), 1u);
  ExpectSameBits(got[0], want[0]);
}

TEST(MultiplyEinsums, ProjectionsOfKeras) {
  Expect(true, "abc,cde->abde", {3, 5, 4}, Shape({4, 2, 6}));
  Expect(true, "abcd,cde->abe", {3, 5, 2, 4}, Shape({2, 4, 6}));
  Expect(true, "abc,cd->abd", {3, 5, 4}, Shape({4, 6}));
  Expect(true, "ab,bc->ac", {3, 5}, Shape({5, 6}));
}

TEST(MultiplyEinsums, LeavesWhatIsNotOneProduct) {
  Expect(false, "abc,dce->abde", {3, 5, 4}, Shape({2, 4, 6}));     // columns around
  Expect(false, "abc,cde->abed", {3, 5, 4}, Shape({4, 2, 6}));     // columns in another order
  Expect(false, "abcd,dce->abe", {3, 5, 2, 4}, Shape({4, 2, 6}));  // sums in another order
  Expect(false, "abc,bcd->abd", {3, 5, 4}, Shape({5, 4, 6}));      // a product for each b
  Expect(false, "abc,ad->abd", {3, 5, 4}, Shape({3, 6}));
  Expect(false, "abc,cd->bad", {3, 5, 4}, Shape({4, 6}));
  Expect(false, "abc,c->ab", {3, 5, 4}, Shape({4}));
}

}  // namespace
}  // namespace floe
