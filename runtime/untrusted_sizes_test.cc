// Sizes and values that fit no kernel: of attributes, of inputs that inference cannot see, and of
// rows that a plan leaves open. Each must be an error, soon and without much memory. Where an
// answer is expected it is TensorFlow 2.21's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "base/budget.h"
#include "runtime/exec_context.h"
#include "runtime/run_op.h"
#include "runtime/test_graph.h"

namespace floe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kHuge = INT64_MAX;
constexpr int64_t kMany = int64_t{1} << 36;  // of nothing: a loop over them would take minutes

Tensor Empty(DType dtype, const Shape& shape) { return Tensor::Allocate(dtype, shape); }
Tensor Zeros(const Shape& shape) { return Floats(shape, std::vector<float>(shape.elements())); }

// The first output of a graph for these inputs, whose shapes a plan with open rows may not fit.
absl::StatusOr<Tensor> RunGraph(const TestGraph& g, const std::vector<Tensor>& inputs) {
  FLOE_ASSIGN_OR_RETURN(const auto compiled,
                        CompiledSignature::Compile(g.graph, g.signature, CompileOptions{}));
  std::vector<Shape> shapes;
  shapes.reserve(inputs.size());
  for (const Tensor& input : inputs) shapes.push_back(input.shape());
  FLOE_ASSIGN_OR_RETURN(const auto plan, compiled->Bind(shapes));
  ExecContext context;
  const int64_t rows = shapes[0].rank() == 0 ? 1 : shapes[0].dim(0);
  FLOE_RETURN_IF_ERROR(context.Prepare(plan, rows));
  for (size_t i = 0; i < inputs.size(); ++i)
    context.BindInput(static_cast<int>(i), inputs[i].data());
  FLOE_RETURN_IF_ERROR(context.Run());
  return Tensor::Copy(context.Output(0));
}
std::vector<float> FloatsOf(const absl::StatusOr<Tensor>& t) {
  EXPECT_TRUE(t.ok()) << t.status();
  return t.ok() ? std::vector<float>(t->as<float>(), t->as<float>() + t->elements())
                : std::vector<float>{};
}
std::string ErrorOf(const absl::StatusOr<Tensor>& t) { return std::string(t.status().message()); }

// x[rows, 2] through the nodes that `make` adds.
template <class Make>
absl::StatusOr<Tensor> OfRows(int64_t rows, const Make& make) {
  TestGraph g;
  g.Output(make(g, g.Input("x", DType::kFloat32, {Dim::Unknown(), 2})));
  std::vector<float> x(2 * rows);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  return RunGraph(g, {Floats({rows, 2}, x)});
}
// The same turned round: x[2, rows].
template <class Make>
absl::StatusOr<Tensor> OfColumns(int64_t rows, const Make& make) {
  return OfRows(rows, [&](TestGraph& g, ValueRef x) {
    return make(g, g.Op("Transpose", "t", {x, g.Ints("perm", {1, 0})}));
  });
}

TEST(OpenRows, PartsMustMakeTheWhole) {
  const auto parts = [](TestGraph& g, ValueRef x) {
    const ValueRef split = g.Op("SplitV", "split", {x, g.Ints("sizes", {-1, 3}), g.Int("a", 0)},
                                {{"num_split", int64_t{2}}});
    g.graph.mutable_node(split.node).num_outputs = 2;
    return split;
  };
  EXPECT_THAT(FloatsOf(OfRows(4, parts)), ElementsAre(0, 1));
  EXPECT_THAT(ErrorOf(OfRows(2, parts)), HasSubstr("the sizes exceed 2"));

  const auto elements = [](TestGraph& g, ValueRef x) {
    const ValueRef two = g.Op("Unpack", "two", {x}, {{"num", int64_t{2}}});
    g.graph.mutable_node(two.node).num_outputs = 2;
    return two;
  };
  EXPECT_THAT(FloatsOf(OfRows(2, elements)), ElementsAre(0, 1));
  EXPECT_THAT(ErrorOf(OfRows(3, elements)), HasSubstr("dimension 0 of [3,2] is not 2"));
}

