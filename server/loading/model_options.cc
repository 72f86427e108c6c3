#include "server/loading/model_options.h"

#include "absl/strings/str_split.h"
#include "base/status.h"
#include "server/loading/placeholder_default.h"

namespace floe::server {

absl::StatusOr<ImportOptions> ImportOptionsOf(const ModelConfig& config,
                                              const std::optional<FileIdentity>& identity) {
  ImportOptions options;
  for (const auto& [name, value] : config.placeholder_defaults) {
    FLOE_ASSIGN_OR_RETURN(options.placeholder_defaults[name], DefaultTensor(name, value));
  }
  options.input_aliases = config.signature.inputs;
  options.output_aliases = config.signature.outputs;
  options.tags = absl::StrSplit(config.saved_model_tags, ',', absl::SkipWhitespace());
  options.identity = identity;
  return options;
}

CompileOptions CompileOptionsOf(const ModelConfig& config, CompileOptions options) {
  options.kernels.conv.fft = config.fft;
  options.kernels.precision = config.precision;
  options.kernels.routes.insert(config.routes.begin(), config.routes.end());
  return options;
}

}  // namespace floe::server
