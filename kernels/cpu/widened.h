// Rare kernels for narrow dtypes by the one for a wide dtype: inputs are widened, outputs narrowed.
// So the templates of such a family are compiled for few types.
#pragma once

#include <complex>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/kernel.h"

namespace floe::kernels {

// What integers up to 32 bits can be computed in: modulo 2^64, then narrowed.
using NarrowIntegers = TypeList<int8_t, int16_t, int32_t, uint8_t, uint16_t, uint32_t>;
// What float64 holds exactly, for kernels that only compare.
using NarrowFloats = TypeList<float, Half, BFloat16>;
using WideReals = TypeList<float, double, Half, BFloat16, int64_t, uint64_t>;
using WideNumbers = TypeList<float, double, Half, BFloat16, int64_t, uint64_t, std::complex<float>,
                             std::complex<double>>;

// What becomes of results outside the narrow dtype.
enum class Widening : uint8_t {
  kWrap,    // the low bits
  kClamp,   // the nearest value, such as the least of the dtype for the least of the wide one
  kInputs,  // there are none: outputs are indices
};

// Calls `run` with a context where all inputs of the narrow dtype, and output `output`, have the
// wide one, int64 or float64.
absl::Status RunWidened(const KernelContext& ctx, DType narrow, DType wide, Widening widening,
                        int output, absl::FunctionRef<absl::Status(const KernelContext&)> run);

inline bool IsNarrowInteger(DType dtype) {
  return ForDType(dtype, NarrowIntegers{}, [](auto) {});
}

// A kernel whose input 0 and output 0 have the narrow dtype, by one for the wide dtype that needs
// no scratch and asks neither its node nor a constant for the dtype.
std::unique_ptr<Kernel> WidenKernel(std::unique_ptr<Kernel> kernel, DType wide, Widening widening);

template <KernelFactory kMakeWide, DType kWide, Widening kWidening>
absl::StatusOr<std::unique_ptr<Kernel>> MakeWidened(const KernelArgs& args) {
  FLOE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, kMakeWide(args));
  return WidenKernel(std::move(kernel), kWide, kWidening);
}

// Registers `op` for narrow integers by its factory for int64.
template <KernelFactory kMakeInt64, Widening kWidening>
void RegisterWidenedIntegers(const std::string& op) {
  KernelRegistrar(
      op, DeviceKind::kCpu,
      {DType::kInt8, DType::kInt16, DType::kInt32, DType::kUInt8, DType::kUInt16, DType::kUInt32},
      &MakeWidened<kMakeInt64, DType::kInt64, kWidening>);
}
// Registers make(TypeList<T>) for each T of the list, and for narrow integers that of int64.
template <Widening kWidening, class... Ts, class Make>
bool RegisterWidened(const char* op, TypeList<Ts...> types, const Make& make) {
  RegisterWidenedIntegers<Make{}(TypeList<int64_t>{}), kWidening>(op);
  return RegisterForTypes(op, DeviceKind::kCpu, types, make);
}
// And for narrow floats by its factory for float64.
template <KernelFactory kMakeInt64, KernelFactory kMakeFloat64, Widening kWidening>
void RegisterWidenedReals(const std::string& op) {
  RegisterWidenedIntegers<kMakeInt64, kWidening>(op);
  KernelRegistrar(op, DeviceKind::kCpu, {DType::kFloat32, DType::kFloat16, DType::kBFloat16},
                  &MakeWidened<kMakeFloat64, DType::kFloat64, kWidening>);
}

}  // namespace floe::kernels

// As FLOE_REGISTER_KERNELS on the CPU, with RegisterWidened; `widening` by its last name.
#define FLOE_REGISTER_WIDENED(op, make, widening, ...)                       \
  static const bool FLOE_CONCAT_(floe_kernels_, __COUNTER__) =               \
      ::floe::kernels::RegisterWidened<::floe::kernels::Widening::widening>( \
          #op, __VA_ARGS__{},                                                \
          []<class T>(::floe::kernels::TypeList<T>) -> ::floe::KernelFactory { return make; })
