// Launch: one kernel of kernel_list.h with its grid and arguments, as plain data. A CUDA graph, the
// emulator and `inspect` take the same list of launches. Or a call of a library, which only a graph
// takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/cuda/dim3.h"
#include "kernels/cuda/kernel_list.h"
#include "kernels/cuda/vendor_layer.h"

namespace floe::cuda {

// No member of `grid` is 0: what has nothing to compute is not launched. The threads of a block are
// the kernel's own number (KernelEntry::threads).
struct Launch {
  static constexpr size_t kMaxArgsBytes = 1024;

  const VendorCall* call = nullptr;  // null: a kernel. Outlives what is made of the launch
  KernelId kernel;
  Dim3 grid;
  uint32_t args_bytes = 0;
  alignas(16) std::byte args[kMaxArgsBytes];

  // `args` is the struct that the kernel's line in kernel_list.h names.
  template <typename Args>
  static Launch Of(KernelId kernel, Dim3 grid, const Args& args) {
    static_assert(std::is_trivially_copyable_v<Args>);
    static_assert(sizeof(Args) <= kMaxArgsBytes);
    Launch launch;
    launch.kernel = kernel;
    launch.grid = grid;
    launch.args_bytes = sizeof(Args);
    std::memcpy(launch.args, &args, sizeof(Args));
    return launch;
  }
  static Launch Of(const VendorCall& call, const VendorArgs& args) {
    Launch launch = Of(KernelId::kCount, {}, args);
    launch.call = &call;
    return launch;
  }
  // Of a call.
  VendorArgs vendor_args() const {
    VendorArgs result;
    std::memcpy(&result, args, sizeof result);
    return result;
  }
};

// The blocks that `count` things take, `in_block` in each.
inline uint32_t Blocks(int64_t count, int64_t in_block) {
  return static_cast<uint32_t>((count + in_block - 1) / in_block);
}

}  // namespace floe::cuda
