// Cheap element-wise ops of float32 one after the other, with what one leaves for the next in
// registers. One implementation for every ISA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace floe::kernels {

enum class ChainOp : uint8_t {
  kAdd,
  kSub,      // so far - operand
  kSubFrom,  // operand - so far
  kMul,
  kDiv,      // so far / operand
  kDivInto,  // operand / so far
  kRelu,
  kRelu6,
};

inline bool IsRelu(ChainOp op) { return op == ChainOp::kRelu || op == ChainOp::kRelu6; }

// One op. `step` 1: the operand runs with the elements; 0: one element for all. Relus have none.
struct ChainLink {
  ChainOp op = ChainOp::kAdd;
  const float* operand = nullptr;
  int64_t step = 0;
};

// y[i] for i in [0, n): x[i * step] after all links, with the bits that each op alone gives. `y`
// may be x or an operand, no other overlap. No alignment needed; n may be 0.
using ChainF32 = void (*)(const float* x, int64_t step, const ChainLink* links, size_t count,
                          float* y, size_t n);
ChainF32 PickChainF32();  // for this CPU; call once, when the kernel is made

// The link that a graph's op is, if it is one. `second`: what is so far is its second operand.
std::optional<ChainOp> ChainOpOf(const std::string& op, bool second);

}  // namespace floe::kernels
