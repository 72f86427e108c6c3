// What may be batched is proved, or refused with the node that stands in the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "runtime/plan.h"
#include "runtime/test_graph.h"

namespace floe {
namespace {

using testing::HasSubstr;

struct BatchCase {
  const char* name;
  TestGraph graph;
  const char* why;  // part of the reason; empty: batchable
};

// Adds a case: a graph of one input, float32 [rows, 6], and one output.
struct AddCase {
  std::vector<BatchCase>* cases;
  template <class Build>
  void operator()(const char* name, const char* why, const Build& build) const {
    TestGraph t;
    const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), 6});
    t.Output(build(t, x));
    cases->push_back({name, std::move(t), why});
  }
};

ValueRef RowCount(TestGraph& t, ValueRef x) {
  return t.Op("StridedSlice", "n",
              {t.Op("Shape", "sh", {x}, {{"out_type", DType::kInt32}}), t.Ints("b", {0}),
               t.Ints("e", {1}), t.Ints("st", {1})},
              {{"shrink_axis_mask", int64_t{1}}});
}

void AddMoves(const AddCase& add) {
  add("softmax over columns", "",
      [](TestGraph& t, ValueRef x) { return t.Op("Softmax", "s", {x}); });
  add("mean over columns", "", [](TestGraph& t, ValueRef x) {
    return t.Op("Mean", "m", {x, t.Int("a", 1)}, {{"keep_dims", true}});
  });
  add("mean over the batch", "'m' (Mean)", [](TestGraph& t, ValueRef x) {
    return t.Op("Sub", "d", {x, t.Op("Mean", "m", {x, t.Int("a", 0)}, {{"keep_dims", true}})});
  });
  add("rows turned into columns", "'t' (Transpose)", [](TestGraph& t, ValueRef x) {
    return t.Op("Transpose", "t", {x, t.Ints("p", {1, 0})});
  });
  add("flattened and restored", "", [](TestGraph& t, ValueRef x) {
    return t.Op("Reshape", "back",
                {t.Op("Reshape", "flat", {x, t.Ints("s1", {-1, 2})}), t.Ints("s2", {-1, 6})});
  });
  add("restored by the shape of the input", "", [](TestGraph& t, ValueRef x) {
    return t.Op("Reshape", "r",
                {x, t.Op("Pack", "p", {RowCount(t, x), t.Int("two", 2), t.Int("three", 3)},
                         {{"axis", int64_t{0}}})});
  });
  add("divided by the number of rows", "rows", [](TestGraph& t, ValueRef x) {
    const ValueRef n = t.Op("Cast", "n", {t.Op("Size", "size", {x}, {{"out_type", DType::kInt32}})},
                            {{"SrcT", DType::kInt32}, {"DstT", DType::kFloat32}});
    return t.Op("RealDiv", "d", {x, n});
  });
  add("a constant row per position", "'y' (Add)", [](TestGraph& t, ValueRef x) {
    return t.Op("Add", "y", {x, t.Floats("c", {2, 6}, std::vector<float>(12, 1))});
  });
  add("an output without rows", "has no rows", [](TestGraph& t, ValueRef) {
    return t.Floats("c", {2}, {1, 2});
  });
  add("softmax over the batch", "'s' (Softmax)", [](TestGraph& t, ValueRef x) {
    const ValueRef turned = t.Op("Transpose", "t", {x, t.Ints("p", {1, 0})});
    return t.Op("Transpose", "back", {t.Op("Softmax", "s", {turned}), t.Ints("q", {1, 0})});
  });
  add("the best of the batch", "'k' (TopKV2)", [](TestGraph& t, ValueRef x) {
    const ValueRef turned = t.Op("Transpose", "t", {x, t.Ints("p", {1, 0})});
    return t.Op("Transpose", "back",
                {t.Op("TopKV2", "k", {turned, t.Int("two", 2)}), t.Ints("q", {1, 0})});
  });
  add("diagonals that the graph does not name", "'d' (MatrixDiagV3)", [](TestGraph& t, ValueRef x) {
    return t.Op(
        "MatrixDiagV3", "d",
        {x, t.Ints("k", {}), t.Int("rows", -1), t.Int("cols", -1), t.Floats("pad", {}, {0})});
  });
}

