// Moves against the CPU's, to the bit.
#include <gtest/gtest.h>

#include <numeric>

#include "kernels/cuda/as_on_cpu_for_test.h"

namespace floe::cuda {
namespace {

// One of each size of elements.
constexpr DType kSizes[] = {DType::kUInt8, DType::kInt16, DType::kFloat32, DType::kInt64,
                            DType::kComplex128};

Attrs WithInt(const char* name, int64_t value) {
  Attrs attrs;
  attrs.Set(name, value);
  return attrs;
}

TEST(MoveOnDevice, Joins) {
  for (const DType dtype : kSizes) {
    for (int axis = -1; axis < 3; ++axis) {
      Shape a({3, 2, 5}), b = a;
      const int at = axis < 0 ? 2 : axis;
      a.set_dim(at, 4);
      b.set_dim(at, 0);
      const Tensor x = Bytes(dtype, a), y = Bytes(dtype, b), z = Bytes(dtype, Shape({3, 2, 5}));
      ExpectAsOnCpu("ConcatV2", {}, {x, y, z, z, Int(axis)}, 1 << 4);
      ExpectAsOnCpu("Concat", {}, {Int(axis), z, x}, 1);
      ExpectAsOnCpu("Pack", WithInt("axis", axis), {z, z, z});
    }
  }
}

TEST(MoveOnDevice, Splits) {
  for (const DType dtype : kSizes) {
    const Tensor x = Bytes(dtype, Shape({4, 6, 8}));
    for (int axis = -2; axis < 3; ++axis) {
      Attrs attrs = WithInt("num_split", 2);
      ExpectAsOnCpu("Split", attrs, {Int(axis), x}, 1);
      const int size = static_cast<int>(x.shape().dim(axis < 0 ? axis + 3 : axis));
      ExpectAsOnCpu("SplitV", WithInt("num_split", 3), {x, Ints({1, size - 3, 2}), Int(axis)}, 6);
      Attrs parts = WithInt("axis", axis);
      parts.Set("num", int64_t{size});
      ExpectAsOnCpu("Unpack", parts, {x});
    }
  }
}

// Memory of lines that lie `stride` elements apart, with `numbers` in them and NaN between.
std::vector<float> Spaced(const std::vector<float>& numbers, int64_t width, int64_t stride) {
  const int64_t lines = static_cast<int64_t>(numbers.size()) / width;
  std::vector<float> memory(static_cast<size_t>(lines * stride), NAN);
  for (int64_t i = 0; i < lines * width; ++i)
    memory[static_cast<size_t>(i / width * stride + i % width)] = numbers[static_cast<size_t>(i)];
  return memory;
}

TEST(MoveOnDevice, LinesMayLieApart) {
  std::vector<float> a(12), b(8), joined;
  std::iota(a.begin(), a.end(), 1.0f);
  std::iota(b.begin(), b.end(), 100.0f);
  for (size_t line = 0; line < 4; ++line) {
    joined.insert(joined.end(), a.begin() + line * 3, a.begin() + line * 3 + 3);
    joined.insert(joined.end(), b.begin() + line * 2, b.begin() + line * 2 + 2);
  }
  const Tensor x = FloatTensor(Shape({2, 2, 3}), a), y = FloatTensor(Shape({2, 2, 2}), b),
               axis = Int(-1);
  auto concat = MakeTestKernel("ConcatV2", {}, {x, y, axis}, OnDevice(4));
  ASSERT_TRUE(concat.ok()) << concat.status();
  const Shape shapes[] = {x.shape(), y.shape(), axis.shape()}, whole[] = {Shape({2, 2, 5})};
  EXPECT_TRUE((*concat)->kernel->WritesSpacedLines());
  EXPECT_TRUE((*concat)->kernel->ReadsSpacedLines(0, shapes, whole));
  std::vector<float> spaced_a = Spaced(a, 3, 5), to = Spaced(std::vector<float>(20, NAN), 5, 7);
  const TensorView in[] = {{DType::kFloat32, x.shape(), spaced_a.data()}, y.view(), axis.view()};
  const TensorView out[] = {{DType::kFloat32, whole[0], to.data()}};
  const int64_t strides[] = {5, 0, 0, 7};
  ThreadPool pool(1);
  ASSERT_TRUE((*concat)->kernel->Run({in, out, nullptr, &pool, nullptr, 0, strides}).ok());
  const std::vector<float> want = Spaced(joined, 5, 7);
  EXPECT_EQ(std::memcmp(to.data(), want.data(), want.size() * sizeof(float)), 0);

  auto add = MakeTestKernel("Add", {}, {x, FloatTensor(Shape({3}), {1, 2, 3})}, OnDevice());
  ASSERT_TRUE(add.ok()) << add.status();
  std::vector<float> three = {1, 2, 3}, sum(12);
  const TensorView operands[] = {in[0], {DType::kFloat32, Shape({3}), three.data()}};
  const TensorView sums[] = {{DType::kFloat32, x.shape(), sum.data()}};
  const int64_t of_add[] = {5, 0, 0};
  ASSERT_TRUE((*add)->kernel->Run({operands, sums, nullptr, &pool, nullptr, 0, of_add}).ok());
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(sum[i], a[i] + three[i % 3]);
}

TEST(MoveOnDevice, TransposesInEveryOrderOfDims) {
  for (const DType dtype : kSizes) {
    std::vector<int32_t> perm = {0, 1, 2, 3};
    do {
      ExpectAsOnCpu("Transpose", {}, {Bytes(dtype, Shape({3, 4, 1, 5})), Ints(perm)}, 2);
    } while (std::next_permutation(perm.begin(), perm.end()));
  }
  // Through tiles, whole and in part, with dims around them.
  for (const auto& [rows, columns] : {std::pair{8, 8}, {32, 64}, {33, 70}, {100, 9}, {31, 200}}) {
    ExpectAsOnCpu("Transpose", {}, {RandomTensor(Shape({rows, columns}), 1), Ints({1, 0})}, 2);
    ExpectAsOnCpu("Transpose", {},
                  {RandomTensor(Shape({2, rows, 3, columns}), 1), Ints({0, 3, 2, 1})}, 2);
    ExpectAsOnCpu("Transpose", {},
                  {RandomTensor(Shape({2, rows, 3, columns}), 1), Ints({3, 2, 0, 1})}, 2);
  }
}

TEST(MoveOnDevice, Slices) {
  for (const DType dtype : kSizes) {
    const Tensor x = Bytes(dtype, Shape({6, 7, 8}));
    ExpectAsOnCpu("Slice", {}, {x, Ints({1, 0, 4}), Ints({3, -1, 4})}, 6);
    ExpectAsOnCpu("Slice", {}, {x, Ints({0, 0, 3}), Ints({6, 7, 1})}, 6);
    ExpectAsOnCpu("StridedSlice", {}, {x, Ints({1, 6}), Ints({5, 0}), Ints({2, -2})}, 14);
    Attrs masks;
    masks.Set("begin_mask", int64_t{1});
    masks.Set("end_mask", int64_t{1});
    masks.Set("shrink_axis_mask", int64_t{4});
    masks.Set("new_axis_mask", int64_t{2});
    ExpectAsOnCpu("StridedSlice", masks,
                  {x, Ints({0, 0, -2, 3}), Ints({0, 0, 0, 7}), Ints({-1, 1, 1, 1})}, 14);
  }
}

TEST(MoveOnDevice, Repeats) {
  for (const DType dtype : kSizes) {
    const Tensor x = Bytes(dtype, Shape({2, 1, 5}));
    ExpectAsOnCpu("Tile", {}, {x, Ints({3, 4, 2})}, 2);
    ExpectAsOnCpu("Tile", {}, {x, Ints({1, 0, 2})}, 2);
    ExpectAsOnCpu("BroadcastTo", {}, {x, Ints({4, 2, 3, 5})}, 2);
    ExpectAsOnCpu("ReverseV2", {}, {Bytes(dtype, Shape({3, 4, 5})), Ints({0, -1})}, 2);
    ExpectAsOnCpu("Fill", {}, {Ints({7, 300}), Bytes(dtype, Shape())}, 1);
    ExpectAsOnCpu("ZerosLike", {}, {x});
    if (dtype != DType::kComplex128) ExpectAsOnCpu("OnesLike", {}, {x});
  }
}

TEST(MoveOnDevice, Pads) {
  for (const DType dtype : kSizes) {
    const Tensor x = Bytes(dtype, Shape({3, 4, 5}));
    const std::vector<std::vector<int32_t>> pads = {
        {0, 0, 1, 2, 0, 0}, {2, 0, 0, 0, 3, 1}, {0, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 1, 1}};
    for (const std::vector<int32_t>& pad : pads) {
      const Tensor of_pads = Ints(pad).Reshaped(Shape({3, 2}));
      ExpectAsOnCpu("Pad", {}, {x, of_pads}, 2);
      ExpectAsOnCpu("PadV2", {}, {x, of_pads, Bytes(dtype, Shape())}, 2);
      for (const char* mode : {"REFLECT", "SYMMETRIC"}) {
        Attrs attrs;
        attrs.Set("mode", std::string(mode));
        ExpectAsOnCpu("MirrorPad", attrs, {x, of_pads}, 2);
      }
    }
  }
}

TEST(MoveOnDevice, Gathers) {
  for (const DType dtype : kSizes) {
    const Tensor x = Bytes(dtype, Shape({2, 5, 3, 4}));
    for (int axis = 0; axis < 4; ++axis) {
      ExpectAsOnCpu("GatherV2", {}, {x, Ints({1, 0, 1, 1}).Reshaped(Shape({2, 2})), Int(axis)}, 6);
    }
    ExpectAsOnCpu("GatherV2", {}, {x, Tensor::Vector<int64_t>(DType::kInt64, {4, 2, 2}), Int(1)},
                  6);
    ExpectAsOnCpu("GatherV2", WithInt("batch_dims", 1),
                  {x, Ints({1, 2, 0, 0, 2, 1}).Reshaped(Shape({2, 3})), Int(2)}, 6);
  }
}

TEST(MoveOnDevice, RowsAloneHaveTheBitsOfABatch) {
  const Tensor x = RandomTensor(Shape({5, 6, 7}), 1);
  const auto check = [&](const std::string& op, const std::vector<Tensor>& inputs, uint64_t known) {
    const Tensor all = RunInEveryOrder(op, {}, inputs, known);
    ExpectRowsAlone(op, {}, inputs, 1, all, known);
  };
  check("Transpose", {x, Ints({0, 2, 1})}, 2);
  check("Pad", {x, Ints({0, 0, 1, 2, 3, 0}).Reshaped(Shape({3, 2}))}, 2);
  check("ReverseV2", {x, Ints({1})}, 2);
}

TEST(MoveOnDevice, RefusesWhatIsNotKnownAtLoad) {
  const Tensor x = RandomTensor(Shape({3, 4}), 1);
  EXPECT_FALSE(Computes("Transpose", {}, {x, Ints({1, 0})}));
  EXPECT_TRUE(Computes("Transpose", {}, {x, Ints({1, 0})}, 2));
  EXPECT_FALSE(Computes("GatherV2", {}, {x, Ints({1}), Int(0)}, 4));  // may lie outside
  EXPECT_FALSE(Computes("GatherV2", {}, {x, Ints({3}), Int(0)}, 6));
  EXPECT_FALSE(Computes("Pad", {}, {x, Ints({0, 0, 1, 1}).Reshaped(Shape({2, 2}))}));
  const Tensor text = Tensor::Allocate(DType::kString, Shape({2}));
  EXPECT_FALSE(Computes("ConcatV2", {}, {text, text, Int(0)}, 4));
  EXPECT_FALSE(Computes("MirrorPad", {}, {x, Ints({0, 0, 4, 0}).Reshaped(Shape({2, 2}))}, 2));
}

}  // namespace
}  // namespace floe::cuda
