#include "kernels/cpu/activation.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace floe::kernels {
namespace {

constexpr struct {
  Activation activation;
  const char* name;
} kNames[] = {{Activation::kNone, ""},
              {Activation::kRelu, "Relu"},
              {Activation::kRelu6, "Relu6"},
              {Activation::kSigmoid, "Sigmoid"},
              {Activation::kTanh, "Tanh"},
              {Activation::kElu, "Elu"},
              {Activation::kLeakyRelu, "LeakyRelu"},
              {Activation::kSwish, "Swish"},
              {Activation::kGelu, "Gelu"},
              {Activation::kGeluTanh, "GeluTanh"}};

}  // namespace

absl::StatusOr<Activation> ActivationFromName(const std::string& name) {
  std::string known;
  for (const auto& entry : kNames) {
    if (name == entry.name) return entry.activation;
    if (*entry.name != '\0') absl::StrAppend(&known, known.empty() ? "" : ", ", entry.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("fused_activation '", name, "' is none of ", known));
}

const char* ActivationName(Activation activation) {
  for (const auto& entry : kNames) {
    if (entry.activation == activation) return entry.name;
  }
  return "";
}

absl::StatusOr<Epilogue> Epilogue::FromAttrs(const Attrs& attrs) {
  Epilogue epilogue;
  FLOE_ASSIGN_OR_RETURN(epilogue.activation, ActivationFromName(attrs.String("fused_activation")));
  epilogue.alpha = attrs.Float("fused_alpha", epilogue.alpha);
  epilogue.bias = attrs.Bool("fused_bias");
  epilogue.residual = attrs.Bool("fused_residual");
  return epilogue;
}

}  // namespace floe::kernels
