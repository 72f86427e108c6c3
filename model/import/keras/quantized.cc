#include "model/import/keras/quantized.h"

#include "absl/strings/match.h"

namespace floe::keras {

Quantized QuantizedOf(const std::string& class_name, const Json& options) {
  const Json& policy = Member(options, "dtype");
  const Json& config = Member(policy, "config");
  Quantized quantized{.mode = Text(config, "mode"), .source = Text(config, "source_name")};
  const std::string name = policy.is_string() ? policy.get<std::string>() : Text(config, "name");
  if (const size_t from = name.find("_from_");
      quantized.mode.empty() && from != std::string::npos) {
    quantized.mode = name.substr(0, from);
    quantized.source = name.substr(from + 6);
  }
  if (absl::StartsWith(quantized.source, "mixed_")) quantized.source = quantized.source.substr(6);
  quantized.any = !quantized.mode.empty() || !Member(options, "quantization_config").is_null();
  quantized.int8 =
      quantized.mode == "int8" &&
      (class_name == "Dense" || class_name == "EinsumDense" || class_name == "Embedding");
  return quantized;
}

}  // namespace floe::keras
