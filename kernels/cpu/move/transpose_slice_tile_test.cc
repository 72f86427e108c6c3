// Ops that move elements, against the place each element should come from.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "kernels/cpu/kernel_test_util.h"

namespace floe {
namespace {

constexpr DType kInt32 = DType::kInt32;

Tensor Ints(const std::vector<int32_t>& values) { return Tensor::Vector(kInt32, values); }
Tensor Int(int32_t value) { return Tensor::Scalar(kInt32, value); }

// 0, 1, 2, ... of any element type; strings hold the number's digits.
Tensor Counted(const Shape& shape, DType dtype = kInt32) {
  Tensor t = Tensor::Allocate(dtype, shape);
  for (int64_t i = 0; i < shape.elements(); ++i) {
    if (dtype == DType::kString) {
      static_cast<std::string*>(t.mutable_data())[i] = std::to_string(i);
    } else {
      std::memset(static_cast<char*>(t.mutable_data()) + i * DTypeSize(dtype), 0, DTypeSize(dtype));
      std::memcpy(static_cast<char*>(t.mutable_data()) + i * DTypeSize(dtype), &i,
                  std::min<size_t>(DTypeSize(dtype), 8));
    }
  }
  return t;
}

std::vector<int64_t> Values(const Tensor& t) {
  std::vector<int64_t> values(t.elements(), 0);
  for (int64_t i = 0; i < t.elements(); ++i) {
    if (t.dtype() == DType::kString) {
      values[i] = std::stoll(t.as<std::string>()[i]);
    } else {
      std::memcpy(&values[i], t.as<char>() + i * DTypeSize(t.dtype()),
                  std::min<size_t>(DTypeSize(t.dtype()), 8));
    }
  }
  return values;
}

std::vector<int64_t> Unravel(int64_t i, const Shape& shape) {
  std::vector<int64_t> at(shape.rank());
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    at[axis] = i % shape.dim(axis);
    i /= shape.dim(axis);
  }
  return at;
}
int64_t Ravel(const std::vector<int64_t>& at, const Shape& shape) {
  int64_t i = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) i = i * shape.dim(axis) + at[axis];
  return i;
}

// The output has `shape`, and its element at place p came from input element from(p).
void ExpectMoved(const absl::StatusOr<std::vector<Tensor>>& out, const Shape& shape,
                 const std::function<int64_t(std::vector<int64_t>)>& from, size_t output = 0) {
  ASSERT_TRUE(out.ok()) << out.status();
  const Tensor& t = (*out)[output];
  ASSERT_EQ(t.shape(), shape);
  const std::vector<int64_t> values = Values(t);
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(values[i], from(Unravel(i, shape))) << "element " << i;
}

TEST(Transpose, EveryPermutationAndElementSize) {
  for (const Shape& shape : {Shape({2, 3, 4}), Shape({1, 5, 3}), Shape({40, 33, 2}),
                             Shape({19, 33, 9}), Shape({3, 1, 0})}) {
    std::vector<int32_t> perm = {0, 1, 2};
    do {
      for (DType dtype :
           {DType::kUInt16, kInt32, DType::kFloat64, DType::kComplex128, DType::kString}) {
        SCOPED_TRACE(testing::Message() << shape.ToString() << " " << perm[0] << perm[1] << perm[2]
                                        << " " << DTypeName(dtype));
        const Shape want({shape.dim(perm[0]), shape.dim(perm[1]), shape.dim(perm[2])});
        ExpectMoved(RunKernel("Transpose", {}, {Counted(shape, dtype), Ints(perm)},
                              {.threads = 2, .const_mask = 2}),
                    want, [&](std::vector<int64_t> at) {
                      std::vector<int64_t> source(3);
                      for (int k = 0; k < 3; ++k) source[perm[k]] = at[k];
                      return Ravel(source, shape);
                    });
      }
    } while (std::next_permutation(perm.begin(), perm.end()));
  }
}

TEST(Transpose, RefusesBadPermutations) {
  for (const auto& perm : {std::vector<int32_t>{0, 0}, {0, 2}, {0}}) {
    EXPECT_FALSE(RunKernel("Transpose", {}, {Counted({2, 3}), Ints(perm)}, {.const_mask = 2}).ok());
  }
}

