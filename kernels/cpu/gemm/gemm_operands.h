// What kernels over the packed GEMM share: pieces of scratch, the bias, transposed copies.
#pragma once

#include <initializer_list>
#include <string>

#include "base/aligned_buffer.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/kernel.h"

namespace floe::kernels {

// Loops of small products look at the time once in so many: the products do not.
inline constexpr int64_t kUnwatchedProducts = 64;

// Hands out aligned pieces of a kernel's scratch, in the order of the calls.
class ScratchPieces {
 public:
  explicit ScratchPieces(std::byte* scratch) : next_(scratch) {}
  float* Floats(int64_t count) {
    if (count == 0) return nullptr;
    float* piece = reinterpret_cast<float*>(next_);
    next_ += AlignUp(static_cast<size_t>(count) * sizeof(float));
    return piece;
  }
  // Bytes that hold pieces of these sizes. Affine in each size, as Kernel::ScratchBytes demands:
  // not rounded up.
  static int64_t Bytes(std::initializer_list<int64_t> floats) {
    int64_t bytes = 0;
    for (int64_t count : floats)
      bytes += count * static_cast<int64_t>(sizeof(float)) + static_cast<int64_t>(kAlignment);
    return bytes;
  }

 private:
  std::byte* next_;
};

// The product of sizes that need not belong to one tensor. More floats than any machine has where
// it would not fit 64 bits, so that such scratch is refused and not taken too small.
inline int64_t ScratchFloats(std::initializer_list<int64_t> sizes) {
  constexpr int64_t kTooMany = int64_t{1} << 50;
  int64_t floats = 1;
  for (int64_t size : sizes) {
    if (__builtin_mul_overflow(floats, size, &floats) || floats > kTooMany) return kTooMany;
  }
  return floats;
}

// An upper bound of PackedFloats that is affine in k and in n.
inline int64_t PackedBound(const GemmKernels& kernels, int64_t k, int64_t n) {
  return k * (n + kernels.lanes - 1);
}

// Weights in the form that a kernel's loops read: as they were packed, or rounded to bfloat16.
class PackedWeights {
 public:
  PackedWeights() = default;
  PackedWeights(AlignedBuffer floats, Precision precision);
  bool bf16() const { return bf16_; }
  // W: float, or BFloat16 where it is bf16().
  template <class W>
  const W* as() const {
    return reinterpret_cast<const W*>(data_.data());
  }
  size_t size() const { return data_.size(); }  // in bytes

  // Makes the matrix from number `first` on the right side of a product.
  void PutInto(GemmTask* task, int64_t first = 0) const;

 private:
  AlignedBuffer data_;
  bool bf16_ = false;
};

// The bias of a node with a vector of zeros behind it, so that whole vectors may be read from any
// element on. Copied once when constant, else in each run.
class BiasOperand {
 public:
  BiasOperand(const KernelArgs& args, const Epilogue& epilogue, const GemmKernels& kernels);
  int64_t ScratchFloats(int64_t n) const {
    return input_ >= 0 && constant_.size() == 0 ? n + lanes_ : 0;
  }
  // Null when there is none. `pieces` gives room for a bias that is not constant.
  const float* Padded(const KernelContext& ctx, int64_t n, ScratchPieces& pieces) const;

 private:
  int input_;  // -1: no bias
  int64_t lanes_;
  AlignedBuffer constant_;
};

// A filter [k, n * groups] as one packed matrix for each group, PackedFloats(k, n) apart; narrow
// where that gains.
void PackGroups(const GemmKernels& kernels, const float* filter, int64_t groups, int64_t k,
                int64_t n, float* packed);
// The products of all groups of a convolution, packed so. `task` is that of the first; the others
// read `inputs` floats further in A each, and write task.n further.
absl::Status RunGroups(const GemmKernels& kernels, GemmTask task, int64_t groups, int64_t inputs,
                       int64_t rows, ThreadPool& pool);

// to[c * to_ld + r] = from[r * from_ld + c].
void TransposeCopy(const float* from, int64_t rows, int64_t columns, int64_t from_ld, float* to,
                   int64_t to_ld);

// "native 8x32 avx512"
std::string NativeRoute(const GemmKernels& kernels);

}  // namespace floe::kernels
