#include <gtest/gtest.h>

#include <array>

#include "runtime/passes/pass_test_util.h"
#include "runtime/passes/passes.h"

namespace floe {
namespace {

// Sizes that no two axes share: 2 heads, 5 queries, 7 keys, 3 features, values of 4.
struct AttentionCase {
  ValueRef In(const std::string& name, const std::vector<int64_t>& dims) {
    SymShape open;
    std::vector<int64_t> sizes = dims;
    for (const int64_t dim : dims) open.push_back(dim);
    open.set_dim(0, Dim::Unknown());
    sizes[0] = 3;
    const Shape shape(sizes);
    inputs.push_back(Wavy(shape, static_cast<float>(inputs.size() + 1)));
    return t.Input(name, DType::kFloat32, open);
  }
  ValueRef Turn(const std::string& name, ValueRef x, const std::vector<int32_t>& perm) {
    return t.Op("Transpose", name, {x, t.Ints(name + "/perm", perm)});
  }
  ValueRef Einsum(const std::string& name, const std::string& equation, ValueRef a, ValueRef b) {
    return t.Op("Einsum", name, {a, b}, {{"equation", equation}});
  }
  ValueRef Product(const std::string& name, ValueRef a, ValueRef b, bool adj_y) {
    return t.Op("BatchMatMul", name, {a, b}, {{"adj_x", false}, {"adj_y", adj_y}});
  }
  ValueRef Scaled(ValueRef x) { return t.Op("Mul", "scaled", {x, t.Floats("scale", {}, {1.7f})}); }

  // Whether one step is left, with answers as without the pass.
  void Expect(bool fused, ValueRef y) {
    t.Output(y);
    Graph graph = t.graph;
    const absl::Status status = FuseAttention(&graph, t.InputTypes(), {});
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(CountOps(graph, "Attention"), fused ? 1 : 0) << DebugString(graph);
    EXPECT_EQ(CountOps(graph, "Softmax"), fused ? 0 : 1) << DebugString(graph);
    if (fused) {
      EXPECT_EQ(CountOps(graph, "Transpose"), 0) << DebugString(graph);
    }
    const auto got = RunGraph(t, inputs), want = RunGraph(t, inputs, {"all"});
    ASSERT_EQ(got.size(), t.graph.outputs.size());
    ASSERT_EQ(want.size(), got.size());
    for (size_t i = 0; i < got.size(); ++i) ExpectClose(got[i], want[i], 2e-6);
  }