struct SliceCase {
  std::vector<int32_t> begin, end, strides;
  int begin_mask = 0, end_mask = 0, ellipsis = 0, new_axis = 0, shrink = 0;
  Shape want;
  std::vector<int64_t> values;  // NumPy's answer on arange(24).reshape(2, 3, 4)
};

TEST(StridedSlice, AsNumPy) {
  const SliceCase kCases[] = {
      {{0, 0, 1}, {1, 1, 3}, {1, 1, 1}, 0, 0, 0, 0, 0, {1, 1, 2}, {1, 2}},
      {{0, 1},
       {0, 3},
       {1, 1},
       1,
       1,
       0,
       0,
       0,
       {2, 2, 4},
       {4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 20, 21, 22, 23}},
      {{1}, {2}, {1}, 0, 0, 0, 0, 1, {3, 4}, {12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}},
      {{-1}, {0}, {1}, 0, 0, 0, 0, 1, {3, 4}, {12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}},
      {{0, 0},
       {0, 2},
       {1, 1},
       0,
       0,
       1,
       0,
       0,
       {2, 3, 2},
       {0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21}},                              // [..., 0:2]
      {{0, -1}, {0, 0}, {1, 1}, 0, 0, 1, 0, 2, {2, 3}, {3, 7, 11, 15, 19, 23}},  // [..., -1]
      {{0, 0, 0}, {0, 0, 0}, {1, 1, 1}, 7, 7, 0, 2, 0, {2, 1, 3, 4}, {}},        // [:, newaxis, :]
      {{0, 0, 3}, {1, 3, -5}, {1, 2, -2}, 0, 0, 0, 0, 0, {1, 2, 2}, {3, 1, 11, 9}},  // [0:1, 0:3:2,
                                                                                     // 3::-2]
      {{0}, {0}, {-1}, 1, 1, 0, 0, 0, {2, 3, 4}, {12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
                                                  0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11}},
      {{0, 5}, {9, 9}, {1, 1}, 0, 0, 0, 0, 0, {2, 0, 4}, {}},  // beyond the end
      {{1, 2, 3}, {2, 3, 4}, {1, 1, 1}, 0, 0, 0, 0, 7, {}, {23}},
      {{0, 1, 0},
       {0, 2, 0},
       {1, 1, 1},
       1,
       1,
       4,
       0,
       2,
       {2, 4},
       {4, 5, 6, 7, 16, 17, 18, 19}},  // [:, 1, ...]
  };
  int index = 0;
  for (const SliceCase& c : kCases) {
    Attrs attrs;
    attrs.Set("begin_mask", int64_t{c.begin_mask});
    attrs.Set("end_mask", int64_t{c.end_mask});
    attrs.Set("ellipsis_mask", int64_t{c.ellipsis});
    attrs.Set("new_axis_mask", int64_t{c.new_axis});
    attrs.Set("shrink_axis_mask", int64_t{c.shrink});
    for (DType dtype : {DType::kInt8, DType::kInt64, DType::kString}) {
      SCOPED_TRACE(testing::Message() << "case " << index << " " << DTypeName(dtype));
      auto out = RunKernel("StridedSlice", attrs,
                           {Counted({2, 3, 4}, dtype), Ints(c.begin), Ints(c.end), Ints(c.strides)},
                           {.const_mask = 14});
      ASSERT_TRUE(out.ok()) << out.status();
      EXPECT_EQ((*out)[0].shape(), c.want);
      std::vector<int64_t> want = c.values;
      if (want.empty() && c.want.elements() > 0) {
        want.resize(24);
        std::iota(want.begin(), want.end(), 0);
      }
      EXPECT_EQ(Values((*out)[0]), want);
    }
    ++index;
  }
}