TEST(OpenRows, VectorsAlongThemMustBeAsLong) {
  const auto bias = [](TestGraph& g, ValueRef x) {
    return g.Op("BiasAdd", "b", {x, g.Floats("bias", {3}, {10, 20, 30})});
  };
  EXPECT_THAT(FloatsOf(OfColumns(3, bias)), ElementsAre(10, 22, 34, 11, 23, 35));
  EXPECT_THAT(ErrorOf(OfColumns(5, bias)), HasSubstr("bias has 3 elements"));

  const auto select = [](TestGraph& g, ValueRef x) {
    const Tensor pick = Tensor::Vector<uint8_t>(DType::kBool, {1, 0, 1});
    return g.Op("Select", "s", {g.Const("pick", pick), x, g.Op("Neg", "n", {x})});
  };
  EXPECT_THAT(FloatsOf(OfRows(3, select)), ElementsAre(0, 1, -2, -3, 4, 5));
  EXPECT_THAT(ErrorOf(OfRows(5, select)), HasSubstr("condition of shape [3]"));

  const auto product = [](TestGraph& g, ValueRef x) {
    return g.Op("Einsum", "e", {x, g.Floats("w", {3, 1}, {1, 10, 100})},
                {{"equation", std::string("ij,jk->ik")}});
  };
  EXPECT_THAT(FloatsOf(OfColumns(3, product)), ElementsAre(420, 531));
  EXPECT_THAT(ErrorOf(OfColumns(5, product)), HasSubstr("elsewhere"));

  const auto norm = [](TestGraph& g, ValueRef x) {
    const std::vector<float> ones(3, 1);
    return g.Op("FusedBatchNormV3", "bn",
                {g.Op("Reshape", "image", {x, g.Ints("nhwc", {1, 1, 2, -1})}),
                 g.Floats("scale", {3}, ones), g.Floats("offset", {3}, ones),
                 g.Floats("mean", {3}, {0, 0, 0}), g.Floats("variance", {3}, ones)},
                {{"is_training", false}, {"epsilon", 0.f}});
  };
  EXPECT_THAT(FloatsOf(OfColumns(3, norm)), ElementsAre(1, 3, 5, 2, 4, 6));
  EXPECT_THAT(ErrorOf(OfColumns(5, norm)), HasSubstr("5 channels"));
}

// Sizes are known when the model is bound, places come with the request.
TEST(UnseenValues, SlicesStayInside) {
  TestGraph g;
  const ValueRef x = g.Input("x", DType::kFloat32, {4}), begin = g.Input("b", DType::kInt64, {1});
  g.Output(g.Op("Slice", "s", {x, begin, g.Const("size", Longs({1}, {1}))}));
  const Tensor values = Floats({4}, {0, 1, 2, 3});
  EXPECT_THAT(FloatsOf(RunGraph(g, {values, Longs({1}, {3})})), ElementsAre(3));
  for (const int64_t place : {int64_t{4}, int64_t{-1}, kHuge, INT64_MIN + 1})
    EXPECT_THAT(ErrorOf(RunGraph(g, {values, Longs({1}, {place})})),
                HasSubstr("leave dimension 0"));
}

TEST(UnseenValues, SpecificationsAreVectorsOfOneLength) {
  const Tensor x = Floats({2, 3}, {0, 1, 2, 3, 4, 5});
  const Tensor one = Ints({1}, {1}), two = Ints({1, 2}, {0, 0});
  EXPECT_THAT(Message(RunOp("StridedSlice", {x, two, one, one})), HasSubstr("expected rank 1"));
  EXPECT_THAT(Message(RunOp("StridedSlice", {x, one, Ints({2}, {1, 1}), one})),
              HasSubstr("differ in length"));
  EXPECT_THAT(Message(RunOp("Slice", {x, one, Ints({2}, {1, 1})})), HasSubstr("begin"));
  const Tensor many = Ints({1000}, std::vector<int32_t>(1000, 1));
  EXPECT_THAT(Message(RunOp("StridedSlice", {x, many, many, many})), HasSubstr("1000 entries"));
}

