// Ops that rearrange, index and scan. Expected values: TensorFlow 2.21, or written down from the
// definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/cpu/kernel_test_util.h"

namespace floe {
namespace {

Tensor Ints(const std::vector<int32_t>& values) { return Tensor::Vector(DType::kInt32, values); }
Tensor Ints(const Shape& shape, const std::vector<int32_t>& values) {
  return Ints(values).Reshaped(shape);
}
Tensor Int(int32_t value) { return Tensor::Scalar(DType::kInt32, value); }
Tensor Floats(const Shape& shape, float start = 0) {
  std::vector<float> values(shape.elements());
  std::iota(values.begin(), values.end(), start);
  return FloatTensor(shape, values);
}

struct Answer {
  Shape shape;
  std::vector<double> values;
  bool operator==(const Answer& o) const { return shape == o.shape && values == o.values; }
};
std::ostream& operator<<(std::ostream& os, const Answer& a) {
  os << a.shape.ToString() << " {";
  for (double v : a.values) os << v << ", ";
  return os << "}";
}

// Output `k` of the op; every input in `known` (bits) is a constant.
Answer Result(const std::string& op, const std::vector<Tensor>& inputs, uint64_t known = 0,
              const Attrs& attrs = {}, size_t k = 0) {
  const auto out = RunKernel(op, attrs, inputs, {.const_mask = known});
  EXPECT_TRUE(out.ok()) << op << ": " << out.status();
  if (!out.ok()) return {};
  const Tensor& t = (*out)[k];
  Answer answer{t.shape(), {}};
  for (int64_t i = 0; i < t.elements(); ++i) {
    answer.values.push_back(t.dtype() == DType::kFloat32 ? static_cast<double>(t.as<float>()[i])
                            : t.dtype() == DType::kInt64 ? static_cast<double>(t.as<int64_t>()[i])
                                                         : t.as<int32_t>()[i]);
  }
  return answer;
}

absl::StatusCode Refusal(const std::string& op, const std::vector<Tensor>& inputs,
                         uint64_t known = 0, const Attrs& attrs = {}) {
  return RunKernel(op, attrs, inputs, {.const_mask = known}).status().code();
}
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(Reverse, AxesSequencesAndRolls) {
  const Tensor x = Floats({2, 3});
  EXPECT_EQ(Result("ReverseV2", {x, Ints({1})}, 2), (Answer{{2, 3}, {2, 1, 0, 5, 4, 3}}));
  EXPECT_EQ(Result("ReverseV2", {x, Ints({0, -1})}, 2), (Answer{{2, 3}, {5, 4, 3, 2, 1, 0}}));
  EXPECT_EQ(Result("ReverseV2", {x, Ints({})}, 2), (Answer{{2, 3}, {0, 1, 2, 3, 4, 5}}));
  EXPECT_EQ(Refusal("ReverseV2", {x, Ints({0, 0})}, 2), kInvalid);
  EXPECT_EQ(Result("Roll", {x, Ints({1}), Ints({1})}, 6), (Answer{{2, 3}, {2, 0, 1, 5, 3, 4}}));
  EXPECT_EQ(Result("Roll", {x, Ints({-1, 1}), Ints({1, 0})}, 6),
            (Answer{{2, 3}, {4, 5, 3, 1, 2, 0}}));
  EXPECT_EQ(Result("Roll", {x, Int(7), Int(-1)}, 6), (Answer{{2, 3}, {2, 0, 1, 5, 3, 4}}));
  Attrs attrs;
  attrs.Set("seq_dim", int64_t{1});
  EXPECT_EQ(Result("ReverseSequence", {x, Ints({2, 3})}, 0, attrs),
            (Answer{{2, 3}, {1, 0, 2, 5, 4, 3}}));
  EXPECT_EQ(Refusal("ReverseSequence", {x, Ints({2, 4})}, 0, attrs), kInvalid);
}

TEST(Space, BlocksToBatchAndBack) {
  const Tensor x = Floats({1, 2, 3, 1}), blocks = Ints({2, 2}), pads = Ints({2, 2}, {0, 0, 1, 0});
  const Answer parts = Result("SpaceToBatchND", {x, blocks, pads}, 6);
  EXPECT_EQ(parts, (Answer{{4, 1, 2, 1}, {0, 1, 0, 2, 0, 4, 3, 5}}));
  const Tensor packed = FloatTensor(parts.shape, {0, 1, 0, 2, 0, 4, 3, 5});
  EXPECT_EQ(Result("BatchToSpaceND", {packed, blocks, pads}, 6),
            (Answer{{1, 2, 3, 1}, {0, 1, 2, 3, 4, 5}}));
  EXPECT_EQ(Refusal("SpaceToBatchND", {x, Ints({3, 2}), pads}, 6), kInvalid);
}

TEST(Space, DepthBothWays) {
  Attrs attrs;
  attrs.Set("block_size", int64_t{2});
  EXPECT_EQ(Result("SpaceToDepth", {Floats({1, 2, 4, 2})}, 0, attrs),
            (Answer{{1, 1, 2, 8}, {0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15}}));
  EXPECT_EQ(Result("DepthToSpace", {Floats({1, 1, 2, 12})}, 0, attrs),
            (Answer{{1, 2, 4, 3}, {0, 1, 2, 3, 4,  5,  12, 13, 14, 15, 16, 17,
                                   6, 7, 8, 9, 10, 11, 18, 19, 20, 21, 22, 23}}));
  attrs.Set("data_format", std::string("NCHW"));
  EXPECT_EQ(Result("DepthToSpace", {Floats({1, 4, 1, 2})}, 0, attrs),
            (Answer{{1, 1, 2, 4}, {0, 2, 1, 3, 4, 6, 5, 7}}));
  EXPECT_EQ(Result("SpaceToDepth", {Floats({1, 1, 2, 4})}, 0, attrs),
            (Answer{{1, 4, 1, 2}, {0, 2, 1, 3, 4, 6, 5, 7}}));
  EXPECT_EQ(Refusal("SpaceToDepth", {Floats({1, 1, 3, 4})}, 0, attrs), kInvalid);
}

TEST(Space, Patches) {
  Attrs attrs;
  attrs.Set("ksizes", std::vector<int64_t>{1, 2, 2, 1});
  attrs.Set("strides", std::vector<int64_t>{1, 2, 2, 1});
  attrs.Set("rates", std::vector<int64_t>{1, 1, 1, 1});
  attrs.Set("padding", std::string("SAME"));
  EXPECT_EQ(Result("ExtractImagePatches", {Floats({1, 3, 4, 1})}, 0, attrs),
            (Answer{{1, 2, 2, 4}, {0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 0, 0, 10, 11, 0, 0}}));
}

TEST(Diagonals, EveryAlignment) {
  const Tensor m = Floats({3, 4}, 1), k = Ints({-1, 2}), zero = FloatTensor({}, {0});
  const auto part = [&](const char* align) {
    Attrs attrs;
    attrs.Set("align", std::string(align));
    return Result("MatrixDiagPartV3", {m, k, zero}, 2, attrs);
  };
  EXPECT_EQ(part("RIGHT_LEFT"), (Answer{{4, 3}, {0, 3, 8, 2, 7, 12, 1, 6, 11, 5, 10, 0}}));
  EXPECT_EQ(part("LEFT_RIGHT"), (Answer{{4, 3}, {3, 8, 0, 2, 7, 12, 1, 6, 11, 0, 5, 10}}));
  EXPECT_EQ(part("LEFT_LEFT"), (Answer{{4, 3}, {3, 8, 0, 2, 7, 12, 1, 6, 11, 5, 10, 0}}));
  EXPECT_EQ(part("RIGHT_RIGHT"), (Answer{{4, 3}, {0, 3, 8, 2, 7, 12, 1, 6, 11, 0, 5, 10}}));
  EXPECT_EQ(Result("MatrixDiagPart", {m}), (Answer{{3}, {1, 6, 11}}));
  EXPECT_EQ(Result("MatrixDiagV3",
                   {Floats({2, 3}, 1), Ints({-1, 0}), Int(-1), Int(-1), FloatTensor({}, {9})}, 14),
            (Answer{{3, 3}, {1, 9, 9, 4, 2, 9, 9, 5, 3}}));
  EXPECT_EQ(Result("MatrixDiag", {Floats({2}, 1)}), (Answer{{2, 2}, {1, 0, 0, 2}}));
  EXPECT_EQ(Result("MatrixSetDiagV3",
                   {m, FloatTensor({2, 3}, {50, 60, 70, 80, 90, 100}), Ints({0, 1})}, 4),
            (Answer{{3, 4}, {80, 50, 3, 4, 5, 90, 60, 8, 9, 10, 100, 70}}));
  EXPECT_EQ(Result("MatrixBandPart", {m, Int(1), Int(0)}, 6),
            (Answer{{3, 4}, {1, 0, 0, 0, 5, 6, 0, 0, 0, 10, 11, 0}}));
  EXPECT_EQ(Refusal("MatrixDiagPartV3", {m, Ints({1, -1}), zero}, 2), kInvalid);
  EXPECT_EQ(Refusal("MatrixDiagPartV3", {m, Ints({9, 9}), zero}, 2), kInvalid);
}

TEST(Index, GatherNdAndScatter) {
  const Tensor x = Floats({2, 3});
  EXPECT_EQ(Result("GatherNd", {x, Ints({2, 2}, {1, 2, 0, 1})}), (Answer{{2}, {5, 1}}));
  EXPECT_EQ(Result("GatherNd", {x, Ints({1, 1}, {1})}), (Answer{{1, 3}, {3, 4, 5}}));
  Attrs batched;
  batched.Set("batch_dims", int64_t{1});
  EXPECT_EQ(Result("GatherNd", {x, Ints({2, 1}, {2, 0})}, 0, batched), (Answer{{2}, {2, 3}}));
  EXPECT_EQ(Refusal("GatherNd", {x, Ints({1, 2}, {1, 3})}), kInvalid);
  EXPECT_EQ(
      Result("ScatterNd", {Ints({3, 1}, {1, 3, 1}), FloatTensor({3}, {5, 6, 7}), Ints({4})}, 4),
      (Answer{{4}, {0, 12, 0, 6}}));
  const Tensor at = Ints({2, 1}, {1, 1}), u = FloatTensor({2, 3}, {9, 1, 9, 2, 8, 5});
  EXPECT_EQ(Result("TensorScatterUpdate", {x, at, u}), (Answer{{2, 3}, {0, 1, 2, 2, 8, 5}}));
  EXPECT_EQ(Result("TensorScatterAdd", {x, at, u}), (Answer{{2, 3}, {0, 1, 2, 14, 13, 19}}));
  EXPECT_EQ(Result("TensorScatterSub", {x, at, u}), (Answer{{2, 3}, {0, 1, 2, -8, -5, -9}}));
  EXPECT_EQ(Result("TensorScatterMin", {x, at, u}), (Answer{{2, 3}, {0, 1, 2, 2, 1, 5}}));
  EXPECT_EQ(Result("TensorScatterMax", {x, at, u}), (Answer{{2, 3}, {0, 1, 2, 9, 8, 9}}));
  EXPECT_EQ(Refusal("TensorScatterAdd", {x, Ints({2, 1}, {0, 2}), u}), kInvalid);
  EXPECT_EQ(Result("SparseToDense",
                   {Ints({2, 2}, {0, 1, 1, 0}), Ints({2, 2}), FloatTensor({}, {7}),
                    FloatTensor({}, {-1})},
                   2),
            (Answer{{2, 2}, {-1, 7, 7, -1}}));
  EXPECT_EQ(Result("InvertPermutation", {Ints({2, 0, 1})}), (Answer{{3}, {1, 2, 0}}));
  EXPECT_EQ(Refusal("InvertPermutation", {Ints({2, 0, 0})}), kInvalid);
  EXPECT_EQ(
      Result("DynamicStitch", {Ints({2, 0}), Ints({1}), Floats({2, 2}, 1), Floats({1, 2}, 5)}, 3),
      (Answer{{3, 2}, {3, 4, 5, 6, 1, 2}}));
}

TEST(Index, OneHot) {
  const Tensor on = FloatTensor({}, {5}), off = FloatTensor({}, {1});
  EXPECT_EQ(Result("OneHot", {Ints({1, -1, 3}), Int(3), on, off}, 2),
            (Answer{{3, 3}, {1, 5, 1, 1, 1, 1, 1, 1, 1}}));
  Attrs first;
  first.Set("axis", int64_t{0});
  EXPECT_EQ(Result("OneHot", {Ints({1, 0}), Int(3), on, off}, 2, first),
            (Answer{{3, 2}, {1, 5, 5, 1, 1, 1}}));
}

TEST(Segment, SumsCountsAndOthers) {
  const Tensor data = Floats({4, 2}), ids = Ints({2, 0, 2, -1}), three = Int(3);
  EXPECT_EQ(Result("UnsortedSegmentSum", {data, ids, three}, 4),
            (Answer{{3, 2}, {2, 3, 0, 0, 4, 6}}));
  EXPECT_EQ(Result("UnsortedSegmentProd", {data, ids, three}, 4),
            (Answer{{3, 2}, {2, 3, 1, 1, 0, 5}}));
  EXPECT_EQ(Result("UnsortedSegmentMax", {data, ids, Int(4)}, 4).values[4], 4);
  EXPECT_EQ(Refusal("UnsortedSegmentSum", {data, ids, Int(2)}, 4), kInvalid);
  const Tensor rows = Ints({0, 3, 1}), of = Ints({0, 0, 2});
  EXPECT_EQ(Result("SparseSegmentSumWithNumSegments", {data, rows, of, Int(4)}, 8),
            (Answer{{4, 2}, {6, 8, 0, 0, 2, 3, 0, 0}}));
  EXPECT_EQ(Result("SparseSegmentSumWithNumSegments",
                   {Ints({5, 6, 7}), Ints({0, 2}), Ints({0, 0}), Int(1)}, 8),
            (Answer{{1}, {12}}));
  EXPECT_EQ(Result("SparseSegmentMeanWithNumSegments", {data, rows, of, three}, 8),
            (Answer{{3, 2}, {3, 4, 0, 0, 2, 3}}));
  EXPECT_EQ(Result("DenseBincount", {Ints({1, 1, 3, 9}), Int(4), Ints({})}, 2),
            (Answer{{4}, {0, 2, 0, 1}}));
  EXPECT_EQ(Result("DenseBincount", {Ints({2, 2}, {0, 0, 1, 0}), Int(2), Ints({})}, 2),
            (Answer{{2, 2}, {2, 0, 1, 1}}));
}

TEST(AlongAxis, TopKAndScans) {
  EXPECT_EQ(Result("TopKV2", {FloatTensor({1, 4}, {1, 3, 3, 2}), Int(3)}, 2),
            (Answer{{1, 3}, {3, 3, 2}}));
  EXPECT_EQ(Result("TopKV2", {FloatTensor({1, 4}, {1, 3, 3, 2}), Int(3)}, 2, {}, 1),
            (Answer{{1, 3}, {1, 2, 3}}));
  EXPECT_EQ(Refusal("TopKV2", {FloatTensor({2}, {1, 3}), Int(3)}, 2), kInvalid);
  const Tensor x = Floats({2, 3}, 1);
  EXPECT_EQ(Result("Cumsum", {x, Int(1)}, 2), (Answer{{2, 3}, {1, 3, 6, 4, 9, 15}}));
  EXPECT_EQ(Result("Cumsum", {x, Int(0)}, 2), (Answer{{2, 3}, {1, 2, 3, 5, 7, 9}}));
  Attrs attrs;
  attrs.Set("exclusive", true);
  attrs.Set("reverse", true);
  EXPECT_EQ(Result("Cumsum", {x, Int(-1)}, 2, attrs), (Answer{{2, 3}, {5, 3, 0, 11, 6, 0}}));
  EXPECT_EQ(Result("Cumprod", {x, Int(1)}, 2, attrs), (Answer{{2, 3}, {6, 3, 1, 30, 6, 1}}));
}

TEST(AlongAxis, TopKOfEqualAndInfiniteElements) {
  const float inf = std::numeric_limits<float>::infinity();
  const int n = 200;
  std::vector<float> x(n);
  for (int i = 0; i < n; ++i) x[i] = static_cast<float>((i * 37) % 41 - 20) / 8;
  x[3] = x[90] = inf;
  x[5] = x[60] = -inf;
  x[7] = -0.0f;
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return x[a] > x[b]; });
  for (const int k : {1, 5, 32, 33, 199, 200}) {
    const std::vector<double> want(order.begin(), order.begin() + k);
    EXPECT_EQ(Result("TopKV2", {FloatTensor({n}, x), Int(k)}, 2, {}, 1), (Answer{{k}, want}));
  }
  x[100] = std::numeric_limits<float>::quiet_NaN();  // somewhere, but not in the way of the others
  EXPECT_EQ(Result("TopKV2", {FloatTensor({n}, x), Int(n)}, 2, {}, 1).values.size(), n);
}

TEST(LinearAlgebra, InverseAndDeterminant) {
  const Tensor m = FloatTensor({2, 2, 2}, {0, 2, 4, 0, 1, 2, 3, 4});
  EXPECT_EQ(Result("MatrixDeterminant", {m}), (Answer{{2}, {-8, -2}}));
  EXPECT_EQ(Result("MatrixInverse", {m}), (Answer{{2, 2, 2}, {0, 0.25, 0.5, 0, -2, 1, 1.5, -0.5}}));
  EXPECT_EQ(Refusal("MatrixInverse", {FloatTensor({2, 2}, {1, 2, 2, 4})}), kInvalid);
}

}  // namespace
}  // namespace floe
