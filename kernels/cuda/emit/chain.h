// Programs for the kernels `chain` and `chain_any`: made of a node's ops once, and of shapes and
// addresses at each launch.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "kernels/cuda/chain_args.h"
#include "kernels/cuda/launch.h"
#include "model/tensor.h"

namespace floe::cuda {

// The element of a dtype that kernels compute with.
std::optional<Element> ElementOfDType(DType dtype);

// An op, by floe's name. `operands`: the chain's inputs, then the results of its steps.
struct OpOfChain {
  std::string op;
  std::vector<int> operands;
  DType result;
  float alpha = 0;
};

class ChainProgram {
 public:
  // UNIMPLEMENTED for an op or a dtype that the kernels have not.
  static absl::StatusOr<ChainProgram> Make(absl::Span<const DType> inputs,
                                           absl::Span<const OpOfChain> ops);

  // `inputs` broadcast to `out` as NumPy's. At most kChainDims dims. `line_strides`: as in
  // KernelContext, of inputs with the shape of `out`; empty: none lies apart.
  void Emit(absl::Span<const TensorView> inputs, const TensorView& out,
            absl::Span<const int64_t> line_strides, std::vector<Launch>* launches) const;

 private:
  absl::Status AddSteps(absl::Span<const DType> inputs, absl::Span<const OpOfChain> ops, bool any);

  KernelId kernel_ = KernelId::chain;
  ChainArgs args_{};
};

// Whether the kernels know the op for the dtype of its first operand (Select: of its second).
bool IsChainOp(const std::string& op, DType dtype);
// All ops that they know for a dtype, with the number of their operands and whether they give
// bools.
struct ChainOpName {
  const char* name;
  int operands;
  bool gives_bool;
};
std::vector<ChainOpName> ChainOpsOf(DType dtype);

}  // namespace floe::cuda
