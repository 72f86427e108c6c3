#include "server/registry/loader.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <new>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/file_beneath.h"
#include "base/status.h"
#include "model/import/import.h"
#include "server/batching/warm_up.h"
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

// Transport threads may each run a cheap model themselves, so it gets slots beyond those of its
// workers. A model that is told to wait for fuller batches is not run that way.
void PrepareInline(const ModelConfig& config, const Model& model, const WarmUpReport& report,
                   PlanRunner* runner) {
  const auto limit = static_cast<double>(config.inline_below_us);
  const bool any =
      std::any_of(report.costs.begin(), report.costs.end(),
                  [limit](const RunCost& cost) { return cost.fixed_us + cost.per_row_us < limit; });
  if (!any || config.batching.batch_timeout_micros > 0) return;
  const int first = runner->slots();
  const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1u, 8u);
  runner->AddSlots(static_cast<int>(threads), /*intra_op_threads=*/1);  // too short a run to split
  WarmUpSlots(model, runner, first, config.batching.max_batch_size);
  runner->SetCosts(report.costs, limit);
}

absl::StatusOr<std::shared_ptr<LocalServed>> Load(const ModelConfig& config, int64_t version,
                                                  const std::string& file, const std::string& bytes,
                                                  const LoadOptions& options) {
  FLOE_ASSIGN_OR_RETURN(ModelHandle model, Compile(config, version, file, bytes, options));
  auto runner = std::make_unique<PlanRunner>(static_cast<int>(config.workers),
                                             static_cast<int>(config.intra_op_threads),
                                             config.batching.max_batch_size);
  FLOE_ASSIGN_OR_RETURN(const WarmUpReport report,
                        WarmUp(*model, runner.get(), config.batching.max_batch_size));
  for (const std::string& note : report.notes) spdlog::info("model '{}': {}", config.name, note);
  PrepareInline(config, *model, report, runner.get());

  Batcher::Options batcher;
  batcher.limits.max_rows = config.batching.max_batch_size;
  batcher.limits.timeout = std::chrono::microseconds(config.batching.batch_timeout_micros);
  batcher.limits.max_tasks = static_cast<size_t>(config.batching.max_batch_size) *
                             static_cast<size_t>(config.batching.max_enqueued_batches);
  batcher.threads = static_cast<int>(config.workers);
  batcher.name = config.name;
  batcher.slowest = report.slowest;
  const ReplyFormat reply = config.reply.value_or(options.default_reply);
  return std::make_shared<LocalServed>(
      std::move(model),
      reply == ReplyFormat::kContent ? ReplyEncoding::kContent : ReplyEncoding::kTyped,
      std::move(runner), std::move(batcher));
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
