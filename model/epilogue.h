// What a product or convolution does to its own result before it writes it: passes move what
// follows the node into it.
#pragma once

#include <cstdint>

namespace floe {

class Attrs;

enum class Activation : uint8_t {
  kNone,
  kRelu,
  kRelu6,
  kSigmoid,
  kTanh,
  kElu,
  kSelu,
  kSoftplus,
  kSoftsign,
  kExp,
  kLeakyRelu,
  kSwish,  // x * Sigmoid(x)
  kGelu,
  kGeluTanh,
  kMish
};

// In this order: the bias is added, then the residual, then the activation is applied.
struct Epilogue {
  Activation activation = Activation::kNone;
  float alpha = 0.2f;  // LeakyRelu's slope
  // Inputs of the node; -1: there is none.
  int bias = -1;      // a number for each channel or column
  int residual = -1;  // of the output's shape

  bool has_bias() const { return bias >= 0; }
  bool has_residual() const { return residual >= 0; }
  // How many inputs it adds to those of the op.
  int inputs() const { return (has_bias() ? 1 : 0) + (has_residual() ? 1 : 0); }
  bool operator==(const Epilogue&) const = default;
};

// That of a node with these attributes. Files cannot write one.
Epilogue EpilogueOf(const Attrs& attrs);
void SetEpilogue(const Epilogue& epilogue, Attrs* attrs);

}  // namespace floe
