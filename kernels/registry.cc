#include <cstdio>
#include <cstdlib>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "kernels/kernel.h"

namespace floe {
namespace {

struct Key {
  std::string op;
  DeviceKind device;
  DType dtype;  // kInvalid: any
  bool operator<(const Key& o) const {
    return std::tie(op, device, dtype) < std::tie(o.op, o.device, o.dtype);
  }
};

struct Registered {
  KernelFactory make;
  KernelTraits traits;
};

// Function-local, because registrars of other files run before this file's own statics may exist.
std::map<Key, Registered>& Kernels() {
  static std::map<Key, Registered> kernels;
  return kernels;
}

const Registered* Find(const std::string& op, DeviceKind device, DType dtype) {
  for (DType wanted : {dtype, DType::kInvalid}) {
    const auto it = Kernels().find(Key{op, device, wanted});
    if (it != Kernels().end()) return &it->second;
  }
  return nullptr;
}

constexpr struct {
  GemmBackend backend;
  const char* name;
} kGemmNames[] = {{GemmBackend::kAuto, "auto"},
                  {GemmBackend::kNative, "native"},
                  {GemmBackend::kOpenBlas, "openblas"},
                  {GemmBackend::kReference, "reference"}};

}  // namespace

KernelRegistrar::KernelRegistrar(const std::string& op, DeviceKind device,
                                 std::vector<DType> dtypes, KernelFactory make,
                                 KernelTraits traits) {
  if (dtypes.empty()) dtypes.push_back(DType::kInvalid);
  for (DType dtype : dtypes) {
    if (Kernels().emplace(Key{op, device, dtype}, Registered{make, traits}).second) continue;
    // A mistake in the program, seen at its first start.
    std::fprintf(stderr, "the kernel of %s for %s is registered twice\n", op.c_str(),
                 dtype == DType::kInvalid ? "any dtype" : DTypeName(dtype));
    std::abort();
  }
}

DType KernelDType(const Node& node, absl::Span<const ValueInfo> inputs) {
  return inputs.empty() ? node.attrs.Type("dtype") : inputs[0].type.dtype;
}

KernelFactory FindKernel(const std::string& op, DeviceKind device, DType dtype) {
  const Registered* const found = Find(op, device, dtype);
  return found == nullptr ? nullptr : found->make;
}

std::string FamilyOptionsKey(const std::string& op, DType dtype, const KernelOptions& options) {
  const Registered* const found = Find(op, options.device, dtype);
  return found == nullptr || found->traits.options_key == nullptr
             ? ""
             : found->traits.options_key(options);
}

bool CanCompute(const KernelArgs& args) {
  const Registered* const found =
      Find(args.node.op->name, args.options.device, KernelDType(args.node, args.inputs));
  return found != nullptr && (found->traits.computes == nullptr || found->traits.computes(args));
}

std::vector<DType> KernelDTypes(const std::string& op, DeviceKind device) {
  std::vector<DType> dtypes;
  for (const auto& [key, kernel] : Kernels()) {
    if (key.op == op && key.device == device) dtypes.push_back(key.dtype);
  }
  return dtypes;
}

absl::StatusOr<GemmBackend> GemmBackendFromName(const std::string& name) {
  for (const auto& entry : kGemmNames) {
    if (name == entry.name) return entry.backend;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown GEMM backend '", name, "'; expected auto, native, openblas or reference"));
}

const char* GemmBackendName(GemmBackend backend) {
  for (const auto& entry : kGemmNames) {
    if (entry.backend == backend) return entry.name;
  }
  return "invalid";
}

}  // namespace floe
