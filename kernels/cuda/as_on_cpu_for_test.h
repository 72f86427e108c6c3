// Compares kernels of kCuda, on the emulator, with those of the CPU.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/cuda/device_for_test.h"

namespace floe::cuda {

// The same number, or one `part` of it (of `scale`, if that is larger) away.
inline bool AreNear(float got, float want, double part, double scale = 1e-30) {
  if (std::isnan(want)) return std::isnan(got);
  if (got == want) return true;
  if (!std::isfinite(want) || !std::isfinite(got)) return false;
  const double size = std::max(std::abs(static_cast<double>(want)), scale);
  return std::abs(static_cast<double>(got) - want) <= part * size;
}

inline void ExpectAlike(const Tensor& got, const Tensor& want, double part, double scale) {
  ASSERT_EQ(got.dtype(), want.dtype());
  ASSERT_EQ(got.shape(), want.shape());
  if (want.dtype() != DType::kFloat32 || part == 0) {
    EXPECT_TRUE(SameBits(got, want));
    return;
  }
  for (int64_t i = 0; i < want.elements(); ++i) {
    ASSERT_TRUE(AreNear(got.as<float>()[i], want.as<float>()[i], part, scale))
        << "element " << i << " is " << got.as<float>()[i] << ", on the CPU "
        << want.as<float>()[i];
  }
}

// Every output, in every order of threads; `part` 0: to the bit.
inline void ExpectAsOnCpu(const std::string& op, const Attrs& attrs,
                          const std::vector<Tensor>& inputs, uint64_t const_mask = 0,
                          double part = 0, double scale = 1e-30) {
  SCOPED_TRACE(op);
  ASSERT_TRUE(Computes(op, attrs, inputs, const_mask));
  RunOptions on_cpu;
  on_cpu.const_mask = const_mask;
  const auto want = RunKernel(op, attrs, inputs, on_cpu);
  ASSERT_TRUE(want.ok()) << want.status();
  std::vector<Tensor> first;
  for (const EmulatorOptions& order : EveryOrder()) {
    const ScopedEmulatorOptions scoped(order);
    const auto got = RunKernel(op, attrs, inputs, OnDevice(const_mask));
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->size(), want->size());
    for (size_t k = 0; k < want->size(); ++k) {
      ExpectAlike((*got)[k], (*want)[k], part, scale);
      if (!first.empty()) {
        EXPECT_TRUE(SameBits(first[k], (*got)[k])) << "bits follow the order of threads";
      }
    }
    first = *got;
  }
}

// Elements of any dtype that moves: bytes that count, with the odd one set.
inline Tensor Bytes(DType dtype, const Shape& shape) {
  Tensor t = Tensor::Allocate(dtype, shape);
  auto* const bytes = static_cast<uint8_t*>(t.mutable_data());
  for (size_t i = 0; i < t.bytes(); ++i)
    bytes[i] = static_cast<uint8_t>(dtype == DType::kBool ? i % 3 == 0 : i * 37 + i / 256);
  return t;
}
inline Tensor Ints(const std::vector<int32_t>& values) {
  return Tensor::Vector(DType::kInt32, values);
}
inline Tensor Int(int32_t value) { return Tensor::Scalar(DType::kInt32, value); }

}  // namespace floe::cuda