  TestGraph t;
  std::vector<Tensor> inputs;
};

constexpr int64_t kOpenRows = -1;  // In() opens it

TEST(FuseAttention, EinsumsOfKeras) {
  struct Form {
    const char *scores, *values;
    bool key_first;
  };
  for (const Form& form : {Form{"BTNH,BSNH->BNTS", "BNTS,BSNH->BTNH", false},
                           Form{"aecd,abcd->acbe", "acbe,aecd->abcd", true}}) {
    AttentionCase c;
    const ValueRef q = c.In("q", {kOpenRows, 5, 2, 3}), k = c.In("k", {kOpenRows, 7, 2, 3}),
                   v = c.In("v", {kOpenRows, 7, 2, 4});
    const ValueRef scores =
        c.Einsum("scores", form.scores, form.key_first ? k : q, form.key_first ? q : k);
    const ValueRef soft = c.t.Op("Softmax", "soft", {c.Scaled(scores)});
    c.Expect(true, c.Einsum("y", form.values, soft, v));
  }
}

TEST(FuseAttention, ProductsWithAndWithoutTransposes) {
  for (const bool heads_last : {false, true}) {
    for (const bool adj : {false, true}) {
      AttentionCase c;
      ValueRef q, k, v;
      const std::vector<int32_t> swap = {0, 2, 1, 3};
      if (heads_last) {
        q = c.Turn("qt", c.In("q", {kOpenRows, 5, 2, 3}), swap);
        k = c.Turn("kt", c.In("k", {kOpenRows, 7, 2, 3}),
                   adj ? swap : std::vector<int32_t>{0, 2, 3, 1});
        v = c.Turn("vt", c.In("v", {kOpenRows, 7, 2, 4}), swap);
      } else {
        q = c.In("q", {kOpenRows, 2, 5, 3});
        k = c.In("k", adj ? std::vector<int64_t>{kOpenRows, 2, 7, 3}
                          : std::vector<int64_t>{kOpenRows, 2, 3, 7});
        v = c.In("v", {kOpenRows, 2, 7, 4});
      }
      const ValueRef scores = c.Product("scores", q, k, adj);
      const ValueRef soft = c.t.Op(
          "Softmax", "soft", {c.t.Op("RealDiv", "s", {scores, c.t.Floats("root", {}, {1.3f})})});
      const ValueRef y = c.Product("y", soft, v, false);
      c.Expect(true, heads_last ? c.Turn("back", y, swap) : y);
    }
  }
}

TEST(FuseAttention, ScaledQueries) {
  for (const bool read_twice : {false, true}) {
    AttentionCase c;
    const ValueRef q =
        c.t.Op("Mul", "half", {c.t.Floats("c", {}, {0.6f}), c.In("q", {kOpenRows, 5, 2, 3})});
    const ValueRef k = c.In("k", {kOpenRows, 7, 2, 3}), v = c.In("v", {kOpenRows, 7, 2, 4});
    if (read_twice) c.t.Output(q);
    const ValueRef scores = c.Scaled(c.Einsum("scores", "BTNH,BSNH->BNTS", q, k));
    c.Expect(true, c.Einsum("y", "BNTS,BSNH->BTNH", c.t.Op("Softmax", "soft", {scores}), v));
    Graph graph = c.t.graph;
    ASSERT_TRUE(FuseAttention(&graph, c.t.InputTypes(), {}).ok());
    EXPECT_EQ(CountOps(graph, "Mul"), read_twice ? 1 : 0);
  }
}

TEST(FuseAttention, WithoutHeadsAndScale) {
  AttentionCase c;
  const ValueRef q = c.In("q", {kOpenRows, 5, 3}), k = c.In("k", {kOpenRows, 7, 3}),
                 v = c.In("v", {kOpenRows, 7, 4});
  c.Expect(true,
           c.Product("y", c.t.Op("Softmax", "soft", {c.Product("scores", q, k, true)}), v, false));
}

TEST(FuseAttention, MasksOfEveryShapeOnEitherSide) {
  for (const std::vector<int64_t>& dims :
       {std::vector<int64_t>{kOpenRows, 1, 1, 7}, {kOpenRows, 1, 5, 7}, {kOpenRows, 2, 5, 1}}) {
    for (const bool first : {false, true}) {
      AttentionCase c;
      const ValueRef q = c.In("q", {kOpenRows, 2, 5, 3}), k = c.In("k", {kOpenRows, 2, 7, 3}),
                     v = c.In("v", {kOpenRows, 2, 7, 4}), mask = c.In("mask", dims);
      // A mask that is itself a product with a constant.
      const ValueRef far = c.t.Op("Mul", "far", {mask, c.t.Floats("much", {}, {-3.0f})});
      const ValueRef scores = c.Scaled(c.Product("scores", q, k, true));
      const ValueRef sum =
          first ? c.t.Op("Add", "sum", {far, scores}) : c.t.Op("Add", "sum", {scores, far});
      c.Expect(true, c.Product("y", c.t.Op("Softmax", "soft", {sum}), v, false));
    }
  }
  for (const Shape& shape : {Shape({1, 1, 5, 7}), Shape({5, 7}), Shape({7}), Shape({5, 1})}) {
    AttentionCase c;
    const ValueRef q = c.In("q", {kOpenRows, 2, 5, 3}), k = c.In("k", {kOpenRows, 2, 7, 3}),
                   v = c.In("v", {kOpenRows, 2, 7, 4});
    const ValueRef sum =
        c.t.Op("Add", "sum", {c.Product("scores", q, k, true), c.t.Const("mask", Wavy(shape, 9))});
    c.Expect(true, c.Product("y", c.t.Op("Softmax", "soft", {sum}), v, false));
  }
}

// As Keras 3 writes it: keys times queries, turned over, and weights of 0 for what is masked.
TEST(FuseAttention, MasksThatSelect) {
  for (const bool zero : {false, true}) {
    for (const bool turned : {false, true}) {
      AttentionCase c;
      const ValueRef q = c.In("q", {kOpenRows, 5, 2, 3}), k = c.In("k", {kOpenRows, 7, 2, 3}),
                     v = c.In("v", {kOpenRows, 7, 2, 4}),
                     number = c.In("mask", {kOpenRows, 1, 5, 7});
      const ValueRef mask = c.t.Op("Greater", "greater", {number, c.t.Floats("at", {}, {0.1f})});
      const ValueRef keys = c.Turn("kt", k, {0, 2, 1, 3});
      const ValueRef scores =
          turned ? c.Turn("over", c.Product("s", keys, c.Turn("qt", q, {0, 2, 3, 1}), false),
                          {0, 1, 3, 2})
                 : c.Product("s", c.Turn("qt", q, {0, 2, 1, 3}), keys, true);
      const ValueRef filled =
          c.t.Op("SelectV2", "filled", {mask, scores, c.t.Floats("low", {}, {-2.0f})});
      ValueRef weights = c.t.Op("Softmax", "soft", {filled});
      if (zero)
        weights = c.t.Op("SelectV2", "zeroed", {mask, weights, c.t.Floats("no", {}, {0.0f})});
      c.Expect(true, c.Turn("back", c.Product("y", weights, c.Turn("vt", v, {0, 2, 1, 3}), false),
                            {0, 2, 1, 3}));
    }
  }
}

TEST(FuseAttention, LeavesSelectsOfOtherMasksOrValues) {
  for (const int kind : {0, 1, 2}) {
    AttentionCase c;
    const ValueRef q = c.In("q", {kOpenRows, 2, 5, 3}), k = c.In("k", {kOpenRows, 2, 7, 3}),
                   v = c.In("v", {kOpenRows, 2, 7, 4}), number = c.In("mask", {kOpenRows, 1, 5, 7});
    const ValueRef mask = c.t.Op("Greater", "greater", {number, c.t.Floats("at", {}, {0.1f})});
    const ValueRef other = c.t.Op("Less", "less", {number, c.t.Floats("to", {}, {0.2f})});
    const ValueRef scores = c.Product("s", q, k, true);
    const ValueRef low = c.t.Floats("low", {}, {-2.0f});
    const ValueRef filled = c.t.Op("SelectV2", "filled",
                                   kind == 0 ? std::vector<ValueRef>{mask, low, scores}
                                             : std::vector<ValueRef>{mask, scores, low});
    const ValueRef soft = c.t.Op("Softmax", "soft", {filled});
    const ValueRef weights =
        c.t.Op("SelectV2", "zeroed",
               {kind == 1 ? other : mask, soft, c.t.Floats("no", {}, {kind == 2 ? 0.5f : 0.0f})});
    c.Expect(false, c.Product("y", weights, v, false));
  }
}

TEST(FuseAttention, LeavesWhatIsNearlyOne) {
  const auto inputs = [](AttentionCase* c) {
    return std::array<ValueRef, 3>{c->In("q", {kOpenRows, 2, 5, 3}),
                                   c->In("k", {kOpenRows, 2, 7, 3}),
                                   c->In("v", {kOpenRows, 2, 7, 4})};
  };
  {
    AttentionCase c;  // the scores are an output too
    const auto [q, k, v] = inputs(&c);
    const ValueRef scores = c.Product("scores", q, k, true);
    c.t.Output(scores);
    c.Expect(false, c.Product("y", c.t.Op("Softmax", "soft", {scores}), v, false));
  }
  {
    AttentionCase c;  // a scale for each key
    const auto [q, k, v] = inputs(&c);
    const ValueRef scores = c.t.Op(
        "Mul", "s", {c.Product("scores", q, k, true), c.t.Const("each", Wavy(Shape({7}), 4))});
    c.Expect(false, c.Product("y", c.t.Op("Softmax", "soft", {scores}), v, false));
  }
  {
    AttentionCase c;  // the softmax weighs what is multiplied from the left
    const ValueRef q = c.In("q", {kOpenRows, 2, 5, 3}), k = c.In("k", {kOpenRows, 2, 7, 3}),
                   v = c.In("v", {kOpenRows, 2, 4, 5});
    const ValueRef soft = c.t.Op("Softmax", "soft", {c.Product("scores", q, k, true)});
    c.Expect(false, c.Product("y", v, soft, false));
  }
  {
    AttentionCase c;  // values along the queries
    const ValueRef q = c.In("q", {kOpenRows, 5, 2, 3}), k = c.In("k", {kOpenRows, 5, 2, 3}),
                   v = c.In("v", {kOpenRows, 5, 2, 4});
    const ValueRef soft = c.t.Op("Softmax", "soft", {c.Einsum("s", "BTNH,BSNH->BNTS", q, k)});
    c.Expect(false, c.Einsum("y", "BNTS,BTNH->BSNH", soft, v));
  }
  {
    AttentionCase c;  // softmax along the queries
    const ValueRef q = c.In("q", {kOpenRows, 5, 2, 3}), k = c.In("k", {kOpenRows, 5, 2, 3}),
                   v = c.In("v", {kOpenRows, 5, 2, 4});
    const ValueRef soft = c.t.Op("Softmax", "soft", {c.Einsum("s", "BTNH,BSNH->BNST", q, k)});
    const ValueRef y = c.Einsum("y", "BNST,BSNH->BTNH", soft, v);
    c.Expect(false, y);
  }
  {
    AttentionCase c;  // heads with a transposition of their own
    const ValueRef q = c.In("q", {kOpenRows, 2, 2, 3}), k = c.In("k", {kOpenRows, 2, 2, 3}),
                   v = c.In("v", {kOpenRows, 2, 2, 4});
    const ValueRef soft = c.t.Op("Softmax", "soft", {c.Einsum("s", "BTNH,BSNH->BTNS", q, k)});
    c.Expect(false, c.Einsum("y", "BTNS,BTNH->BSNH", soft, v));
  }
  {
    AttentionCase c;  // a mask that has more queries than the scores
    const ValueRef q = c.In("q", {kOpenRows, 2, 1, 3}), k = c.In("k", {kOpenRows, 2, 7, 3}),
                   v = c.In("v", {kOpenRows, 2, 7, 4});
    const ValueRef sum = c.t.Op(
        "Add", "sum", {c.Product("scores", q, k, true), c.t.Const("mask", Wavy(Shape({5, 7}), 9))});
    c.Expect(false, c.Product("y", c.t.Op("Softmax", "soft", {sum}), v, false));
  }
}

}  // namespace
}  // namespace floe
