// What emitters share: constants that a launch is made from, and registration.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cuda/device_kernel.h"

namespace floe::cuda {

using kernels::IntList;

// The integers of an input whose value is known at load. Launches are made of them, and nothing on
// the device can be read for that. UNIMPLEMENTED for others.
inline absl::StatusOr<IntList> KnownInts(const KernelArgs& args, int i) {
  const ValueInfo& input = args.inputs[static_cast<size_t>(i)];
  if (!input.has_constant())
    return absl::UnimplementedError(
        absl::StrCat(args.node.op->name, " on a GPU needs the value of input ", i, " at load"));
  IntList values;
  FLOE_RETURN_IF_ERROR(kernels::ReadInts(input.constant.view(), &values));
  return values;
}
inline absl::StatusOr<int64_t> KnownInt(const KernelArgs& args, int i) {
  FLOE_ASSIGN_OR_RETURN(const IntList values, KnownInts(args, i));
  if (values.size() == 1) return values[0];
  return absl::InvalidArgumentError(absl::StrCat("expected one integer, got ", values.size()));
}

// UNIMPLEMENTED for an input of more than `most` dims, or whose rank is not known.
inline absl::Status CheckRank(const KernelArgs& args, int i, int most) {
  const SymShape& shape = args.inputs[static_cast<size_t>(i)].type.shape;
  if (shape.rank_known() && shape.rank() <= most) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(args.node.op->name,
                                               " on a GPU takes inputs of up to ", most,
                                               " dims, input ", i, " is ", shape.ToString()));
}
// For elements that a kernel moves as they are.
inline absl::Status CheckMovable(const KernelArgs& args, int i) {
  const DType dtype = args.inputs[static_cast<size_t>(i)].type.dtype;
  if (DTypeSize(dtype) != 0) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat(args.node.op->name, " of ", DTypeName(dtype), " on a GPU"));
}

// For KernelTraits::computes, of a factory that packs nothing.
template <KernelFactory kMake>
bool Makes(const KernelArgs& args) {
  return kMake(args).ok();
}

template <KernelFactory kMake>
void RegisterEmitter(const std::vector<std::string>& ops, const std::vector<DType>& dtypes) {
  for (const std::string& op : ops)
    KernelRegistrar(op, DeviceKind::kCuda, dtypes, kMake, {.computes = Makes<kMake>});
}

// An address some bytes on.
inline const std::byte* Forward(const void* address, int64_t bytes) {
  return static_cast<const std::byte*>(address) + bytes;
}
inline std::byte* Forward(void* address, int64_t bytes) {
  return static_cast<std::byte*>(address) + bytes;
}

}  // namespace floe::cuda
