#include "runtime/kernel_key.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/content_hash.h"
#include "model/attrs_key.h"

namespace floe {
namespace {

void AddHash(absl::uint128 hash, std::string* key) {
  absl::StrAppend(key, "@", absl::Uint128High64(hash), ",", absl::Uint128Low64(hash));
}

// Returns whether the key holds the content.
bool AddConstant(const Tensor& constant, std::string* key) {
  absl::StrAppend(key, constant.shape().ToString());
  if (constant.dtype() == DType::kString) {
    const auto* const strings = constant.as<std::string>();
    for (int64_t i = 0; i < constant.elements(); ++i)
      AddHash(ContentHash(strings[i].data(), strings[i].size()), key);
    return true;
  }
  if (DTypeSize(constant.dtype()) != 0 && !IsHandle(constant.dtype())) {
    AddHash(ContentHash(constant.data(), constant.bytes()), key);
    return true;
  }
  absl::StrAppend(key, "&", reinterpret_cast<uintptr_t>(constant.data()));
  return false;
}

}  // namespace

KernelKey KeyOf(const Node& node, absl::Span<const ValueInfo> inputs,
                const KernelOptions& options) {
  KernelKey result;
  std::string key = node.op->name;
  for (const ValueInfo& v : inputs) {
    absl::StrAppend(&key, "|", DTypeName(v.type.dtype), v.type.shape.ToString());
    for (const Tensor* constant : {&v.constant, &v.per_row}) {
      if (constant->valid() && !AddConstant(*constant, &key)) result.of_content = false;
    }
  }
  absl::StrAppend(&key, "|", AttrsKey(node.attrs));
  if (node.op->stateful) {
    absl::StrAppend(&key, "|", node.name);
    result.of_content = false;
  }
  absl::StrAppend(&key, "|", static_cast<int>(options.device), "|", static_cast<int>(options.gemm),
                  "|", static_cast<int>(options.precision));
  absl::StrAppend(&key, "|", FamilyOptionsKey(node.op->name, KernelDType(node, inputs), options));
  const auto forced = options.routes.find(node.name);
  if (forced != options.routes.end()) absl::StrAppend(&key, "|route ", forced->second);
  result.hash = ContentHash(key.data(), key.size());
  return result;
}

}  // namespace floe
