// MatMul and BatchMatMul: what their backends share.
#pragma once

#include <memory>

#include "kernels/kernel.h"
#include "model/epilogue.h"

namespace floe::kernels {

// One product C[m, n] = A * B of a run.
struct MatMulCall {
  const KernelContext& ctx;
  int64_t m, k, n;
  const void* a;    // [m, k], or [k, m] when transpose_a
  const void* b;    // [k, n], or [n, k] when transpose_b
  int64_t b_index;  // which of B's matrices; equal indices mean equal b
  bool b_is_new;    // the previous call of this run had another b
  void* c;
};

// Walks the batch dims with broadcasting. A B without batch dims is multiplied with all of A at
// once.
class MatMulKernel : public Kernel {
 public:
  MatMulKernel(const KernelArgs& args, const Epilogue& epilogue);
  absl::Status Run(const KernelContext& ctx) const final;

 protected:
  // Fails as a RunWatch does.
  virtual absl::Status Multiply(const MatMulCall& call) const = 0;

  const bool transpose_a_, transpose_b_;
  const Epilogue epilogue_;
};

// Sizes of the last two dims, transposition undone.
struct MatMulSizes {
  int64_t m, k, n, b_k;
  MatMulSizes(const Shape& a, const Shape& b, bool transpose_a, bool transpose_b);
};

// Plain loops, float64 sums for floating types: the oracle, and the only form for types other than
// float32. Factors may be of other types than the result (attribute Tout); UNIMPLEMENTED names the
// types that have no form.
absl::StatusOr<std::unique_ptr<Kernel>> MakePlainMatMul(const KernelArgs& args,
                                                        const Epilogue& epilogue);
std::unique_ptr<Kernel> MakeNativeMatMul(const KernelArgs& args, const Epilogue& epilogue);
absl::StatusOr<std::unique_ptr<Kernel>> MakeBlasMatMul(const KernelArgs& args,
                                                       const Epilogue& epilogue);

}  // namespace floe::kernels
