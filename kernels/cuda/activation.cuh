// What products and convolutions do to their sums.
#pragma once

#include "kernels/cuda/functions.cuh"
#include "kernels/cuda/gemm_args.h"
#include "kernels/cuda/math.h"

namespace floe::cuda {

GPU_DEVICE float Relu(float x) { return x < 0 ? 0.0f : x; }
GPU_DEVICE float Elu(float x) { return x < 0 ? Expm1(x) : x; }

// Whether an activation is done where a thread's sums are unrolled. The others are called once, in
// a loop: unrolled, they are most of what ptxas has to do.
GPU_DEVICE bool IsCheap(Activation activation) {
  return activation == Activation::kNone || activation == Activation::kRelu ||
         activation == Activation::kRelu6 || activation == Activation::kLeakyRelu;
}
GPU_DEVICE float ActivateCheaply(float x, const EpilogueArgs& epilogue) {
  if (epilogue.activation == Activation::kRelu) return Relu(x);
  if (epilogue.activation == Activation::kRelu6) return x > 6.0f ? 6.0f : Relu(x);
  if (epilogue.activation == Activation::kLeakyRelu) return x < 0 ? x * epilogue.alpha : x;
  return x;
}

GPU_DEVICE_CALL float Activate(float x, Activation activation, float alpha) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return Relu(x);
    case Activation::kRelu6:
      return x > 6.0f ? 6.0f : Relu(x);
    case Activation::kSigmoid:
      return Sigmoid(x);
    case Activation::kTanh:
      return Tanh(x);
    case Activation::kElu:
      return Elu(x);
    case Activation::kSelu:
      return Elu(x) * (x < 0 ? 1.75809934f : 1.05070099f);
    case Activation::kSoftplus:
      return Softplus(x);
    case Activation::kSoftsign:
      return Div(x, 1.0f + Abs(x));
    case Activation::kExp:
      return Exp(x);
    case Activation::kLeakyRelu:
      return x < 0 ? x * alpha : x;
    case Activation::kSwish:
      return x * Sigmoid(x);
    case Activation::kGelu:
      return functions::Gelu(x);
    case Activation::kGeluTanh:
      return functions::GeluTanh(x);
    case Activation::kMish:
      return x * Tanh(Softplus(x));
  }
  return x;
}

// An epilogue for one sum at `at` of the output: without the activation, where that is not cheap.
GPU_DEVICE float FinishCheaply(float sum, const EpilogueArgs& epilogue, int64_t at, int column) {
  if (epilogue.bias != nullptr) sum += epilogue.bias[column];
  if (epilogue.residual != nullptr) sum += epilogue.residual[at];
  return ActivateCheaply(sum, epilogue);
}
GPU_DEVICE float Finish(float sum, const EpilogueArgs& epilogue, int64_t at, int column) {
  sum = FinishCheaply(sum, epilogue, at, column);
  if (IsCheap(epilogue.activation)) return sum;
  return Activate(sum, epilogue.activation, epilogue.alpha);
}

}  // namespace floe::cuda
