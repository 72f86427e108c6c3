// Runs kernels of kCuda on the emulator, against others and against themselves.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/cpu/kernel_test_util.h"
#include "kernels/cuda/order_for_test.h"

namespace floe::cuda {

inline RunOptions OnDevice(uint64_t const_mask = 0) {
  RunOptions options;
  options.kernels.device = DeviceKind::kCuda;
  options.const_mask = const_mask;
  return options;
}

inline bool Computes(const std::string& op, const Attrs& attrs, const std::vector<Tensor>& inputs,
                     uint64_t const_mask = 0) {
  Node node;
  node.op = FindOp(op);
  node.attrs = attrs;
  std::vector<ValueInfo> infos;
  for (size_t i = 0; i < inputs.size(); ++i) {
    infos.push_back({{inputs[i].dtype(), SymShape(inputs[i].shape())}, {}, {}});
    if ((const_mask >> i) & 1) infos.back().constant = inputs[i];
  }
  return CanCompute({node, infos, OnDevice().kernels});
}

inline bool SameBits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.bytes() == b.bytes() &&
         (a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

// Output 0, with the same bits in every order of threads; an empty tensor and a failure otherwise.
inline Tensor RunInEveryOrder(const std::string& op, const Attrs& attrs,
                              const std::vector<Tensor>& inputs, uint64_t const_mask = 0) {
  EXPECT_TRUE(Computes(op, attrs, inputs, const_mask));
  Tensor first;
  for (const EmulatorOptions& options : EveryOrder()) {
    const ScopedEmulatorOptions scoped(options);
    const auto made = RunKernel(op, attrs, inputs, OnDevice(const_mask));
    EXPECT_TRUE(made.ok()) << made.status();
    if (!made.ok()) return first;
    if (!first.valid()) first = (*made)[0];
    EXPECT_TRUE(SameBits(first, (*made)[0])) << "bits follow the order of threads";
  }
  return first;
}

// Rows [begin, end) of dim 0.
inline Tensor RowsOf(const Tensor& from, int64_t begin, int64_t end) {
  Shape shape = from.shape();
  const size_t row = from.bytes() / static_cast<size_t>(shape.dim(0));
  shape.set_dim(0, end - begin);
  Tensor rows = Tensor::Allocate(from.dtype(), shape);
  std::memcpy(rows.mutable_data(), from.as<char>() + static_cast<size_t>(begin) * row,
              static_cast<size_t>(end - begin) * row);
  return rows;
}

// That each row alone has the bits of `all`. Inputs of `batched` have rows.
inline void ExpectRowsAlone(const std::string& op, const Attrs& attrs,
                            const std::vector<Tensor>& inputs, uint64_t batched, const Tensor& all,
                            uint64_t const_mask = 0) {
  for (int64_t row = 0; row < all.shape().dim(0); ++row) {
    std::vector<Tensor> of_row;
    for (size_t i = 0; i < inputs.size(); ++i)
      of_row.push_back((batched >> i) & 1 ? RowsOf(inputs[i], row, row + 1) : inputs[i]);
    const auto made = RunKernel(op, attrs, of_row, OnDevice(const_mask));
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_TRUE(SameBits((*made)[0], RowsOf(all, row, row + 1))) << "row " << row;
  }
}

// The difference to the exact result, as a part of `scale` or of the result if that is larger.
template <class Exact>
void ExpectNear(const Tensor& got, const Exact* exact, double part, double scale = 1) {
  double worst = 0;
  int64_t at = 0;
  for (int64_t i = 0; i < got.elements(); ++i) {
    const double want = exact[i], size = std::max(std::abs(want), scale);
    const double error = std::abs(got.as<float>()[i] - want) / size;
    if (!(error <= worst)) worst = error, at = i;
  }
  EXPECT_LE(worst, part) << "at " << at << " of " << got.shape().ToString() << ": "
                         << (got.elements() == 0 ? 0 : got.as<float>()[at]);
}

}  // namespace floe::cuda