TEST(UnseenValues, StepsAndShiftsOfAnySize) {
  const Tensor x = Ints({5}, {0, 1, 2, 3, 4});
  const auto at = [](int64_t value) { return Longs({1}, {value}); };
  EXPECT_THAT(Values<int32_t>(RunOp("StridedSlice", {x, at(1), at(5), at(kHuge)})), ElementsAre(1));
  // By the definition; TensorFlow cuts shifts to 32 bits. 2^63 - 1 is 2 mod 5, 2^62 + 2 is 0 mod 3.
  EXPECT_THAT(Values<int32_t>(RunOp("Roll", {x, Longs({}, {kHuge}), Ints({}, {0})})),
              ElementsAre(3, 4, 0, 1, 2));
  const Tensor shifts = Longs({2}, {(int64_t{1} << 62) + 1, 1});
  EXPECT_THAT(
      Values<int32_t>(RunOp("Roll", {Ints({2, 3}, {0, 1, 2, 3, 4, 5}), shifts, Ints({2}, {1, 1})})),
      ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(UnseenValues, TensorsOfManyDims) {
  std::vector<int64_t> dims(100, 1);
  dims[70] = 2;
  std::vector<int32_t> perm(100);
  for (int i = 0; i < 100; ++i) perm[i] = 99 - i;
  const Tensor x = Floats(Shape(dims), {1, 2});
  EXPECT_THAT(Values<float>(RunOp("Transpose", {x, Ints({100}, perm)})), ElementsAre(1, 2));
  EXPECT_THAT(Values<float>(RunOp("Roll", {x, Ints({}, {1}), Ints({}, {70})})), ElementsAre(2, 1));
}

TEST(Shapes, OfInputsThatBelongTogether) {
  const Tensor rows = Zeros({2, 3});
  EXPECT_THAT(Message(RunOp("DynamicStitch", {Ints({3}, {0, 1, 2}), rows})),
              HasSubstr("no prefix"));
  EXPECT_THAT(Message(RunOp("DynamicStitch", {Ints({1}, {0}), Ints({1}, {0}), rows})),
              HasSubstr("no indices and as many data"));
  EXPECT_FALSE(
      RunOp("DynamicStitch", {Ints({1}, {0}), Ints({1}, {1}), Zeros({1}), Strings({"a"})}).ok());
  EXPECT_THAT(Message(RunOp("GatherNd", {rows, Ints({4, 1}, {0, 0, 0, 0})},
                            With("batch_dims", int64_t{1}))),
              HasSubstr("batch dimensions"));
  EXPECT_FALSE(RunOp("GatherNd", {rows, Ints({2, 1}, {0, 0})}, With("batch_dims", kHuge)).ok());
  EXPECT_THAT(Message(RunOp("MatrixSetDiag", {Zeros({2, 2}), Floats({}, {1})})),
              HasSubstr("do not fit"));
  const Tensor image = Zeros({1, 1, 1, 3}), three = Zeros({3});
  for (int k = 1; k < 5; ++k) {
    std::vector<Tensor> inputs = {image, three, three, three, three};
    inputs[k] = Zeros({1});
    EXPECT_FALSE(RunOp("FusedBatchNormV3", inputs, With("is_training", false)).ok()) << k;
  }
  EXPECT_FALSE(RunOp("FusedBatchNormV3", {image, three, three, three, three},
                     With("data_format", std::string()))
                   .ok());
}

TEST(Shapes, OfValuesThatFill) {
  const Tensor none = Strings({}), shape = Ints({1}, {2});
  EXPECT_THAT(Message(RunOp("Fill", {shape, none})), HasSubstr("expected a scalar"));
  EXPECT_THAT(Values<float>(RunOp("Fill", {shape, Floats({1}, {3})})), ElementsAre(3, 3));
  EXPECT_FALSE(RunOp("PadV2", {Strings({"a"}), Ints({1, 2}, {1, 1}), none}).ok());
  EXPECT_FALSE(RunOp("OneHot", {Ints({1}, {0}), Ints({}, {2}), none, none}).ok());
  EXPECT_FALSE(RunOp("SparseToDense", {Ints({1}, {0}), shape, Strings({"a"}), none}).ok());
}

TEST(Windows, NumbersBeyond32BitsAreRefused) {
  using Numbers = std::vector<int64_t>;
  const Tensor image = Zeros({1, 3, 3, 2}), filter = Zeros({2, 2, 2, 1});
  const auto conv = [&](const std::string& name, const Numbers& values, const char* padding) {
    return Message(RunOp("Conv2D", {image, filter},
                         WithAll({{"strides", Numbers{1, 1, 1, 1}},
                                  {"padding", std::string(padding)},
                                  {name, values}})));
  };
  EXPECT_THAT(conv("strides", {1, kHuge, 1, 1}, "SAME"), HasSubstr("strides holds"));
  EXPECT_THAT(conv("dilations", {1, kHuge, 1, 1}, "SAME"), HasSubstr("dilations holds"));
  EXPECT_THAT(conv("explicit_paddings", {0, 0, kHuge, kHuge, 0, 0, 0, 0}, "EXPLICIT"),
              HasSubstr("explicit_paddings holds"));
  const auto pool = [&](const Numbers& ksize, const std::string& padding) {
    return RunOp(
        "AvgPool", {Floats({1, 3, 3, 1}, {0, 1, 2, 3, 4, 5, 6, 7, 8})},
        WithAll({{"ksize", ksize}, {"strides", Numbers{1, 1, 1, 1}}, {"padding", padding}}));
  };
  EXPECT_THAT(Message(pool({1, kHuge, 1, 1}, "SAME")), HasSubstr("ksize holds"));
  EXPECT_THAT(Values<float>(pool({1, INT32_MAX, INT32_MAX, 1}, "SAME")), testing::Each(4.f));
}

// 2^31 lines and columns of padding would be 2^64 bytes of zeros, which are 0 in 64 bits.
TEST(Windows, PaddingIsNotWrittenIntoTooLittleMemory) {
  using Numbers = std::vector<int64_t>;
  const int64_t pad = (int64_t{1} << 31) - 2, step = int64_t{1} << 30;
  Budget budget({.max_value_bytes = 1 << 20, .max_bytes = 1 << 24});
  const BudgetScope scope(&budget);
  const auto out = RunOp("Conv2D", {Zeros({1, 2, 2, 4}), Zeros({2, 2, 4, 1})},
                         WithAll({{"strides", Numbers{1, step, step, 1}},
                                  {"padding", std::string("EXPLICIT")},
                                  {"explicit_paddings", Numbers{0, 0, pad, 0, pad, 0, 0, 0}}}));
  EXPECT_FALSE(out.ok());
}

TEST(Nothing, HoweverManyTimes) {
  using Numbers = std::vector<int64_t>;
  const auto doubles = [](const Shape& shape) { return Empty(DType::kFloat64, shape); };
  const auto empty = [](const absl::StatusOr<std::vector<Tensor>>& out) {
    return out.ok() ? out->at(0).elements() == 0 : false;
  };
  const Tensor none = Empty(DType::kFloat32, {kMany, 0});
  const Attrs windows = WithAll({{"ksize", Numbers{1, 1, 1, 1}},
                                 {"strides", Numbers{1, 1, 1, 1}},
                                 {"padding", std::string("SAME")}});
  EXPECT_TRUE(empty(RunOp("Conv2D", {doubles({kMany, 0, 1, 1}), doubles({1, 1, 1, 1})}, windows)));
  EXPECT_TRUE(empty(RunOp("MaxPool", {Empty(DType::kFloat32, {kMany, 1, 1, 0})}, windows)));
  EXPECT_TRUE(empty(RunOp("BatchMatMul", {doubles({kMany, 0, 0}), doubles({kMany, 0, 0})})));
  EXPECT_TRUE(empty(RunOp("BatchMatMul", {Empty(DType::kFloat32, {kMany, 0, 0}),
                                          Empty(DType::kFloat32, {kMany, 0, 0})})));
  EXPECT_TRUE(empty(RunOp("MatrixInverse", {doubles({kMany, 0, 0})})));
  EXPECT_TRUE(empty(RunOp("MatrixSetDiag", {Empty(DType::kFloat32, {kMany, 0, 0}), none})));
  EXPECT_TRUE(empty(RunOp("MatrixDiagPart", {Empty(DType::kFloat32, {kMany, 0, 5})})));
  EXPECT_TRUE(empty(
      RunOp("GRUBlockCell", {none, none, Zeros({0, 0}), Zeros({0, 0}), Zeros({0}), Zeros({0})})));
  EXPECT_TRUE(empty(RunOp("SpaceToBatchND", {Empty(DType::kFloat32, {0, 1}), Longs({1}, {kMany}),
                                             Longs({1, 2}, {0, kMany - 1})})));
  EXPECT_FALSE(
      RunOp("SparseToDense",
            {Empty(DType::kInt32, {kMany, 0}), Ints({0}, {}), Floats({}, {1}), Floats({}, {0})},
            With("validate_indices", false))
          .ok());
  EXPECT_TRUE(empty(RunOp("ScatterNd", {Empty(DType::kInt32, {kMany, 0}), none, Ints({1}, {0})})));
  const Tensor sets = Empty(DType::kInt32, {kMany, 0});
  EXPECT_TRUE(empty(RunOp("DenseToDenseSetOperation", {sets, sets},
                          With("set_operation", std::string("union")))));
  EXPECT_EQ(RunOp("RaggedTensorToVariant", {none},
                  WithAll({{"RAGGED_RANK", int64_t{0}}, {"batched_input", true}}))
                .status()
                .code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(Hashing, NanIsEqualToNothingAndCostsNoMoreThanNumbers) {
  const float nan = std::nanf("");
  const auto few = RunOp("Unique", {Floats({4}, {nan, 1, nan, 1})});
  EXPECT_THAT(Values<float>(few), ElementsAre(testing::IsNan(), 1, testing::IsNan()));
  EXPECT_THAT(Values<int32_t>(few, 1), ElementsAre(0, 1, 2, 1));
  const auto left = RunOp("ListDiff", {Floats({3}, {nan, 1, 2}), Floats({2}, {nan, 1})});
  EXPECT_THAT(Values<int32_t>(left, 1), ElementsAre(0, 2));
  // Compared with each other these would be 10^11 pairs.
  const std::vector<float> many(400'000, nan);
  const Tensor x = Floats({400'000}, many);
  EXPECT_EQ(Values<float>(RunOp("Unique", {x})).size(), many.size());
  EXPECT_EQ(Values<float>(RunOp("ListDiff", {x, x})).size(), many.size());
}

// Each makes many bytes of few.
TEST(TextThatGrows, StopsAtTheMemoryLimit) {
  Budget budget({.max_value_bytes = 1 << 20, .max_bytes = 1 << 24});
  const BudgetScope scope(&budget);
  const auto code = [](const absl::StatusOr<std::vector<Tensor>>& out) {
    return out.status().code();
  };
  const std::vector<int32_t> zeros(1000);
  const std::string kilobyte(1000, 'x');
  EXPECT_EQ(code(RunOp("AsString", {Ints({1000}, zeros)}, With("width", int64_t{60'000}))),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code(RunOp("StaticRegexReplace", {Strings({kilobyte})},
                       WithAll({{"pattern", std::string(".")}, {"rewrite", kilobyte + kilobyte}}))),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code(RunOp("ReduceJoin", {Strings(std::vector<std::string>(2000)), Ints({1}, {0})},
                       With("separator", kilobyte))),
            absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Values<std::string>(
                  RunOp("StaticRegexReplace", {Strings({"aaa"})},
                        WithAll({{"pattern", std::string()}, {"rewrite", std::string("-")}}))),
              ElementsAre("-a-a-a-"));
}

}  // namespace
}  // namespace floe
