#include "kernels/cuda/emit/product.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/gemm/epilogue_inputs.h"

namespace floe::cuda {

EpilogueArgs EpilogueArgsOf(const DeviceAddresses& addresses, const Epilogue& epilogue) {
  return {kernels::BiasOf<float>(addresses, epilogue),
          kernels::ResidualOf<float>(addresses, epilogue), epilogue.activation, epilogue.alpha};
}

bool Aligned(const EpilogueArgs& epilogue) {
  return Aligned(epilogue.bias) && Aligned(epilogue.residual);
}

int64_t SideOf(TileSide side) {
  return side == TileSide::k128 ? 128 : side == TileSide::k64 ? 64 : 32;
}

TileSide TileSideFor(int64_t m, int64_t n, int64_t products, Precision precision) {
  if (precision != Precision::kFloat32) return TileSide::k64;
  constexpr int64_t kEnough = 132;  // blocks: an H100's multiprocessors
  for (const TileSide side : {TileSide::k128, TileSide::k64}) {
    const int64_t length = SideOf(side);
    // A tile that is half empty computes in vain.
    if (std::min(m, n) * 2 <= length) continue;
    if (Blocks(m, length) * int64_t{Blocks(n, length)} * products >= kEnough) return side;
  }
  return TileSide::k32;
}

std::string RouteOf(Precision precision) {
  if (precision == Precision::kFloat32) return "";
  return precision == Precision::kTf32 ? "tensor cores, tf32" : "tensor cores, bf16";
}

void AppendGemm(GemmArgs args, int64_t products, std::vector<Launch>* launches,
                Precision precision) {
  // Rows for which the kernel that reads B once for eight of them is the fastest.
  constexpr int64_t kThinRows = 16;
  constexpr int64_t kMostProducts = 65535;  // of a launch
  const bool thin = args.m <= kThinRows && precision == Precision::kFloat32;
  const TileSide side = TileSideFor(args.m, args.n, products, precision);
  const KernelId kernel = thin                            ? KernelId::gemm_thin
                          : precision == Precision::kTf32 ? KernelId::gemm_tf32
                          : precision == Precision::kBf16 ? KernelId::gemm_bf16
                          : side == TileSide::k128        ? KernelId::gemm_128x128
                          : side == TileSide::k64         ? KernelId::gemm_64x64
                                                          : KernelId::gemm_32x32;
  const int64_t rows = thin ? 8 : SideOf(side), columns = thin ? 32 : SideOf(side);
  for (int64_t first = 0; first < products; first += kMostProducts) {
    args.first_product = first;
    const auto count = static_cast<uint32_t>(std::min(kMostProducts, products - first));
    launches->push_back(
        Launch::Of(kernel, {Blocks(args.m, rows), Blocks(args.n, columns), count}, args));
  }
}

Tensor AllocateFactors(int64_t count, int64_t k, int64_t n) {
  Tensor factors = Tensor::Allocate(DType::kFloat32, Shape({count, k, FactorColumns(n)}));
  if (factors.bytes() != 0) std::memset(factors.mutable_data(), 0, factors.bytes());
  return factors;
}

FactorArgs PackedFactor(const float* at, int64_t n) {
  const int64_t columns = FactorColumns(n);
  return {at, columns, 1, Aligned(at), static_cast<int32_t>(columns)};
}

FactorArgs PlainFactor(const float* at, int64_t row, int64_t column, int64_t n, int64_t align) {
  const bool vectors = column == 1 && row % 4 == 0 && n % 4 == 0 && align % 4 == 0 && Aligned(at);
  return {at, row, column, vectors, static_cast<int32_t>(n)};
}

bool KnownInside(const SymShape& shape) {
  if (!shape.rank_known()) return false;
  for (int i = 1; i < shape.rank(); ++i) {
    if (!shape.dim(i).concrete()) return false;
  }
  return true;
}

bool BiasFits(const KernelArgs& args, const Epilogue& epilogue, Dim columns) {
  if (!epilogue.has_bias()) return true;
  const SymShape& bias = args.inputs[static_cast<size_t>(epilogue.bias)].type.shape;
  return bias.rank_known() && bias.rank() == 1 && Same(bias.dim(0), columns);
}

}  // namespace floe::cuda
