#include "server/registry/loader.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <algorithm>
#include <exception>
#include <new>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/cpus.h"
#include "base/file_beneath.h"
#include "base/status.h"
#include "model/import/import.h"
#include "server/registry/checksums.h"
#include "server/registry/memory_estimate.h"
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

absl::StatusOr<ModelHandle> Compile(const ModelConfig& config, const LoadSource& from,
                                    const LoadOptions& options) {
  FLOE_ASSIGN_OR_RETURN(const ImportOptions import_options, ImportOptionsOf(config));
  auto imported = from.file.empty() ? ImportBytes(from.bytes, import_options)
                                    : ImportFile(from.file, import_options);
  if (!imported.ok()) return imported.status();
  Model::Source source;
  source.info = {config.name, from.version, from.file};
  source.graph = std::move(imported->graph);
  source.signatures = std::move(imported->signatures);
  source.file = std::move(imported->file);
  if (!from.file.empty()) source.asset_directory = DirectoryOf(from.file);
  return Model::Create(std::move(source), options.compile);
}

int64_t FileBytes(const LoadSource& source) {
  struct stat info;
  if (source.file.empty()) return static_cast<int64_t>(source.bytes.size());
  return stat(source.file.c_str(), &info) == 0 ? static_cast<int64_t>(info.st_size) : 0;
}

// What whoever made the version says of its files, before any of them is believed.
absl::Status CheckFiles(const ModelConfig& config, const LoadSource& source,
                        const CancelToken* cancel) {
  if (source.file.empty()) return absl::OkStatus();
  const std::string directory = DirectoryOf(source.file);
  // A model file that was named lies among others that are none of its business.
  const bool alone = source.file == config.base_path;
  const std::string model = source.file.substr(source.file.rfind('/') + 1);
  const auto checked = CheckChecksums(directory, model, alone, cancel);
  if (!checked.ok()) return Annotate(checked.status(), absl::StrCat("'", directory, "'"));
  if (*checked > 0)
    spdlog::info("model '{}' version {}: {} files are as {} says", config.name, source.version,
                 *checked, kChecksumsFile);
  return absl::OkStatus();
}

struct Prepared {
  ModelHandle model;
  BatcherSetup setup;
  MemoryShare memory;
};

void Enter(const LoadOptions& options, const char* stage) {
  if (options.progress != nullptr) options.progress->Enter(stage);
}

// Takes what the slots' plans will need. Where measuring is to choose the rows of a run, that is as
// many as are possible without taking more than half of what is left, since others may be loading
// too, and one row in any case; `prepare` then says so.
absl::Status Admit(const Model& model, const ModelConfig& config, const MemoryBudget& budget,
                   PrepareOptions* prepare, MemoryShare* share) {
  const auto weights = static_cast<int64_t>(model.weight_bytes());
  const SlotBounds bounds = BoundsOfSlots(config, *prepare);
  if (!bounds.chosen)
    return share->Resize(weights + bounds.workers * ArenaBytes(model, bounds.rows));
  int64_t most = bounds.arena_bytes;
  if (budget.limit() > 0) {
    const int64_t left = budget.limit() - (budget.in_use() - share->bytes()) - weights;
    most = std::min(most, left / 2 / bounds.most_slots);
  }
  const int64_t one = ArenaBytes(model, 1);
  prepare->arena_bytes = one;
  for (int64_t rows = 2; rows <= bounds.rows; rows *= 2) {  // as it is measured
    const int64_t bytes = ArenaBytes(model, rows);
    if (bytes > most) break;
    prepare->arena_bytes = bytes;
  }
  if (prepare->arena_bytes > one &&
      share->Resize(weights + bounds.most_slots * prepare->arena_bytes).ok())
    return absl::OkStatus();
  prepare->arena_bytes = one;
  return share->Resize(weights + bounds.workers * one);
}

absl::StatusOr<Prepared> Prepare(const ModelConfig& config, const LoadSource& source,
                                 const LoadOptions& options, MemoryBudget* budget) {
  Prepared prepared;
  FLOE_ASSIGN_OR_RETURN(prepared.memory, budget->Take(FileBytes(source)));
  Enter(options, "it is read and compiled");
  FLOE_ASSIGN_OR_RETURN(prepared.model, Compile(config, source, options));
  const Model& model = *prepared.model;
  PrepareOptions prepare = options.prepare;
  FLOE_RETURN_IF_ERROR(Admit(model, config, *budget, &prepare, &prepared.memory));
  Enter(options, "it is warmed up");
  FLOE_ASSIGN_OR_RETURN(prepared.setup, PrepareBatcher(model, config, prepare));
  FLOE_RETURN_IF_ERROR(model.CheckFile());
  FLOE_RETURN_IF_ERROR(prepared.memory.Resize(static_cast<int64_t>(model.weight_bytes()) +
                                              prepared.setup.memory_bytes));
  return prepared;
}

absl::StatusOr<std::shared_ptr<LocalServed>> LoadOrThrow(const ModelConfig& config,
                                                         const LoadSource& source,
                                                         const LoadOptions& options,
                                                         MemoryBudget* memory) {
  Enter(options, "its files are checked");
  FLOE_RETURN_IF_ERROR(CheckFiles(config, source, options.prepare.cancel));
  FLOE_ASSIGN_OR_RETURN(Prepared prepared, Prepare(config, source, options, memory));
  for (const std::string& note : prepared.setup.notes)
    spdlog::info("model '{}': {}", config.name, note);
  const ReplyFormat reply = config.reply.value_or(options.default_reply);
  return std::make_shared<LocalServed>(
      std::move(prepared.model),
      reply == ReplyFormat::kContent ? ReplyEncoding::kContent : ReplyEncoding::kTyped,
      std::move(prepared.setup.runner), std::move(prepared.setup.options),
      std::move(prepared.memory));
}

}  // namespace

void LocalServed::Stop() {
  batcher_.Stop();
  const BatcherStats stats = batcher_.Stats();
  const ModelInfo& info = model_->info();
  if (const std::string summary = Summary(stats); !summary.empty())
    spdlog::info("model '{}' version {}: {}", info.name, info.version, summary);
  if (stats.kinds.size() < 2) return;
  for (const auto& [kind, counts] : stats.kinds)
    spdlog::info("model '{}' version {}, {}: {}", info.name, info.version, kind, Summary(counts));
}

absl::StatusOr<std::shared_ptr<LocalServed>> LoadModel(const ModelConfig& config,
                                                       const LoadSource& source,
                                                       const LoadOptions& options,
                                                       MemoryBudget* memory) {
  // Where a load's exceptions stop: memory is the one thing that may run out anywhere in it.
  try {
    return LoadOrThrow(config, source, options, memory);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("memory ran out while loading");
  } catch (const std::system_error& e) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a thread could not be made (", e.what(),
                     "); lower workers or intra_op_threads, or raise the limit of threads "
                     "(TasksMax of the unit, ulimit -u)"));
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("loading failed: ", e.what()));
  }
}

}  // namespace floe::server
