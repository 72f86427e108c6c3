#include "server/registry/loader.h"

#include <spdlog/spdlog.h>

#include <new>

#include "absl/strings/str_cat.h"
#include "base/file_beneath.h"
#include "base/status.h"
#include "model/import/import.h"
#include "server/registry/placeholder_default.h"

namespace floe::server {
namespace {

absl::StatusOr<ImportOptions> ImportOptionsOf(const ModelConfig& config) {
  ImportOptions options;
  for (const auto& [name, value] : config.placeholder_defaults) {
    FLOE_ASSIGN_OR_RETURN(options.placeholder_defaults[name], DefaultTensor(name, value));
  }
  options.input_aliases = config.signature.inputs;
  options.output_aliases = config.signature.outputs;
  return options;
}

absl::StatusOr<ModelHandle> Compile(const ModelConfig& config, int64_t version,
                                    const std::string& file, const std::string& bytes,
                                    const LoadOptions& options) {
  FLOE_ASSIGN_OR_RETURN(const ImportOptions import_options, ImportOptionsOf(config));
  auto imported =
      file.empty() ? ImportBytes(bytes, import_options) : ImportFile(file, import_options);
  if (!imported.ok()) return imported.status();
  Model::Source source;
  source.info = {config.name, version, file};
  source.graph = std::move(imported->graph);
  source.signatures = std::move(imported->signatures);
  if (!file.empty()) source.asset_directory = DirectoryOf(file);
  return Model::Create(std::move(source), options.compile);
}

absl::StatusOr<std::shared_ptr<LocalServed>> Load(const ModelConfig& config, int64_t version,
                                                  const std::string& file, const std::string& bytes,
                                                  const LoadOptions& options) {
  FLOE_ASSIGN_OR_RETURN(ModelHandle model, Compile(config, version, file, bytes, options));
  FLOE_ASSIGN_OR_RETURN(BatcherSetup setup, PrepareBatcher(*model, config, options.prepare));
  for (const std::string& note : setup.notes) spdlog::info("model '{}': {}", config.name, note);
  const ReplyFormat reply = config.reply.value_or(options.default_reply);
  return std::make_shared<LocalServed>(
      std::move(model),
      reply == ReplyFormat::kContent ? ReplyEncoding::kContent : ReplyEncoding::kTyped,
      std::move(setup.runner), std::move(setup.options));
}

}  // namespace

absl::StatusOr<std::shared_ptr<LocalServed>> LoadModel(const ModelConfig& config, int64_t version,
                                                       const std::string& file,
                                                       const std::string& bytes,
                                                       const LoadOptions& options) {
  // Where a load's exceptions stop: memory is the one thing that may run out anywhere in it.
  try {
    return Load(config, version, file, bytes, options);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("memory ran out while loading");
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("loading failed: ", e.what()));
  }
}

}  // namespace floe::server
