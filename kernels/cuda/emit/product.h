// What emitters of products and convolutions share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/device_kernel.h"
#include "kernels/cuda/gemm_args.h"
#include "model/epilogue.h"
#include "model/tensor.h"

namespace floe::cuda {

// Whether 16 bytes may be read or written there.
inline bool Aligned(const void* at) { return reinterpret_cast<uintptr_t>(at) % 16 == 0; }

EpilogueArgs EpilogueArgsOf(const DeviceAddresses& addresses, const Epilogue& epilogue);
// Whether four columns of bias and residual may be read at once.
bool Aligned(const EpilogueArgs& epilogue);

// The sides of the tiles of a product. All give the same bits.
enum class TileSide : uint8_t { k128, k64, k32 };
// By how many blocks there are: with the largest tile that keeps a GPU busy.
// Tensor cores have but one: nothing says that theirs would.
TileSide TileSideFor(int64_t m, int64_t n, int64_t products,
                     Precision precision = Precision::kFloat32);
int64_t SideOf(TileSide side);

// The right factor of `count` products, packed for 16-byte reads: [count, k, columns], where
// columns is n rounded up to a multiple of 4, and what is added is 0.
Tensor AllocateFactors(int64_t count, int64_t k, int64_t n);
inline int64_t FactorColumns(int64_t n) { return (n + 3) / 4 * 4; }
// Such a factor.
FactorArgs PackedFactor(const float* at, int64_t n);
// One of any layout, whose matrices begin where multiples of `align` elements are.
FactorArgs PlainFactor(const float* at, int64_t row, int64_t column, int64_t n, int64_t align);

// As Kernel::Route has it; empty for float32.
std::string RouteOf(Precision precision);

// Products of a GemmArgs, by the kernel that suits their sizes. n is at most kMostColumns.
void AppendGemm(GemmArgs args, int64_t products, std::vector<Launch>* launches,
                Precision precision = Precision::kFloat32);
inline constexpr int64_t kMostColumns = int64_t{65535} * 32;

// What passes and the placement ask before there is a kernel: whether the dims that must agree are
// known and do.
inline bool Same(Dim a, Dim b) { return a.concrete() && b.concrete() && a.size() == b.size(); }
// Every dim but the first, which may count rows.
bool KnownInside(const SymShape& shape);
bool BiasFits(const KernelArgs& args, const Epilogue& epilogue, Dim columns);

}  // namespace floe::cuda
