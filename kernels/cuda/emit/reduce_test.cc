// Reductions, normalisations, pools and resizes: against float64, or the CPU's where that computes
// the same operations.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "kernels/cuda/as_on_cpu_for_test.h"

namespace floe::cuda {
namespace {

// Around what lanes, warps and blocks hold.
constexpr int64_t kLengths[] = {1, 2, 31, 32, 33, 100, 255, 257, 1023, 1024, 1025, 5000};

TEST(ReduceOnDevice, RowsAgreeWithDoubles) {
  for (const int64_t n : kLengths) {
    SCOPED_TRACE(n);
    const Tensor x = RandomTensor(Shape({3, n}), static_cast<uint32_t>(n));
    std::vector<double> sum(3), mean(3), norm(3);
    for (int64_t i = 0; i < 3 * n; ++i) {
      const double value = x.as<float>()[i];
      sum[i / n] += value;
      norm[i / n] += value * value;
    }
    for (size_t r = 0; r < 3; ++r) {
      mean[r] = sum[r] / static_cast<double>(n);
      norm[r] = std::sqrt(norm[r]);
    }
    const auto size = static_cast<double>(n);
    ExpectNear(RunInEveryOrder("Sum", {}, {x, Int(-1)}, 2), sum.data(), 1e-7 * std::sqrt(size));
    ExpectNear(RunInEveryOrder("Mean", {}, {x, Int(1)}, 2), mean.data(), 2e-7);
    ExpectNear(RunInEveryOrder("EuclideanNorm", {}, {x, Int(1)}, 2), norm.data(), 2e-6);
    ExpectAsOnCpu("Max", {}, {x, Int(1)}, 2);
    ExpectAsOnCpu("Min", {}, {x, Int(1)}, 2);
  }
}

TEST(ReduceOnDevice, AnyAxes) {
  const std::vector<std::vector<int32_t>> axes = {
      {}, {0}, {1}, {2}, {3}, {0, 2}, {1, 2}, {1, 3}, {0, 1, 2, 3}, {2, 3}, {-1, 0}};
  for (const std::vector<int32_t>& some : axes) {
    for (const Shape& shape : {Shape({3, 4, 5, 6}), Shape({1, 33, 2, 1}), Shape({2, 1, 40, 3})}) {
      const Tensor x = RandomTensor(shape, 7);
      for (const char* op : {"Sum", "Mean", "Prod"}) {
        ExpectAsOnCpu(op, {}, {x, Ints(some)}, 2, 1e-5, 1e-2);
        ExpectAsOnCpu(op, {}, {Bytes(DType::kInt32, shape), Ints(some)}, 2);
        ExpectAsOnCpu(op, {}, {Bytes(DType::kInt64, shape), Ints(some)}, 2);
      }
      for (const char* op : {"Max", "Min"}) {
        ExpectAsOnCpu(op, {}, {x, Ints(some)}, 2);
        ExpectAsOnCpu(op, {}, {Bytes(DType::kInt32, shape), Ints(some)}, 2);
      }
      for (const char* op : {"All", "Any"})
        ExpectAsOnCpu(op, {}, {Bytes(DType::kBool, shape), Ints(some)}, 2);
    }
  }
}

TEST(ReduceOnDevice, NothingAndSpecialNumbers) {
  for (const char* op : {"Sum", "Mean", "Prod", "Max", "Min"}) {
    ExpectAsOnCpu(op, {}, {RandomTensor(Shape({2, 0}), 1), Int(1)}, 2, 1e-6);
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const Tensor x = FloatTensor(Shape({4, 3}), {1, NAN, 2, kInfinity, -kInfinity, 0, -kInfinity,
                                                 -kInfinity, -kInfinity, -0.0f, -0.0f, -0.0f});
    ExpectAsOnCpu(op, {}, {x, Int(1)}, 2, 1e-6);
    ExpectAsOnCpu(op, {}, {x, Int(0)}, 2, 1e-6);
  }
  const Tensor zeros = FloatTensor(Shape({2, 1}), {-0.0f, 0.0f});
  ExpectAsOnCpu("Sum", {}, {zeros, Int(1)}, 2);
  ExpectAsOnCpu("Sum", {}, {zeros, Int(0)}, 2);
}

TEST(ReduceOnDevice, RowsAloneHaveTheBitsOfABatch) {
  for (const int64_t n : kLengths) {
    const Tensor x = RandomTensor(Shape({5, n}), 3), deep = RandomTensor(Shape({4, 7, n}), 4);
    for (const char* op : {"Sum", "Mean", "EuclideanNorm"}) {
      ExpectRowsAlone(op, {}, {x, Int(1)}, 1, RunInEveryOrder(op, {}, {x, Int(1)}, 2), 2);
      ExpectRowsAlone(op, {}, {deep, Int(1)}, 1, RunInEveryOrder(op, {}, {deep, Int(1)}, 2), 2);
    }
    ExpectRowsAlone("Softmax", {}, {x}, 1, RunInEveryOrder("Softmax", {}, {x}));
  }
}

TEST(ArgMaxOnDevice, AgreesWithTheCpu) {
  for (const int64_t n : kLengths) {
    for (const char* op : {"ArgMax", "ArgMin"}) {
      ExpectAsOnCpu(op, {}, {RandomTensor(Shape({5, n}), 1), Int(1)}, 2);
      ExpectAsOnCpu(op, {}, {RandomTensor(Shape({n, 2, 3}), 1), Int(0)}, 2);
      ExpectAsOnCpu(op, {}, {Bytes(DType::kUInt8, Shape({3, n})), Int(1)}, 2);
      ExpectAsOnCpu(op, {}, {Bytes(DType::kInt32, Shape({3, n})), Int(-1)}, 2);
      ExpectAsOnCpu(op, {}, {FloatTensor(Shape({1, n}), std::vector<float>(n, 2)), Int(1)}, 2);
      ExpectAsOnCpu(op, {}, {FloatTensor(Shape({1, n}), std::vector<float>(n, NAN)), Int(1)}, 2);
    }
  }
}

TEST(NormalizeOnDevice, SoftmaxAgreesWithDoubles) {
  for (const int64_t n : kLengths) {
    SCOPED_TRACE(n);
    const Tensor x = RandomTensor(Shape({3, n}), static_cast<uint32_t>(n));
    std::vector<double> soft(static_cast<size_t>(3 * n)), log(soft.size());
    for (int64_t r = 0; r < 3; ++r) {
      double sum = 0;
      for (int64_t k = 0; k < n; ++k)
        sum += std::exp(static_cast<double>(x.as<float>()[r * n + k]));
      for (int64_t k = 0; k < n; ++k) {
        const double value = x.as<float>()[r * n + k];
        soft[static_cast<size_t>(r * n + k)] = std::exp(value) / sum;
        log[static_cast<size_t>(r * n + k)] = value - std::log(sum);
      }
    }
    ExpectNear(RunInEveryOrder("Softmax", {}, {x}), soft.data(), 1e-6, 0);
    ExpectNear(RunInEveryOrder("LogSoftmax", {}, {x}), log.data(), 1e-6);
  }
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Tensor special = FloatTensor(Shape({3, 2}), {0, NAN, -kInfinity, 0, kInfinity, 0});
  ExpectAsOnCpu("Softmax", {}, {special}, 0, 1e-6);
  ExpectAsOnCpu("Softmax", {}, {RandomTensor(Shape({0, 4}), 1)}, 0, 1e-6);
}

TEST(NormalizeOnDevice, LayerNormAgreesWithDoubles) {
  Attrs attrs;
  attrs.Set("epsilon", 1e-3f);
  for (const int64_t n : kLengths) {
    SCOPED_TRACE(n);
    const Tensor x = RandomTensor(Shape({3, n}), 1), scale = RandomTensor(Shape({n}), 2),
                 offset = RandomTensor(Shape({n}), 3);
    std::vector<double> want(static_cast<size_t>(3 * n));
    for (int64_t r = 0; r < 3; ++r) {
      const float* const row = x.as<float>() + r * n;
      double mean = 0, variance = 0;
      for (int64_t k = 0; k < n; ++k) mean += row[k] / static_cast<double>(n);
      for (int64_t k = 0; k < n; ++k)
        variance += (row[k] - mean) * (row[k] - mean) / static_cast<double>(n);
      for (int64_t k = 0; k < n; ++k)
        want[static_cast<size_t>(r * n + k)] =
            (row[k] - mean) / std::sqrt(variance + 1e-3f) * scale.as<float>()[k] +
            offset.as<float>()[k];
    }
    const Tensor got = RunInEveryOrder("LayerNorm", attrs, {x, scale, offset}, 6);
    ExpectNear(got, want.data(), 2e-6);
    ExpectRowsAlone("LayerNorm", attrs, {x, scale, offset}, 1, got, 6);
  }
}

TEST(NormalizeOnDevice, BatchNorm) {
  for (const char* format : {"NHWC", "NCHW"}) {
    Attrs attrs;
    attrs.Set("is_training", false);
    attrs.Set("epsilon", 1e-3f);
    attrs.Set("data_format", std::string(format));
    const auto channels = [](uint32_t seed) { return RandomTensor(Shape({4}), seed); };
    Tensor variance = Tensor::Allocate(DType::kFloat32, Shape({4}));
    for (int i = 0; i < 4; ++i)
      static_cast<float*>(variance.mutable_data())[i] = 0.5f + static_cast<float>(i);
    ExpectAsOnCpu(
        "FusedBatchNorm", attrs,
        {RandomTensor(Shape({2, 4, 3, 4}), 1), channels(2), channels(3), channels(4), variance}, 30,
        1e-6, 1e-3);
  }
}

Attrs WindowOf(std::vector<int64_t> kernel, std::vector<int64_t> stride, const char* padding) {
  Attrs attrs;
  attrs.Set("ksize", std::move(kernel));
  attrs.Set("strides", std::move(stride));
  attrs.Set("padding", std::string(padding));
  return attrs;
}

TEST(ImageOnDevice, Pools) {
  const Tensor image = RandomTensor(Shape({2, 9, 7, 5}), 1),
               volume = RandomTensor(Shape({2, 5, 6, 7, 3}), 2);
  for (const char* padding : {"SAME", "VALID"}) {
    for (const int64_t stride : {1, 2, 3}) {
      const Attrs flat = WindowOf({1, 3, 2, 1}, {1, stride, 2, 1}, padding),
                  deep = WindowOf({1, 2, 3, 3, 1}, {1, stride, 2, 1, 1}, padding);
      ExpectAsOnCpu("MaxPool", flat, {image});
      ExpectAsOnCpu("AvgPool", flat, {image}, 0, 1e-6, 1e-3);
      ExpectAsOnCpu("MaxPool3D", deep, {volume});
      ExpectAsOnCpu("AvgPool3D", deep, {volume}, 0, 1e-6, 1e-2);
    }
  }
  const Attrs attrs = WindowOf({1, 3, 3, 1}, {1, 2, 2, 1}, "SAME");
  ExpectRowsAlone("AvgPool", attrs, {image}, 1, RunInEveryOrder("AvgPool", attrs, {image}));
}

TEST(ImageOnDevice, Resizes) {
  const Tensor image = RandomTensor(Shape({2, 5, 7, 3}), 1);
  for (const auto& [height, width] : {std::pair{10, 14}, {3, 4}, {5, 7}, {1, 1}, {13, 2}}) {
    for (int options = 0; options < 3; ++options) {
      Attrs attrs;
      attrs.Set("align_corners", options == 1);
      attrs.Set("half_pixel_centers", options == 2);
      ExpectAsOnCpu("ResizeBilinear", attrs, {image, Ints({height, width})}, 2, 1e-6, 1);
      ExpectAsOnCpu("ResizeNearestNeighbor", attrs, {image, Ints({height, width})}, 2);
      ExpectAsOnCpu("ResizeNearestNeighbor", attrs,
                    {Bytes(DType::kUInt8, Shape({2, 5, 7, 3})), Ints({height, width})}, 2);
    }
  }
}

TEST(ReduceOnDevice, RefusesWhatItCannotCompute) {
  const Tensor x = RandomTensor(Shape({3, 4}), 1);
  EXPECT_FALSE(Computes("Sum", {}, {x, Int(1)}));  // which axis?
  EXPECT_FALSE(Computes("Sum", {}, {Bytes(DType::kFloat64, Shape({3})), Int(0)}, 2));
  EXPECT_FALSE(Computes("ArgMax", {}, {x, Int(1)}));
  Attrs training;
  training.Set("is_training", true);
  const Tensor c = RandomTensor(Shape({4}), 1);
  EXPECT_FALSE(
      Computes("FusedBatchNorm", training, {RandomTensor(Shape({1, 2, 2, 4}), 1), c, c, c, c}));
  EXPECT_FALSE(Computes("MaxPool", WindowOf({1, 1, 1, 2}, {1, 1, 1, 2}, "VALID"),
                        {RandomTensor(Shape({1, 2, 2, 4}), 1)}));
}

}  // namespace
}  // namespace floe::cuda