// What the number of rows decides is known before a run, but is not the same for every batch.
void AddRowCounts(const AddCase& add) {
  const std::vector<float> table(24, 1);
  add("the row of a table that the batch names", "'row' (StridedSlice)",
      [&](TestGraph& t, ValueRef x) {
        const ValueRef n = t.Op("Pack", "at", {RowCount(t, x)}, {{"axis", int64_t{0}}});
        const ValueRef row =
            t.Op("StridedSlice", "row", {t.Floats("table", {4, 6}, table), n, n, t.Ints("s1", {1})},
                 {{"shrink_axis_mask", int64_t{1}}});
        return t.Op("Mul", "y", {x, row});
      });
  add("columns rolled by the number of rows", "'roll' (Roll)", [](TestGraph& t, ValueRef x) {
    return t.Op("Roll", "roll", {x, RowCount(t, x), t.Int("axis", 1)});
  });
  add("the element of a list that the batch names", "'sh' (Shape)", [&](TestGraph& t, ValueRef x) {
    const ValueRef shape = t.Ints("shape", {6});
    const ValueRef list =
        t.Op("TensorListFromTensor", "list", {t.Floats("table", {4, 6}, table), shape});
    return t.Op("Mul", "y",
                {x, t.Op("TensorListGetItem", "item", {list, RowCount(t, x), shape},
                         {{"element_dtype", DType::kFloat32}})});
  });
  add("a list as long as the batch", "'length' (TensorListLength)", [](TestGraph& t, ValueRef x) {
    const ValueRef list = t.Op("TensorListReserve", "list", {t.Ints("shape", {6}), RowCount(t, x)},
                               {{"element_dtype", DType::kFloat32}});
    const ValueRef length = t.Op("TensorListLength", "length", {list});
    return t.Op("Mul", "y", {x, t.Op("Cast", "factor", {length}, {{"DstT", DType::kFloat32}})});
  });
  add("a list whose elements are batches", "", [](TestGraph& t, ValueRef x) {
    const ValueRef shape =
        t.Op("Pack", "shape", {RowCount(t, x), t.Int("six", 6)}, {{"axis", int64_t{0}}});
    const ValueRef list = t.Op("TensorListReserve", "list", {shape, t.Int("two", 2)},
                               {{"element_dtype", DType::kFloat32}});
    const ValueRef set = t.Op("TensorListSetItem", "set", {list, t.Int("one", 1), x},
                              {{"element_dtype", DType::kFloat32}});
    return t.Op("TensorListGetItem", "item", {set, t.Int("one again", 1), shape},
                {{"element_dtype", DType::kFloat32}});
  });
}

std::vector<BatchCase> BatchCases() {
  std::vector<BatchCase> cases;
  const AddCase add{&cases};
  AddMoves(add);
  AddRowCounts(add);
  add("the places of the batch", "'w' (Where)", [](TestGraph& t, ValueRef x) {
    return t.Op("Where", "w", {x}, {{"T", DType::kFloat32}});
  });
  add("batch norm in training", "'bn' (FusedBatchNormV3)", [](TestGraph& t, ValueRef x) {
    const ValueRef image = t.Op("Reshape", "image", {x, t.Ints("nhwc", {-1, 1, 1, 6})});
    const std::vector<float> ones(6, 1);
    return t.Op("FusedBatchNormV3", "bn",
                {image, t.Floats("scale", {6}, ones), t.Floats("offset", {6}, ones),
                 t.Floats("mean", {0}, {}), t.Floats("variance", {0}, {})},
                {{"is_training", true}});
  });
  add("scaled by a scalar input", "", [](TestGraph& t, ValueRef x) {
    return t.Op("Mul", "y", {x, t.Input("scale", DType::kFloat32, SymShape())});
  });
  add("[time, batch, channel], summed over time", "'over time' (Sum)", [](TestGraph& t, ValueRef) {
    const ValueRef steps = t.Input("steps", DType::kFloat32, {Dim::Unknown(), Dim::Unknown(), 3});
    return t.Op("Sum", "over time", {steps, t.Int("axis", 0)});
  });
  // What comes out has no dimension that rules could look at.
  add("branches of different ranks", "'branch' (If)", [](TestGraph& t, ValueRef x) {
    TestGraph flat, whole;
    const SymShape any = SymShape::UnknownRank();
    flat.Output(flat.Op("Reshape", "flat",
                        {flat.Input("a", DType::kFloat32, any), flat.Ints("shape", {-1})}));
    whole.Output(whole.Op("Neg", "whole", {whole.Input("a", DType::kFloat32, any)}));
    const ValueRef branch = t.Op("If", "branch", {t.Input("p", DType::kBool, {}), x});
    t.graph.mutable_node(branch.node).subgraphs = {std::make_shared<const Graph>(flat.graph),
                                                   std::make_shared<const Graph>(whole.graph)};
    const ValueRef places = t.Op("Cast", "places", {x}, {{"DstT", DType::kInt32}});
    return t.Op("GatherNd", "g",
                {branch, t.Op("Reshape", "pairs", {places, t.Ints("s", {-1, 6, 1})})},
                {{"batch_dims", int64_t{1}}});
  });
  return cases;
}

TEST(Batching, IsProvedOrRefusedWithTheNode) {
  for (const BatchCase& c : BatchCases()) {
    const auto compiled = c.graph.Compile();
    ASSERT_NE(compiled, nullptr) << c.name;
    std::vector<Shape> shapes;
    for (const TensorType& type : c.graph.InputTypes()) {
      Shape shape;
      for (const Dim& dim : type.shape.dims()) shape.push_back(dim.known() ? dim.size() : 2);
      shapes.push_back(shape);
    }
    const auto plan = compiled->Bind(shapes);
    ASSERT_TRUE(plan.ok()) << c.name << ": " << plan.status();
    if (*c.why == 0) {
      EXPECT_EQ((*plan)->why_not_batchable(), "") << c.name;
    } else {
      EXPECT_FALSE((*plan)->batchable()) << c.name;
      EXPECT_THAT((*plan)->why_not_batchable(), HasSubstr(c.why)) << c.name;
    }
  }
}

}  // namespace
}  // namespace floe
