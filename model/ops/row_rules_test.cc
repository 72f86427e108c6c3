// What may be batched: the marks that the row rules give, op by op.
#pragma GCC diagnostic ignored "-Wfree-nonheap-object"  // g++ 12 takes inlined dims for heap memory
#include <gtest/gtest.h>

#include "model/op_def.h"
#include "model/ops/recurrent.h"
#include "model/ops/recurrent_pair.h"

namespace floe {
namespace {

constexpr RowMark kC = RowMark::kConstant, kR = RowMark::kRows, kM = RowMark::kMixed,
                  kU = RowMark::kUnknown;
const Dim kRows = Dim::Rows();
using Dims = std::vector<int32_t>;

struct In {
  RowMark mark;
  SymShape shape;
  DType dtype = DType::kFloat32;
  Tensor constant;
  Tensor per_row;
};

// A constant vector, or scalar, of int32.
In Known(const Dims& values) {
  return {kC,
          SymShape({Dim(static_cast<int64_t>(values.size()))}),
          DType::kInt32,
          Tensor::Vector(DType::kInt32, values),
          {}};
}
In KnownScalar(int32_t value) {
  return {kC, SymShape(), DType::kInt32, Tensor::Scalar(DType::kInt32, value), {}};
}
// base + per_row * rows.
In Affine(const Dims& base, const Dims& per_row) {
  In in = Known(base);
  in.mark = kM;
  in.per_row = Tensor::Vector(DType::kInt32, per_row);
  return in;
}
In Rows(SymShape shape, DType dtype = DType::kFloat32) {
  return {kR, std::move(shape), dtype, {}, {}};
}
In Weight(SymShape shape, DType dtype = DType::kFloat32) {
  return {kC, std::move(shape), dtype, {}, {}};
}

Attrs With(const std::string& name, AttrValue value) {
  Attrs attrs;
  attrs.Set(name, std::move(value));
  return attrs;
}

struct Verdict {
  RowMark mark;
  std::string shape;
};

Verdict Mark(const std::string& op, const std::vector<In>& inputs, const Attrs& attrs = {}) {
  Node node;
  node.name = op;
  node.op = FindOp(op);
  node.attrs = attrs;
  EXPECT_NE(node.op, nullptr) << op;
  std::vector<ValueInfo> infos;
  std::vector<RowMark> marks;
  for (const In& in : inputs) {
    infos.push_back({{in.dtype, in.shape}, in.constant, in.per_row});
    marks.push_back(in.mark);
  }
  auto types = node.op->infer({node, infos});
  EXPECT_TRUE(types.ok()) << op << ": " << types.status();
  if (!types.ok() || types->empty()) return {kU, ""};
  return {node.op->rows({node, marks, infos, *types}), types->front().shape.ToString()};
}

#define EXPECT_MARK(verdict, want_mark, want_shape)                                          \
  do {                                                                                       \
    const Verdict floe_verdict = (verdict);                                                  \
    EXPECT_EQ(static_cast<int>(floe_verdict.mark), static_cast<int>(want_mark)) << #verdict; \
    EXPECT_EQ(floe_verdict.shape, want_shape) << #verdict;                                   \
  } while (false)

const SymShape kX = {Dim::Rows(), 4};
const SymShape kImage = {Dim::Rows(), 8, 6, 3};

TEST(RowRules, Elementwise) {
  EXPECT_MARK(Mark("Relu", {Rows(kX)}), kR, "[rows,4]");
  EXPECT_MARK(Mark("Add", {Rows(kX), Weight({4})}), kR, "[rows,4]");
  EXPECT_MARK(Mark("Add", {Rows(kX), Weight({1, 4})}), kR, "[rows,4]");
  EXPECT_MARK(Mark("Mul", {Rows(kX), Rows({Dim::Rows(), 1})}), kR, "[rows,4]");
  EXPECT_MARK(Mark("Mul", {Weight({4}), Weight({4})}), kC, "[4]");
  EXPECT_MARK(Mark("Add", {Rows(kX), {kM, {}, DType::kFloat32, {}, {}}}), kM, "[rows,4]");
  EXPECT_MARK(Mark("Add", {Rows({kRows}), Rows({kRows, 1})}), kM, "[rows,rows]");
  EXPECT_MARK(Mark("BiasAdd", {Rows(kX), Weight({4})}), kR, "[rows,4]");
  EXPECT_MARK(Mark("SelectV2", {Rows({kRows, 1}, DType::kBool), Rows(kX), Weight({})}), kR,
              "[rows,4]");
  EXPECT_MARK(Mark("Select", {Rows({kRows}, DType::kBool), Rows(kX), Rows(kX)}), kR, "[rows,4]");
  EXPECT_MARK(
      Mark("Select", {Rows({kRows}, DType::kBool), Rows(kX), {kM, kX, DType::kFloat32, {}, {}}}),
      kM, "[rows,4]");
  EXPECT_MARK(Mark("Cast", {Rows(kX)}, With("DstT", DType::kInt32)), kR, "[rows,4]");
  EXPECT_MARK(Mark("Identity", {{kM, kX, DType::kFloat32, {}, {}}}), kM, "[rows,4]");
}

TEST(RowRules, SoftmaxAndReductions) {
  EXPECT_MARK(Mark("Softmax", {Rows(kX)}), kR, "[rows,4]");
  EXPECT_MARK(Mark("Softmax", {Rows({kRows})}), kM, "[rows]");
  EXPECT_MARK(Mark("Mean", {Rows(kImage), Known({1, 2})}), kR, "[rows,3]");
  EXPECT_MARK(Mark("Mean", {Rows(kImage), Known({-1})}, With("keep_dims", true)), kR,
              "[rows,8,6,1]");
  EXPECT_MARK(Mark("Mean", {Rows(kImage), Known({0})}), kM, "[8,6,3]");
  EXPECT_MARK(Mark("Sum", {Rows(kX), Known({-2})}), kM, "[4]");
  EXPECT_MARK(Mark("Sum", {Rows(kX), Weight({1}, DType::kInt32)}), kM, "<unknown rank>");
  EXPECT_MARK(Mark("Max", {Weight({3, 4}), Known({0})}), kC, "[4]");
  EXPECT_MARK(Mark("ArgMax", {Rows(kX), KnownScalar(1)}), kR, "[rows]");
  EXPECT_MARK(Mark("ArgMax", {Rows(kX), KnownScalar(0)}), kM, "[4]");
}

TEST(RowRules, Reshapes) {
  EXPECT_MARK(Mark("Reshape", {Rows(kImage), Known({-1, 144})}), kR, "[rows,144]");
  EXPECT_MARK(Mark("Reshape", {Rows(kImage), Known({-1, 6, 3})}), kR, "[8*rows,6,3]");
  EXPECT_MARK(Mark("Reshape", {Rows(kImage), Affine({0, 144}, {1, 0})}), kR, "[rows,144]");
  EXPECT_MARK(Mark("Reshape", {Rows({Dim::Rows(8), 3}), Affine({0, 8, 3}, {1, 0, 0})}), kR,
              "[rows,8,3]");
  EXPECT_MARK(Mark("Reshape", {Rows(kX), Known({4, -1})}), kM, "[4,rows]");
  EXPECT_MARK(Mark("Reshape", {Rows(kX), Known({-1})}), kR, "[4*rows]");
  EXPECT_MARK(Mark("Reshape", {Rows(kX), Known({2, -1, 3})}), kM, "[2,?,3]");
  EXPECT_MARK(Mark("Reshape", {Rows(kX), Known({1, 4})}), kM, "[?,?]");  // fits one row only
  EXPECT_MARK(Mark("Reshape", {Rows({kRows, 0}), Known({-1, 0})}), kR, "[rows,0]");
  EXPECT_MARK(Mark("Reshape", {Rows({kRows, 0, 2}), Known({-1, 0})}), kR, "[2*rows,0]");
  EXPECT_MARK(Mark("Reshape", {Rows({kRows, 0, 2}), Known({-1, 0, 3})}), kM, "[?,0,3]");
  EXPECT_MARK(Mark("Reshape", {Weight({3, 0, 4}), Known({0, -1})}), kC, "[0,12]");
  EXPECT_MARK(Mark("Reshape", {Weight({2, 6}), Known({-1, 4})}), kC, "[3,4]");
  EXPECT_MARK(Mark("ExpandDims", {Rows(kX), KnownScalar(-1)}), kR, "[rows,4,1]");
  EXPECT_MARK(Mark("ExpandDims", {Rows(kX), KnownScalar(0)}), kM, "[1,rows,4]");
  EXPECT_MARK(Mark("Squeeze", {Rows({kRows, 1, 4})}, With("squeeze_dims", std::vector<int64_t>{1})),
              kR, "[rows,4]");
  EXPECT_MARK(Mark("Squeeze", {Rows({kRows, 1, 4})}), kM,
              "<unknown rank>");  // a single row would go too
  EXPECT_MARK(Mark("Squeeze", {Rows({kRows, 4})}, With("squeeze_dims", std::vector<int64_t>{0})),
              kM, "<unknown rank>");
  EXPECT_MARK(Mark("Shape", {Rows(kX)}), kM, "[2]");
  EXPECT_MARK(Mark("Shape", {Weight({3, 4})}), kC, "[2]");
  EXPECT_MARK(Mark("Size", {Rows(kX)}), kM, "[]");
  EXPECT_MARK(Mark("Rank", {Rows(kX)}), kC, "[]");
  EXPECT_MARK(Mark("BroadcastTo", {Weight({4}), Affine({0, 4}, {1, 0})}), kR, "[rows,4]");
  EXPECT_MARK(Mark("BroadcastTo", {Rows({kRows, 1}), Affine({0, 4}, {1, 0})}), kR, "[rows,4]");
}

TEST(RowRules, Slices) {
  const auto slice = [](const In& begin, const In& end, const Dims& strides, int begin_mask,
                        int end_mask, int shrink = 0, int new_axis = 0) {
    Attrs attrs;
    attrs.Set("begin_mask", int64_t{begin_mask});
    attrs.Set("end_mask", int64_t{end_mask});
    attrs.Set("shrink_axis_mask", int64_t{shrink});
    attrs.Set("new_axis_mask", int64_t{new_axis});
    return Mark("StridedSlice", {Rows(kImage), begin, end, Known(strides)}, attrs);
  };
  EXPECT_MARK(slice(Known({0, 1}), Known({0, 3}), {1, 1}, 1, 1), kR, "[rows,2,6,3]");
  EXPECT_MARK(slice(Known({0, -1}), Known({0, 0}), {1, 1}, 1, 1, 2), kR, "[rows,6,3]");
  EXPECT_MARK(slice(Known({0}), Affine({0}, {1}), {1}, 0, 0), kR, "[rows,8,6,3]");  // x[0:batch]
  EXPECT_MARK(slice(Known({0}), Known({1}), {1}, 0, 0, 1), kM, "[8,6,3]");          // x[0]
  EXPECT_MARK(slice(Known({0}), Known({2}), {1}, 0, 0), kM,
              "[?,8,6,3]");  // x[:2] of few rows is shorter
  EXPECT_MARK(slice(Known({1}), Known({0}), {1}, 0, 1), kM, "[?,8,6,3]");      // x[1:]
  EXPECT_MARK(slice(Known({0}), Known({0}), {-1}, 1, 1), kM, "[rows,8,6,3]");  // x[::-1]
  EXPECT_MARK(slice(Known({0}), Known({0}), {2}, 1, 1), kM, "[?,8,6,3]");      // x[::2]
  EXPECT_MARK(slice(Known({0}), Known({0}), {1}, 0, 0, 0, 1), kM, "[1,rows,8,6,3]");
  EXPECT_MARK(slice(Affine({0, 0}, {0, 1}), Known({0, 0}), {1, 1}, 1, 3), kM, "[rows,?,6,3]");
  EXPECT_MARK(Mark("Slice", {Rows(kX), Known({0, 1}), Known({-1, 2})}), kR, "[rows,2]");
  EXPECT_MARK(Mark("Slice", {Rows(kX), Known({0, 1}), Affine({0, 2}, {1, 0})}), kR, "[rows,2]");
  EXPECT_MARK(Mark("Slice", {Rows(kX), Known({1, 0}), Known({1, 4})}), kM, "[1,4]");
  EXPECT_MARK(Mark("Split", {KnownScalar(1), Rows(kX)}, With("num_split", int64_t{2})), kR,
              "[rows,2]");
  EXPECT_MARK(Mark("Split", {KnownScalar(0), Rows(kX)}, With("num_split", int64_t{2})), kM,
              "[?,4]");
  EXPECT_MARK(
      Mark("SplitV", {Rows(kX), Known({1, 3}), KnownScalar(-1)}, With("num_split", int64_t{2})), kR,
      "[rows,1]");
  EXPECT_MARK(Mark("Unpack", {Rows(kX)},
                   [] {
                     Attrs a = With("num", int64_t{4});
                     a.Set("axis", int64_t{1});
                     return a;
                   }()),
              kR, "[rows]");
}

TEST(RowRules, Joins) {
  EXPECT_MARK(Mark("Pack", {Rows(kX), Rows(kX)}, With("axis", int64_t{1})), kR, "[rows,2,4]");
  EXPECT_MARK(Mark("Pack", {Rows(kX), Rows(kX)}), kM, "[2,rows,4]");
  EXPECT_MARK(Mark("Pack", {Rows(kX), Rows(kX)}, With("axis", int64_t{-3})), kM, "[2,rows,4]");
  EXPECT_MARK(Mark("ConcatV2", {Rows(kX), Rows({kRows, 2}), KnownScalar(1)}), kR, "[rows,6]");
  EXPECT_MARK(Mark("ConcatV2", {Rows(kX), Rows(kX), KnownScalar(0)}), kM, "[2*rows,4]");
  EXPECT_MARK(Mark("ConcatV2", {Rows(kX), Weight({kRows, 2}), KnownScalar(1)}), kM, "[rows,6]");
  EXPECT_MARK(Mark("ConcatV2", {Weight({2, 4}), Weight({1, 4}), KnownScalar(0)}), kC, "[3,4]");
  EXPECT_MARK(Mark("Transpose", {Rows(kImage), Known({0, 3, 1, 2})}), kR, "[rows,3,8,6]");
  EXPECT_MARK(Mark("Transpose", {Rows(kX), Known({1, 0})}), kM, "[4,rows]");
  EXPECT_MARK(Mark("Tile", {Rows(kX), Known({1, 3})}), kR, "[rows,12]");
  EXPECT_MARK(Mark("Tile", {Rows(kX), Known({2, 1})}), kM, "[2*rows,4]");
  EXPECT_MARK(Mark("Tile", {Weight({1, 4}), Affine({0, 1}, {1, 0})}), kR, "[rows,4]");
  EXPECT_MARK(Mark("Pad", {Rows(kX), Known({0, 0, 1, 2})}), kR, "[rows,7]");
  EXPECT_MARK(Mark("Pad", {Rows(kX), Known({0, 1, 0, 0})}), kM, "[1+rows,4]");
  EXPECT_MARK(Mark("GatherV2", {Weight({100, 7}), Rows({kRows, 5}, DType::kInt32), KnownScalar(0)}),
              kR, "[rows,5,7]");
  EXPECT_MARK(Mark("GatherV2", {Rows(kX), Known({1, 0}), KnownScalar(1)}), kR, "[rows,2]");
  EXPECT_MARK(Mark("GatherV2", {Rows(kX), Known({0, 0}), KnownScalar(0)}), kM, "[2,4]");
  EXPECT_MARK(Mark("GatherV2", {Rows(kX), Rows({kRows}, DType::kInt32), KnownScalar(0)}), kM,
              "[rows,4]");
  EXPECT_MARK(Mark("GatherV2", {Rows(kX), Rows({kRows, 2}, DType::kInt32), KnownScalar(1)},
                   With("batch_dims", int64_t{1})),
              kR, "[rows,2]");
}

TEST(RowRules, Recurrent) {
  ops::RecurrentSpec spec;
  spec.cell = ops::RecurrentCell::kSimple;
  spec.gates = {{ops::RecurrentFunction::kTanh, 1, 0}};
  spec.units = 3;
  spec.sequence = true;
  Attrs attrs;
  spec.ToAttrs(&attrs);
  const In x = Rows({kRows, 7, 4}), w = Weight({4, 3}), r = Weight({3, 3}), b = Weight({3});
  const auto mark = [&](const In& sequence, const In& h) {
    return Mark("FusedRecurrent", {sequence, h, w, r, b}, attrs);
  };
  EXPECT_MARK(mark(x, Rows({kRows, 3})), kR, "[rows,7,3]");
  EXPECT_MARK(mark(x, Weight({1, 3})), kR, "[rows,7,3]");
  EXPECT_MARK(mark(Weight({2, 7, 4}), Weight({2, 3})), kC, "[2,7,3]");
  EXPECT_EQ(mark(x, {kM, {kRows, 3}, DType::kFloat32, {}, {}}).mark, kM);
  EXPECT_EQ(mark(x, {kU, {kRows, 3}, DType::kFloat32, {}, {}}).mark, kU);
  EXPECT_NE(Mark("FusedRecurrent", {x, Rows({kRows, 3}), w, Rows({kRows, 3}), b}, attrs).mark, kR);

  Node layer;
  layer.attrs = attrs;
  const Attrs of_two = ops::PairRecurrent(layer, layer).attrs;
  const auto mark_pair = [&](const In& h_0, const In& x_1, const In& h_1) {
    return Mark("RecurrentPair", {x, h_0, w, r, b, x_1, h_1, w, r, b}, of_two);
  };
  EXPECT_MARK(mark_pair(Rows({kRows, 3}), x, Weight({1, 3})), kR, "[rows,7,3]");
  EXPECT_EQ(mark_pair(Rows({kRows, 3}), Weight({2, 7, 4}), Weight({2, 3})).mark, kM);
  EXPECT_EQ(mark_pair(Weight({1, 3}), x, {kM, {kRows, 3}, DType::kFloat32, {}, {}}).mark, kM);
}

TEST(RowRules, LayerNormAndAttention) {
  const In scale = Weight({4});
  EXPECT_MARK(Mark("LayerNorm", {Rows({kRows, 3, 4}), scale, scale}), kR, "[rows,3,4]");
  EXPECT_NE(Mark("LayerNorm", {Rows({kRows, 4}), Rows({4}), scale}).mark, kR);
  Attrs attrs;
  attrs.Set("scale", 1.0f);
  for (const char* name : {"q", "k", "v", "out"}) attrs.Set(name, std::string("BTH"));
  const In q = Rows({kRows, 5, 3}), k = Rows({kRows, 7, 3}), v = Rows({kRows, 7, 4});
  const auto mark = [&](const std::vector<In>& inputs) { return Mark("Attention", inputs, attrs); };
  EXPECT_MARK(mark({q, k, v}), kR, "[rows,5,4]");
  EXPECT_MARK(mark({q, Weight({1, 7, 3}), v}), kR, "[rows,5,4]");
  EXPECT_MARK(mark({q, k, v, Weight({5, 7})}), kR, "[rows,5,4]");
  EXPECT_EQ(mark({q, k, {kM, {kRows, 7, 4}, DType::kFloat32, {}, {}}}).mark, kM);
  EXPECT_EQ(mark({q, k, v, Rows({kRows, 7})}).mark, kM);  // its rows meet the queries
}

TEST(RowRules, Sources) {
  EXPECT_MARK(Mark("Fill", {Affine({0, 4}, {1, 0}), Weight({})}), kR, "[rows,4]");
  EXPECT_MARK(Mark("Fill", {Affine({4, 0}, {0, 1}), Weight({})}), kM, "[4,rows]");
  EXPECT_MARK(Mark("Fill", {Known({2, 4}), Weight({})}), kC, "[2,4]");
  EXPECT_MARK(Mark("ZerosLike", {Rows(kX)}), kR, "[rows,4]");
  EXPECT_MARK(Mark("OnesLike", {{kM, SymShape({3}), DType::kFloat32, {}, {}}}), kC, "[3]");
  EXPECT_MARK(Mark("Range", {KnownScalar(0), KnownScalar(5), KnownScalar(1)}), kC, "[5]");
  EXPECT_MARK(Mark("Range", {KnownScalar(0),
                             [] {
                               In in = Affine({0}, {1});
                               in.shape = SymShape();
                               return in;
                             }(),
                             KnownScalar(1)}),
              kM, "[rows]");
  EXPECT_MARK(Mark("RandomUniform", {Affine({0, 4}, {1, 0})}), kM, "[rows,4]");
}

TEST(RowRules, ImagesAndNormalisation) {
  Attrs pool;
  pool.Set("ksize", std::vector<int64_t>{1, 2, 2, 1});
  pool.Set("strides", std::vector<int64_t>{1, 2, 2, 1});
  pool.Set("padding", std::string("SAME"));
  EXPECT_MARK(Mark("MaxPool", {Rows(kImage)}, pool), kR, "[rows,4,3,3]");
  EXPECT_MARK(Mark("MaxPoolWithArgmax", {Rows(kImage)}, pool), kR, "[rows,4,3,3]");
  pool.Set("include_batch_in_index", true);
  EXPECT_MARK(Mark("MaxPoolWithArgmax", {Rows(kImage)}, pool), kM, "[rows,4,3,3]");
  const In c = Weight({3});
  EXPECT_MARK(Mark("FusedBatchNormV3", {Rows(kImage), c, c, c, c}, With("is_training", false)), kR,
              "[rows,8,6,3]");
  EXPECT_MARK(Mark("FusedBatchNormV3", {Rows(kImage), c, c, c, c}, With("is_training", true)), kM,
              "[rows,8,6,3]");
}

TEST(RowRules, RearrangingAndIndexing) {
  EXPECT_MARK(Mark("ReverseV2", {Rows(kX), Known({1})}), kR, "[rows,4]");
  EXPECT_MARK(Mark("ReverseV2", {Rows(kX), Known({1, -2})}), kM, "[rows,4]");
  EXPECT_MARK(Mark("Roll", {Rows(kX), Known({3}), Known({1})}), kR, "[rows,4]");
  EXPECT_MARK(Mark("Roll", {Rows(kX), Known({3}), Known({0})}), kM, "[rows,4]");
  EXPECT_MARK(Mark("Cumsum", {Rows(kX), KnownScalar(1)}), kR, "[rows,4]");
  EXPECT_MARK(Mark("Cumsum", {Rows(kX), KnownScalar(0)}), kM, "[rows,4]");
  EXPECT_MARK(Mark("SpaceToBatchND", {Rows({kRows, 4, 1}), Known({2}), Known({0, 0})}), kM,
              "[2*rows,2,1]");
  EXPECT_MARK(Mark("SpaceToDepth", {Rows({kRows, 4, 2, 3})}, With("block_size", int64_t{2})), kR,
              "[rows,2,1,12]");
  EXPECT_MARK(
      Mark("OneHot", {Rows({kRows}, DType::kInt32), KnownScalar(9), Weight({}), Weight({})}), kR,
      "[rows,9]");
  EXPECT_MARK(Mark("OneHot", {Rows({kRows}, DType::kInt32), KnownScalar(9), Weight({}), Weight({})},
                   With("axis", int64_t{0})),
              kM, "[9,rows]");
  EXPECT_MARK(Mark("GatherNd", {Weight({5, 6}), Rows({kRows, 1}, DType::kInt32)}), kR, "[rows,6]");
  EXPECT_MARK(Mark("GatherNd", {Weight({5, 6}), Rows({kRows}, DType::kInt32)}), kM,
              "<unknown rank>");
  EXPECT_MARK(Mark("GatherNd", {Rows(kX), Rows({kRows, 1}, DType::kInt32)}), kM, "[rows,4]");
  EXPECT_MARK(Mark("TopKV2", {Rows(kX), KnownScalar(2)}), kR, "[rows,2]");
  EXPECT_MARK(Mark("TensorScatterAdd", {Rows(kX), Rows({kRows, 1}, DType::kInt32), Rows(kX)}), kM,
              "[rows,4]");
  EXPECT_MARK(Mark("UnsortedSegmentSum", {Rows(kX), Rows({kRows}, DType::kInt32), KnownScalar(3)}),
              kM, "[3,4]");
  EXPECT_MARK(Mark("MatrixDiag", {Rows(kX)}), kR, "[rows,4,4]");
  EXPECT_MARK(Mark("MatrixDiag", {Rows({kRows})}), kM, "[?,?]");
  EXPECT_MARK(Mark("MatrixBandPart", {Rows(kX), KnownScalar(0), KnownScalar(0)}), kM, "[rows,4]");
  EXPECT_MARK(Mark("RFFT", {Rows(kX), Known({4})}), kR, "[rows,3]");
  EXPECT_MARK(Mark("RFFT2D", {Rows(kX), Known({4, 4})}), kM, "[4,3]");
  EXPECT_MARK(Mark("ResizeBilinear", {Rows(kImage), Known({4, 5})}), kR, "[rows,4,5,3]");
  EXPECT_MARK(
      Mark("Einsum", {Rows(kX), Weight({4, 7})}, With("equation", std::string("ij,jk->ik"))), kR,
      "[rows,7]");
  EXPECT_MARK(
      Mark("Einsum", {Rows(kX), Weight({4, 7})}, With("equation", std::string("ij,jk->ki"))), kM,
      "[7,rows]");
  EXPECT_MARK(Mark("Einsum", {Rows(kX), Rows(kX)}, With("equation", std::string("ij,ik->jk"))), kM,
              "[4,4]");
  EXPECT_MARK(Mark("Einsum", {Rows(kX), Rows(kX)}, With("equation", std::string("ij,ik->ijk"))), kR,
              "[rows,4,4]");
  EXPECT_MARK(Mark("GRUBlockCell", {Rows(kX), Rows({kRows, 3}), Weight({7, 6}), Weight({7, 3}),
                                    Weight({6}), Weight({3})}),
              kR, "[rows,3]");
}

// Nothing is known: no crash, no promise.
TEST(RowRules, UnknownShapesNeverKeepRows) {
  const In x = {kR, SymShape::UnknownRank(), DType::kFloat32, {}, {}};
  const In n = {kC, SymShape::UnknownRank(), DType::kInt32, {}, {}};
  for (const char* op : {"Softmax", "Squeeze", "Pack"}) EXPECT_NE(Mark(op, {x}).mark, kR) << op;
  for (const char* op :
       {"Reshape", "ExpandDims", "Mean", "ArgMax", "Transpose", "Tile", "Pad", "BroadcastTo"}) {
    EXPECT_NE(Mark(op, {x, n}).mark, kR) << op;
  }
  EXPECT_NE(Mark("Slice", {x, n, n}).mark, kR);
  EXPECT_NE(Mark("StridedSlice", {x, n, n, n}).mark, kR);
  EXPECT_NE(Mark("GatherV2", {x, n, n}).mark, kR);
  EXPECT_NE(Mark("ConcatV2", {x, x, n}).mark, kR);
  EXPECT_NE(Mark("Fill", {n, Weight({})}).mark, kR);
}

}  // namespace
}  // namespace floe
