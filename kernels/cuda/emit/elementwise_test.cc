// Element-wise kernels against the CPU's.
#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <random>

#include "kernels/cpu/dtypes.h"
#include "kernels/cuda/as_on_cpu_for_test.h"
#include "kernels/cuda/emit/chain.h"
#include "model/ops/fused_elementwise.h"

namespace floe::cuda {
namespace {

// Special numbers, and others over the range where functions differ from their limits. 0: of both
// signs only where a test says so.
std::vector<float> Numbers(size_t count, uint32_t seed) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> numbers = {0,    1,         -1,         0.5f, -0.5f, 2.5f,   -2.5f,
                                3.5f, 1e-20f,    -1e-20f,    20,   -20,   100,    -100,
                                1e30, kInfinity, -kInfinity, NAN,  1e-7f, -0.999f};
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> more(-9, 9);
  while (numbers.size() < count) numbers.push_back(more(random));
  return numbers;
}

Tensor Floats(const Shape& shape, uint32_t seed) {
  return FloatTensor(shape, Numbers(static_cast<size_t>(shape.elements()), seed));
}

// What the emulator's functions and the CPU's may differ by.
double PartOf(const std::string& op) {
  if (op == "Gelu" || op == "GeluTanh") return 3e-5;  // far below 0, where both lose digits
  return op == "Pow" || op == "Erfc" || op == "Mish" ? 4e-6 : 1e-6;
}

TEST(ElementwiseOnDevice, FunctionsOfFloats) {
  for (const ChainOpName& op : ChainOpsOf(DType::kFloat32)) {
    const Tensor x = Floats(Shape({1200}), 1);
    std::vector<Tensor> inputs = {x};
    if (op.operands == 2) {
      std::vector<float> other = Numbers(1200, 2);
      std::reverse(other.begin() + 100, other.end());
      inputs.push_back(FloatTensor(Shape({1200}), other));
    }
    if (op.operands == 3) {
      inputs.push_back(FloatTensor(Shape(), {-2}));
      inputs.push_back(FloatTensor(Shape(), {3}));
    }
    // Sums and functions that vanish are compared with 1e-7.
    ExpectAsOnCpu(op.name, {}, inputs, 0, PartOf(op.name), 1e-7);
  }
}

template <class T>
Tensor Wholes(uint32_t seed) {
  std::vector<T> values = {
      0, 1, 2, 7, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
  if (std::is_signed_v<T>) values.push_back(static_cast<T>(-1));
  std::mt19937_64 random(seed);
  while (values.size() < 300) values.push_back(static_cast<T>(random()));
  if (seed % 2 == 0) std::reverse(values.begin(), values.end());
  return Tensor::Vector(kernels::kDTypeOf<T>, values);
}

template <class T>
void CompareFunctionsOfIntegers() {
  const DType dtype = kernels::kDTypeOf<T>;
  for (const ChainOpName& op : ChainOpsOf(dtype)) {
    SCOPED_TRACE(DTypeName(dtype));
    std::vector<Tensor> inputs = {Wholes<T>(1)};
    if (op.operands == 2) inputs.push_back(Wholes<T>(2));
    if (op.operands == 3) {
      inputs.push_back(Tensor::Scalar<T>(dtype, 2));
      inputs.push_back(Tensor::Scalar<T>(dtype, 5));
    }
    if (FindKernel(op.name, DeviceKind::kCpu, dtype) == nullptr) continue;
    ExpectAsOnCpu(op.name, {}, inputs);
  }
}
TEST(ElementwiseOnDevice, FunctionsOfIntegers) {
  CompareFunctionsOfIntegers<int8_t>();
  CompareFunctionsOfIntegers<int16_t>();
  CompareFunctionsOfIntegers<int32_t>();
  CompareFunctionsOfIntegers<int64_t>();
  CompareFunctionsOfIntegers<uint8_t>();
  CompareFunctionsOfIntegers<uint16_t>();
  CompareFunctionsOfIntegers<uint32_t>();
}

TEST(ElementwiseOnDevice, FunctionsOfBools) {
  const Tensor a = Bytes(DType::kBool, Shape({70})), b = Bytes(DType::kBool, Shape({7, 1}));
  for (const ChainOpName& op : ChainOpsOf(DType::kBool)) {
    if (op.operands == 2) {
      ExpectAsOnCpu(op.name, {}, {a, b});
    } else {
      ExpectAsOnCpu(op.name, {}, {a});
    }
  }
}

TEST(ElementwiseOnDevice, Broadcasts) {
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {Shape({4, 3, 5}), Shape({5})},
      {Shape({4, 3, 5}), Shape()},
      {Shape({4, 3, 5}), Shape({4, 1, 1})},
      {Shape({4, 1, 5}), Shape({4, 3, 1})},
      {Shape({2, 3, 4, 5}), Shape({3, 1, 5})},
      {Shape({1, 3}), Shape({700, 1})},
      {Shape({5, 1, 7}), Shape({1, 6, 1})},
      {Shape({1}), Shape({1, 1})},
      {Shape({3, 0}), Shape({1})},
      {Shape({2, 2, 2, 2, 2, 3}), Shape({2, 1, 2, 1, 3})},
      {Shape({1030}), Shape({1030})},
      {Shape({1, 1, 4}), Shape({2, 3, 1})}};
  for (const auto& [a, b] : shapes) {
    SCOPED_TRACE(a.ToString() + " and " + b.ToString());
    ExpectAsOnCpu("Sub", {}, {RandomTensor(a, 1), RandomTensor(b, 2)});
    ExpectAsOnCpu("Less", {}, {RandomTensor(b, 1), RandomTensor(a, 2)});
    ExpectAsOnCpu("Mul", {}, {Bytes(DType::kInt32, a), Bytes(DType::kInt32, b)});
  }
}

TEST(ElementwiseOnDevice, Casts) {
  const std::vector<DType> types = {DType::kFloat32, DType::kBool,   DType::kInt8,
                                    DType::kInt16,   DType::kInt32,  DType::kInt64,
                                    DType::kUInt8,   DType::kUInt16, DType::kUInt32};
  for (const DType from : types) {
    for (const DType to : types) {
      SCOPED_TRACE(std::string(DTypeName(from)) + " to " + DTypeName(to));
      Attrs attrs;
      attrs.Set("DstT", to);
      Tensor x = Bytes(from, Shape({300}));
      if (from == DType::kFloat32) {
        std::vector<float> numbers = Numbers(200, 5);
        for (const float edge : {2147483648.0f, -2147483648.0f, 4294967296.0f, 9.3e18f, -9.3e18f})
          numbers.push_back(edge);
        x = FloatTensor(Shape({205}), numbers);
      }
      ExpectAsOnCpu("Cast", attrs, {x});
    }
  }
}

TEST(ElementwiseOnDevice, SelectsAndBiases) {
  const Tensor rows = Bytes(DType::kBool, Shape({6})), all = Bytes(DType::kBool, Shape({6, 4}));
  const Tensor a = RandomTensor(Shape({6, 4}), 1), b = RandomTensor(Shape({6, 4}), 2);
  ExpectAsOnCpu("Select", {}, {rows, a, b});
  ExpectAsOnCpu("Select", {}, {all, a, b});
  ExpectAsOnCpu("SelectV2", {}, {Bytes(DType::kBool, Shape({6, 1})), a, FloatTensor(Shape(), {7})});
  ExpectAsOnCpu("SelectV2", {},
                {all, Bytes(DType::kInt64, Shape({6, 4})), Bytes(DType::kInt64, Shape({4}))});
  ExpectAsOnCpu("BiasAdd", {}, {a, RandomTensor(Shape({4}), 3)});
  Attrs channels_first;
  channels_first.Set("data_format", std::string("NCHW"));
  ExpectAsOnCpu("BiasAdd", channels_first,
                {RandomTensor(Shape({2, 3, 4, 5}), 1), RandomTensor(Shape({3}), 2)});
}

TEST(ElementwiseOnDevice, AddsAnyNumberOfInputs) {
  std::vector<Tensor> inputs;
  for (uint32_t i = 0; i < 18; ++i) {
    inputs.push_back(RandomTensor(Shape({3, 50}), i));
    ExpectAsOnCpu("AddN", {}, inputs);
  }
}

// Each step takes what the one before it left, the first one input 0, and beside that inputs or
// earlier results at random.
std::vector<ops::FusedStep> RandomSteps(int inputs, int count, std::mt19937* random) {
  constexpr const char* kOps[] = {"Add", "Mul", "Sub", "Maximum", "Neg", "Relu", "Greater"};
  std::vector<ops::FusedStep> steps(static_cast<size_t>(count));
  std::vector<int> floats(static_cast<size_t>(inputs));  // operands
  std::iota(floats.begin(), floats.end(), 0);
  bool condition = false;  // what the step before left
  for (int s = 0; s < count; ++s) {
    const auto any = [&] { return floats[(*random)() % floats.size()]; };
    std::string op = condition ? "SelectV2" : kOps[(*random)() % 7];
    if (op == "Greater" && s + 1 == count) op = "Add";
    ops::FusedStep& step = steps[static_cast<size_t>(s)];
    step.node.op = FindOp(op);
    step.node.attrs.Set("alpha", 0.2f);
    step.operands.push_back(s == 0 ? 0 : inputs + s - 1);
    if (condition) step.operands.push_back(any());
    if (op != "Neg" && op != "Relu") step.operands.push_back(any());
    condition = op == "Greater";
    if (!condition) floats.push_back(inputs + s);
  }
  return steps;
}

TEST(ElementwiseOnDevice, Chains) {
  std::mt19937 random(3);
  int chains = 0;
  for (int round = 0; round < 60; ++round) {
    const int inputs = 1 + round % ops::kMaxFusedInputs;
    const auto steps = RandomSteps(inputs, 1 + static_cast<int>(random() % 16), &random);
    Attrs attrs;
    ops::SetFusedSteps(steps, &attrs);
    std::vector<Tensor> values = {RandomTensor(Shape({5, 3, 37}), 1)};
    const Shape shapes[] = {Shape({37}), Shape({5, 1, 1}), Shape(), Shape({3, 1}),
                            Shape({5, 3, 37})};
    for (int i = 1; i < inputs; ++i)
      values.push_back(RandomTensor(shapes[i % 5], static_cast<uint32_t>(i)));
    RunOptions on_cpu;
    if (!RunKernel("FusedElementwise", attrs, values, on_cpu).ok()) continue;
    SCOPED_TRACE(round);
    ++chains;
    ExpectAsOnCpu("FusedElementwise", attrs, values);
  }
  EXPECT_GT(chains, 30);
}

TEST(ElementwiseOnDevice, RefusesWhatItCannotCompute) {
  const Tensor doubles = Bytes(DType::kFloat64, Shape({3}));
  EXPECT_FALSE(Computes("Add", {}, {doubles, doubles}));
  const Tensor whole = Ints({1, 2});
  EXPECT_FALSE(Computes("FloorDiv", {}, {whole, whole}));  // which may divide by 0
  const Tensor wide = RandomTensor(Shape({1, 1, 1, 1, 1, 1, 2}), 1);
  EXPECT_FALSE(Computes("Add", {}, {wide, wide}));
  Attrs to_double;
  to_double.Set("DstT", DType::kFloat64);
  EXPECT_FALSE(Computes("Cast", to_double, {whole}));
  EXPECT_TRUE(Computes("Add", {}, {whole, whole}));
}

}  // namespace
}  // namespace floe::cuda