TEST(StridedSlice, RefusesWhatIsOutside) {
  Attrs shrink;
  shrink.Set("shrink_axis_mask", int64_t{1});
  const Tensor x = Counted({2, 3});
  EXPECT_FALSE(
      RunKernel("StridedSlice", shrink, {x, Ints({2}), Ints({3}), Ints({1})}, {.const_mask = 14})
          .ok());
  EXPECT_FALSE(
      RunKernel("StridedSlice", {}, {x, Ints({0}), Ints({1}), Ints({0})}, {.const_mask = 14}).ok());
  EXPECT_FALSE(RunKernel("StridedSlice", {}, {x, Ints({0, 0, 0}), Ints({1, 1, 1}), Ints({1, 1, 1})},
                         {.const_mask = 14})
                   .ok());
  // An index that is only known at run time is checked then.
  const auto run_time =
      RunKernel("StridedSlice", shrink, {x, Ints({2}), Ints({3}), Ints({1})}, {.const_mask = 12});
  EXPECT_EQ(run_time.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(run_time.status().message().find("index 2"), absl::string_view::npos)
      << run_time.status();
}

TEST(Slice, TakesABox) {
  ExpectMoved(RunKernel("Slice", {}, {Counted({3, 4, 5}), Ints({1, 0, 2}), Ints({2, -1, 3})},
                        {.const_mask = 6}),
              {2, 4, 3},
              [](std::vector<int64_t> at) { return ((at[0] + 1) * 4 + at[1]) * 5 + at[2] + 2; });
  EXPECT_FALSE(
      RunKernel("Slice", {}, {Counted({3}), Ints({1}), Ints({3})}, {.const_mask = 6}).ok());
  EXPECT_FALSE(
      RunKernel("Slice", {}, {Counted({3}), Ints({2}), Ints({2})}, {.const_mask = 4}).ok());
}

TEST(Tile, RepeatsAxes) {
  ExpectMoved(RunKernel("Tile", {}, {Counted({2, 3}), Ints({2, 3})}, {.const_mask = 2}), {4, 9},
              [](std::vector<int64_t> at) { return at[0] % 2 * 3 + at[1] % 3; });
  ExpectMoved(RunKernel("Tile", {}, {Counted({2}, DType::kString), Ints({0})}, {.const_mask = 2}),
              {0}, [](auto) { return 0; });
}

TEST(BroadcastTo, RepeatsOnes) {
  ExpectMoved(RunKernel("BroadcastTo", {}, {Counted({3, 1}), Ints({2, 3, 4})}, {.const_mask = 2}),
              {2, 3, 4}, [](std::vector<int64_t> at) { return at[1]; });
  EXPECT_FALSE(RunKernel("BroadcastTo", {}, {Counted({3}), Ints({2})}, {.const_mask = 2}).ok());
  EXPECT_FALSE(RunKernel("BroadcastTo", {}, {Counted({2, 3}), Ints({3})}, {.const_mask = 2}).ok());
}

TEST(Reshape, KeepsBytes) {
  const auto same = [](const Shape& shape) {
    return [shape](const std::vector<int64_t>& at) { return Ravel(at, shape); };
  };
  ExpectMoved(RunKernel("Reshape", {}, {Counted({2, 6}), Ints({3, -1})}, {.const_mask = 2}), {3, 4},
              same({3, 4}));
  ExpectMoved(RunKernel("ExpandDims", {}, {Counted({2, 3}), Int(-1)}, {.const_mask = 2}), {2, 3, 1},
              same({2, 3, 1}));
  ExpectMoved(RunKernel("Squeeze", {}, {Counted({2, 1, 3, 1})}), {2, 3}, same({2, 3}));
  Attrs dims;
  dims.Set("squeeze_dims", std::vector<int64_t>{-1});
  ExpectMoved(RunKernel("Squeeze", dims, {Counted({2, 1, 3, 1})}), {2, 1, 3}, same({2, 1, 3}));
  EXPECT_FALSE(RunKernel("Reshape", {}, {Counted({2, 3}), Ints({4, -1})}, {.const_mask = 2}).ok());
  EXPECT_FALSE(RunKernel("Reshape", {}, {Counted({2, 3}), Ints({5})}, {.const_mask = 2}).ok());
  EXPECT_FALSE(RunKernel("Reshape", {}, {Counted({2, 3}), Ints({-1, -1})}, {.const_mask = 2}).ok());
}

TEST(Join, PackAndUnpackEveryAxis) {
  for (int axis = -3; axis < 3; ++axis) {
    for (DType dtype : {kInt32, DType::kUInt8, DType::kString}) {
      SCOPED_TRACE(testing::Message() << axis << " " << DTypeName(dtype));
      Attrs attrs;
      attrs.Set("axis", int64_t{axis});
      const int at_axis = axis < 0 ? axis + 3 : axis;
      const Tensor part = Counted({2, 4}, dtype);
      auto packed = RunKernel("Pack", attrs, {part, part, part});
      std::vector<int64_t> dims = {2, 4};
      dims.insert(dims.begin() + at_axis, 3);
      ExpectMoved(packed, Shape(dims), [&](std::vector<int64_t> at) {
        at.erase(at.begin() + at_axis);
        return Ravel(at, Shape({2, 4}));
      });
      attrs.Set("num", int64_t{3});
      for (int k = 0; k < 3; ++k) {
        ExpectMoved(
            RunKernel("Unpack", attrs, {(*packed)[0]}), {2, 4},
            [](std::vector<int64_t> at) { return at[0] * 4 + at[1]; }, k);
      }
    }
  }
}

TEST(Join, ConcatAndSplitEveryAxis) {
  for (int axis = -2; axis < 2; ++axis) {
    SCOPED_TRACE(axis);
    const bool first = axis == 0 || axis == -2;
    const Tensor whole = Counted(first ? Shape({6, 5}) : Shape({5, 6}));
    const int64_t width = first ? 5 : 6;
    const auto piece = [&](int64_t start) {
      return [=](std::vector<int64_t> at) {
        return first ? (at[0] + start) * width + at[1] : at[0] * width + at[1] + start;
      };
    };
    auto split =
        RunKernel("SplitV", Attrs(), {whole, Ints({1, -1, 3}), Int(axis)}, {.const_mask = 6});
    EXPECT_FALSE(split.ok());  // num_split is missing
    Attrs three;
    three.Set("num_split", int64_t{3});
    split = RunKernel("SplitV", three, {whole, Ints({1, -1, 3}), Int(axis)}, {.const_mask = 6});
    ExpectMoved(split, first ? Shape({1, 5}) : Shape({5, 1}), piece(0), 0);
    ExpectMoved(split, first ? Shape({2, 5}) : Shape({5, 2}), piece(1), 1);
    ExpectMoved(split, first ? Shape({3, 5}) : Shape({5, 3}), piece(3), 2);
    ExpectMoved(RunKernel("ConcatV2", {}, {(*split)[0], (*split)[1], (*split)[2], Int(axis)},
                          {.const_mask = 8}),
                whole.shape(),
                [&](const std::vector<int64_t>& at) { return Ravel(at, whole.shape()); });
    auto equal = RunKernel("Split", three, {Int(axis), whole}, {.const_mask = 1});
    ExpectMoved(equal, first ? Shape({2, 5}) : Shape({5, 2}), piece(4), 2);
  }
  Attrs four;
  four.Set("num_split", int64_t{4});
  EXPECT_FALSE(RunKernel("Split", four, {Int(0), Counted({6})}, {.const_mask = 1}).ok());
  EXPECT_FALSE(
      RunKernel("ConcatV2", {}, {Counted({2, 3}), Counted({3, 2}), Int(0)}, {.const_mask = 4})
          .ok());
}

// Lines of every length out of wider ones and back, which are copied in several ways.
TEST(Join, LinesOfEveryLength) {
  constexpr int64_t kRows = 700;
  for (DType dtype : {DType::kUInt8, DType::kUInt16, kInt32, DType::kComplex128, DType::kString}) {
    for (const int64_t left : {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 33, 64, 65, 255, 257}) {
      SCOPED_TRACE(testing::Message() << DTypeName(dtype) << " " << left);
      const int64_t wide = left + 3;
      const Tensor whole = Counted({kRows, wide}, dtype);
      Attrs two;
      two.Set("num_split", int64_t{2});
      const auto parts =
          RunKernel("SplitV", two, {whole, Ints({static_cast<int32_t>(left), 3}), Int(1)},
                    {.threads = 3, .const_mask = 6});
      const int64_t values = dtype == DType::kUInt8    ? 256
                             : dtype == DType::kUInt16 ? 65536
                                                       : INT32_MAX;
      ExpectMoved(parts, {kRows, left},
                  [&](const std::vector<int64_t>& at) { return (at[0] * wide + at[1]) % values; });
      ExpectMoved(RunKernel("ConcatV2", {}, {(*parts)[0], (*parts)[1], Int(1)},
                            {.threads = 3, .const_mask = 4}),
                  whole.shape(), [&](const std::vector<int64_t>& at) {
                    return Ravel(at, whole.shape()) % values;
                  });
    }
  }
}

TEST(Join, ConcatWithEmptyParts) {
  ExpectMoved(
      RunKernel("ConcatV2", {}, {Counted({0, 2}), Counted({3, 2}), Int(0)}, {.const_mask = 4}),
      {3, 2}, [](std::vector<int64_t> at) { return at[0] * 2 + at[1]; });
}

TEST(Gather, AxesAndBatches) {
  const Tensor params = Counted({3, 4, 5}, DType::kFloat64);
  ExpectMoved(
      RunKernel("GatherV2", {}, {params, Ints({2, 0}), Int(0)}, {.const_mask = 4}), {2, 4, 5},
      [](std::vector<int64_t> at) { return ((at[0] == 0 ? 2 : 0) * 4 + at[1]) * 5 + at[2]; });
  ExpectMoved(RunKernel("GatherV2", {}, {params, Counted({2, 2}), Int(1)}, {.const_mask = 4}),
              {3, 2, 2, 5},
              [](std::vector<int64_t> at) { return (at[0] * 4 + at[1] * 2 + at[2]) * 5 + at[3]; });
  ExpectMoved(
      RunKernel("GatherV2", {}, {params, Tensor::Scalar<int64_t>(DType::kInt64, 4), Int(-1)},
                {.const_mask = 4}),
      {3, 4}, [](std::vector<int64_t> at) { return (at[0] * 4 + at[1]) * 5 + 4; });
  Attrs batched;
  batched.Set("batch_dims", int64_t{1});
  Tensor indices = Tensor::Allocate(kInt32, Shape({3, 2}));
  const int32_t rows[] = {3, 0, 1, 1, 2, 3};
  std::memcpy(indices.mutable_data(), rows, sizeof(rows));
  ExpectMoved(
      RunKernel("GatherV2", batched, {params, indices, Int(1)}, {.const_mask = 4}), {3, 2, 5},
      [&](std::vector<int64_t> at) { return (at[0] * 4 + rows[at[0] * 2 + at[1]]) * 5 + at[2]; });
  const auto outside = RunKernel("GatherV2", {}, {params, Ints({0, 3}), Int(0)}, {.const_mask = 4});
  EXPECT_EQ(outside.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(outside.status().message().find("index 3"), absl::string_view::npos)
      << outside.status();
}

TEST(Pad, ConstantAndMirrored) {
  Tensor pads = Tensor::Allocate(kInt32, Shape({2, 2}));
  const int32_t amounts[] = {1, 0, 2, 1};
  std::memcpy(pads.mutable_data(), amounts, sizeof(amounts));
  const Tensor x = Counted({2, 3});
  EXPECT_EQ(Values((*RunKernel("Pad", {}, {x, pads}, {.const_mask = 2}))[0]),
            (std::vector<int64_t>{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 3, 4, 5, 0}));
  EXPECT_EQ(Values((*RunKernel("PadV2", {}, {x, pads, Int(9)}, {.const_mask = 2}))[0]),
            (std::vector<int64_t>{9, 9, 9, 9, 9, 9, 9, 9, 0, 1, 2, 9, 9, 9, 3, 4, 5, 9}));
  Attrs mode;
  mode.Set("mode", std::string("REFLECT"));
  EXPECT_EQ(Values((*RunKernel("MirrorPad", mode, {x, pads}, {.const_mask = 2}))[0]),
            (std::vector<int64_t>{5, 4, 3, 4, 5, 4, 2, 1, 0, 1, 2, 1, 5, 4, 3, 4, 5, 4}));
  mode.Set("mode", std::string("SYMMETRIC"));
  EXPECT_EQ(Values((*RunKernel("MirrorPad", mode, {x, pads}, {.const_mask = 2}))[0]),
            (std::vector<int64_t>{1, 0, 0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 4, 3, 3, 4, 5, 5}));
}

TEST(Fill, RangeShapeAndLikes) {
  EXPECT_EQ(Values((*RunKernel("Fill", {}, {Ints({2, 2}), Int(7)}, {.const_mask = 1}))[0]),
            (std::vector<int64_t>{7, 7, 7, 7}));
  EXPECT_EQ(Values((*RunKernel("Range", {}, {Int(2), Int(9), Int(3)}, {.const_mask = 7}))[0]),
            (std::vector<int64_t>{2, 5, 8}));
  EXPECT_EQ(
      (*RunKernel("Range", {}, {Int(5), Int(-1), Int(-2)}, {.const_mask = 7}))[0].as<int32_t>()[2],
      1);
  EXPECT_EQ((*RunKernel("Range", {},
                        {FloatTensor({}, {0}), FloatTensor({}, {1}), FloatTensor({}, {0.3f})},
                        {.const_mask = 7}))[0]
                .elements(),
            4);
  EXPECT_FALSE(RunKernel("Range", {}, {Int(0), Int(1), Int(0)}, {.const_mask = 7}).ok());
  EXPECT_FALSE(RunKernel("Range", {}, {Int(3), Int(1), Int(1)}, {.const_mask = 7}).ok());
  EXPECT_EQ(Values((*RunKernel("Shape", {}, {Counted({4, 0, 2})}))[0]),
            (std::vector<int64_t>{4, 0, 2}));
  Attrs wide;
  wide.Set("out_type", DType::kInt64);
  EXPECT_EQ((*RunKernel("Shape", wide, {Counted({4})}))[0].dtype(), DType::kInt64);
  EXPECT_EQ(Values((*RunKernel("Size", {}, {Counted({4, 3})}))[0]), (std::vector<int64_t>{12}));
  EXPECT_EQ(Values((*RunKernel("Rank", {}, {Counted({4, 3})}))[0]), (std::vector<int64_t>{2}));
  EXPECT_EQ(Values((*RunKernel("ZerosLike", {}, {Counted({3})}))[0]),
            (std::vector<int64_t>{0, 0, 0}));
  EXPECT_EQ(Values((*RunKernel("OnesLike", {}, {Counted({3})}))[0]),
            (std::vector<int64_t>{1, 1, 1}));
}

TEST(Select, BothRules) {
  const auto bools = [](const Shape& shape, const std::vector<uint8_t>& values) {
    return Tensor::Vector(DType::kBool, values).Reshaped(shape);
  };
  const Tensor a = Counted({2, 3}), b = Ints({-1, -2, -3, -4, -5, -6}).Reshaped(Shape({2, 3}));
  const auto values = [](const absl::StatusOr<std::vector<Tensor>>& out) {
    EXPECT_TRUE(out.ok()) << out.status();
    return std::vector<int32_t>((*out)[0].as<int32_t>(),
                                (*out)[0].as<int32_t>() + (*out)[0].elements());
  };
  EXPECT_EQ(values(RunKernel("Select", {}, {bools({2}, {0, 1}), a, b})),
            (std::vector<int32_t>{-1, -2, -3, 3, 4, 5}));
  EXPECT_EQ(values(RunKernel("Select", {}, {bools({}, {1}), a, b})),
            (std::vector<int32_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values(RunKernel("SelectV2", {}, {bools({3}, {0, 1, 0}), a, b})),
            (std::vector<int32_t>{-1, 1, -3, -4, 4, -6}));
  EXPECT_EQ(values(RunKernel("SelectV2", {}, {bools({2, 1}, {0, 1}), Int(9), b})),
            (std::vector<int32_t>{-1, -2, -3, 9, 9, 9}));
}

}  // namespace
}  // namespace floe
