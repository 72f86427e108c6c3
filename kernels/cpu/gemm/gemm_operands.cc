#include "kernels/cpu/gemm/gemm_operands.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/gemm/packed_memory.h"
#include "kernels/cpu/isa.h"

namespace floe::kernels {
namespace {

constexpr int64_t kTransposeStep = 16;  // floats of a cache line

void CopyPadded(const float* bias, int64_t n, int64_t padded, float* to) {
  if (n > 0) std::memcpy(to, bias, n * sizeof(float));
  std::fill(to + n, to + padded, 0.0f);
}

}  // namespace

PackedWeights::PackedWeights(AlignedBuffer floats, Precision precision)
    : data_(std::move(floats)), bf16_(precision == Precision::kBf16) {
  if (!bf16_) return;
  const AlignedBuffer whole = std::exchange(data_, PackedMemory(data_.size() / 2));
  const auto* from = reinterpret_cast<const float*>(whole.data());
  std::copy_n(from, whole.size() / sizeof(float), reinterpret_cast<BFloat16*>(data_.data()));
}

void PackedWeights::PutInto(GemmTask* task, int64_t first) const {
  if (bf16_) {
    task->b_bf16 = as<BFloat16>() + first;
  } else {
    task->b = as<float>() + first;
  }
}

BiasOperand::BiasOperand(const KernelArgs& args, const Epilogue& epilogue,
                         const GemmKernels& kernels)
    : input_(epilogue.bias), lanes_(kernels.lanes) {
  if (input_ < 0 || !args.inputs[input_].has_constant()) return;
  const Tensor& bias = args.inputs[input_].constant;
  const int64_t n = bias.elements(), padded = n + kernels.lanes;
  constant_ = AlignedBuffer(padded * sizeof(float));
  CopyPadded(bias.as<float>(), n, padded, reinterpret_cast<float*>(constant_.data()));
}

const float* BiasOperand::Padded(const KernelContext& ctx, int64_t n, ScratchPieces& pieces) const {
  if (input_ < 0) return nullptr;
  if (constant_.size() != 0) return reinterpret_cast<const float*>(constant_.data());
  float* copy = pieces.Floats(n + lanes_);
  CopyPadded(ctx.in(input_).as<float>(), n, n + lanes_, copy);
  return copy;
}

void PackGroups(const GemmKernels& kernels, const float* filter, int64_t groups, int64_t k,
                int64_t n, float* packed) {
  for (int64_t g = 0; g < groups; ++g, filter += n, packed += kernels.PackedFloats(k, n)) {
    if (kernels.Narrow(k, n))
      TransposeCopy(filter, k, n, n * groups, packed, k);
    else
      PackGemm(kernels, filter, n * groups, 1, k, n, packed);
  }
}

absl::Status RunGroups(const GemmKernels& kernels, GemmTask task, int64_t groups, int64_t inputs,
                       int64_t rows, ThreadPool& pool) {
  task.narrow = kernels.Narrow(task.runs.k(), task.n);
  for (int64_t g = 0; g < groups; ++g) {
    FLOE_RETURN_IF_ERROR(RunGemm(kernels, task, rows, pool));
    task.a.base += inputs;
    task.b += kernels.PackedFloats(task.runs.k(), task.n);
    task.c += task.n;
    if (task.bias != nullptr) task.bias += task.n;
    if (task.residual != nullptr) task.residual += task.n;
  }
  return absl::OkStatus();
}

void TransposeCopy(const float* from, int64_t rows, int64_t columns, int64_t from_ld, float* to,
                   int64_t to_ld) {
  for (int64_t r0 = 0; r0 < rows; r0 += kTransposeStep) {
    const int64_t r1 = std::min(rows, r0 + kTransposeStep);
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t r = r0; r < r1; ++r) to[c * to_ld + r] = from[r * from_ld + c];
    }
  }
}

std::string NativeRoute(const GemmKernels& kernels) {
  return absl::StrCat("native ", kernels.tile_rows, "x", kernels.panel(), " ", IsaName());
}

}  // namespace floe::kernels
