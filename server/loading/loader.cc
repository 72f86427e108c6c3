// Loads one version: reads the file, compiles it, takes the memory it will need, warms it up and
// puts a queue in front. Memory that runs out ends here as an error.
#include "server/loading/loader.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <algorithm>
#include <exception>
#include <new>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/cpus.h"
#include "base/file_beneath.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/work_note.h"
#include "model/import/import.h"
#include "runtime/made_up_inputs.h"
#include "server/loading/load_errors.h"
#include "server/loading/model_options.h"

namespace floe::server {
namespace {

// Of a node as graphs, plans and kernels hold it, beside constants.
constexpr int64_t kNodeBytes = 2048;

// `file` was taken for the file: constants that are read from it are paid from that, and what is
// left is given back. Then it is what the model's nodes take.
absl::StatusOr<ModelHandle> Compile(const ModelConfig& config, const LoadSource& from,
                                    const CompileOptions& options, const MemoryBudget& memory,
                                    MemoryShare* file) {
  FLOE_ASSIGN_OR_RETURN(const ImportOptions import_options, ImportOptionsOf(config, from.identity));
  auto imported = [&] {
    const MemoryScope prepaid(memory, file);
    auto model = from.file.empty() ? ImportBytes(from.bytes, import_options)
                                   : ImportFile(from.file, import_options);
    return model.ok() ? std::move(model) : prepaid.Explain(model.status());
  }();
  if (!imported.ok()) return imported.status();
  *file = MemoryShare();
  FLOE_ASSIGN_OR_RETURN(MemoryShare nodes, memory.Take(imported->graph.size() * kNodeBytes));
  file->Add(std::move(nodes));
  Model::Source source;
  source.info = {config.name, from.version, from.file};
  source.graph = std::move(imported->graph);
  source.signatures = std::move(imported->signatures);
  source.left_out = std::move(imported->left_out);
  source.asset_directory = std::move(imported->asset_directory);
  if (source.asset_directory.empty() && !from.file.empty())
    source.asset_directory = DirectoryOf(from.file);
  return Model::Create(std::move(source), CompileOptionsOf(config, options));
}

int64_t SizeOf(const LoadSource& source) {
  struct stat info;
  if (source.file.empty()) return static_cast<int64_t>(source.bytes.size());
  return stat(source.file.c_str(), &info) == 0 ? static_cast<int64_t>(info.st_size) : 0;
}

int64_t VariantArenaBytes(const CompiledSignature& variant, int64_t rows) {
  bool known = true;
  const auto shapes = GuessShapes(variant, 1, &known);
  if (!shapes) return 0;
  const auto plan = variant.Bind(*shapes);
  if (!plan.ok()) return 0;  // the guess was wrong
  return (*plan)->ArenaBytes((*plan)->has_rows() ? rows : 1);
}

// In a trial, which has no devices, the CPU computes islands: a second process on a device would
// take its memory. The server has said there whether the model will have any.
absl::StatusOr<ModelPlace> Place(const ModelConfig& config, const LoadOptions& options,
                                 CompileOptions* compile) {
  ModelPlace place;
  if (options.devices != nullptr) {
    FLOE_ASSIGN_OR_RETURN(place, options.devices->Choose(config));
  }
  const DeviceChoice choice = DeviceChoice::Parse(config.device).value_or(DeviceChoice{});
  Placement islands{.small = choice.kind == DeviceChoice::Kind::kCuda,
                    .on = place.device,
                    .on_error = place.on_error};
  if (const int64_t most = config.batching.max_execution_rows(); most > 0)
    islands.rows = std::min(islands.rows, most);
  if (place.device != nullptr) {
    islands.device = DeviceKind::kCuda;
    compile->islands = std::move(islands);
  } else if (options.prepare.trial && islands.small) {
    compile->islands = std::move(islands);
  }
  return place;
}

// A model of which the device computes nothing is the CPU's.
void Settle(const ModelConfig& config, const Model& model, ModelPlace* place) {
  if (place->device == nullptr) return;
  for (const IslandInfo& island : model.islands()) {
    for (const LayerByLibrary& layer : island.by_library)
      spdlog::info("model '{}': '{}' is computed by {}", config.name, layer.node,
                   layer.why_not.empty() ? layer.route : "floe's own kernel: " + layer.why_not);
  }
  if (!model.islands().empty()) {
    place->user = std::make_shared<cuda::DeviceGate::User>(config.device_shares);
    return;
  }
  place->device = nullptr;
  const bool named =
      DeviceChoice::Parse(config.device).value_or(DeviceChoice{}).kind == DeviceChoice::Kind::kCuda;
  place->why_cpu =
      absl::StrCat("no part of it is worth a run on a GPU", named ? "" : ", unless device is cuda",
                   " (see floectl inspect --plan --device cuda)");
  spdlog::info("model '{}' is computed by the CPU: {}", config.name, place->why_cpu);
}

struct Prepared {
  MemoryShare file;
  ModelHandle model;
  ModelPlace place;
  SchedulerSetup setup;
};

void Enter(const LoadOptions& options, const char* stage) {
  if (options.progress != nullptr) options.progress->Enter(stage);
  if (WorkNote* const note = WorkNote::Current()) note->Enter(stage);
}

// One that would not fit even alone is final.
absl::StatusOr<MemoryShare> TakeFor(const MemoryBudget& memory, int64_t bytes, int64_t held) {
  absl::StatusOr<MemoryShare> share = memory.Take(bytes);
  if (share.ok() || bytes + held <= memory.limit()) return share;
  return Final(share.status());
}

// Takes what the slots' plans will need. Where measuring is to choose the rows of a run, that is as
// many rows as fit in half of what is left, since others may be loading too. One row is taken in
// any case; `prepare` then says so.
absl::StatusOr<MemoryShare> Admit(const Model& model, const ModelConfig& config,
                                  const MemoryBudget& memory, PrepareOptions* prepare) {
  const auto weights = static_cast<int64_t>(model.weight_bytes());
  const SlotBounds bounds = BoundsOfSlots(config, *prepare);
  if (!bounds.chosen)
    return TakeFor(memory, bounds.workers * ArenaBytes(model, bounds.rows), weights);
  int64_t most = bounds.arena_bytes;
  if (memory.limit() > 0)
    most = std::min(most, (memory.limit() - memory.in_use()) / 2 / bounds.most_slots);
  const int64_t one = ArenaBytes(model, 1);
  prepare->arena_bytes = one;
  for (int64_t rows = 2; rows <= bounds.rows; rows *= 2) {  // as they are chosen
    const int64_t bytes = ArenaBytes(model, rows);
    if (bytes > most) break;
    prepare->arena_bytes = bytes;
  }
  if (prepare->arena_bytes > one) {
    auto share = memory.Take(bounds.most_slots * prepare->arena_bytes);
    if (share.ok()) return share;
  }
  prepare->arena_bytes = one;
  return TakeFor(memory, bounds.workers * one, weights);
}

absl::StatusOr<Prepared> Prepare(const ModelConfig& config, const LoadSource& source,
                                 const LoadOptions& options, const MemoryBudget& memory) {
  Prepared prepared;
  FLOE_ASSIGN_OR_RETURN(prepared.file, TakeFor(memory, SizeOf(source), 0));
  CompileOptions compile = options.compile;
  FLOE_ASSIGN_OR_RETURN(prepared.place, Place(config, options, &compile));
  Enter(options, "import and compilation");
  FLOE_ASSIGN_OR_RETURN(prepared.model, Compile(config, source, compile, memory, &prepared.file));
  const Model& model = *prepared.model;
  PrepareOptions prepare = options.prepare;
  Settle(config, model, &prepared.place);
  prepare.device_user = prepared.place.user;
  FLOE_ASSIGN_OR_RETURN(MemoryShare planned, Admit(model, config, memory, &prepare));
  Enter(options, "warm-up");
  const MemoryScope prepaid(memory, &planned);
  auto setup = PrepareScheduler(model, config, prepare);
  if (!setup.ok()) return prepaid.Explain(setup.status());
  prepared.setup = *std::move(setup);
  return prepared;
}

absl::StatusOr<std::shared_ptr<LocalServed>> LoadOrThrow(const ModelConfig& config,
                                                         const LoadSource& given,
                                                         const LoadOptions& options,
                                                         const MemoryBudget& memory) {
  Enter(options, "the check of its files");
  LoadSource source = given;
  if (!source.file.empty() && !source.identity) {
    FLOE_ASSIGN_OR_RETURN(source.identity, IdentifyFile(source.file));
  }
  FLOE_ASSIGN_OR_RETURN(Prepared prepared, Prepare(config, source, options, memory));
  for (const std::string& note : prepared.setup.notes)
    spdlog::info("model '{}': {}", config.name, note);
  for (const auto& [name, why] : prepared.model->left_out())
    spdlog::warn("model '{}' version {}: signature '{}' is not served: {}", config.name,
                 source.version, name, std::string(why.message()));
  prepared.setup.options.end_threads = options.end_threads;
  const int64_t bytes =
      static_cast<int64_t>(prepared.model->weight_bytes()) + prepared.setup.memory_bytes;
  auto served = std::make_shared<LocalServed>(
      std::move(prepared.model), config.reply.value_or(options.default_reply),
      std::move(prepared.setup.executor), std::move(prepared.setup.options),
      std::move(prepared.file), bytes, source.identity, std::move(prepared.place));
  served->set_log_one_in(config.log_one_in);
  return served;
}

// Where a load's exceptions stop: memory is the one thing that may run out anywhere in it.
absl::StatusOr<std::shared_ptr<LocalServed>> LoadOrCatch(const ModelConfig& config,
                                                         const LoadSource& source,
                                                         const LoadOptions& options,
                                                         const MemoryBudget& memory) {
  const MemoryScope scope(memory);
  try {
    auto loaded = LoadOrThrow(config, source, options, memory);
    return loaded.ok() ? std::move(loaded) : scope.Explain(loaded.status());
  } catch (const std::bad_alloc&) {
    return scope.Explain(absl::ResourceExhaustedError("memory ran out while loading"));
  } catch (const std::system_error& e) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a thread could not be made (", e.what(),
                     "); lower workers or intra_op_threads, or raise the limit of threads "
                     "(TasksMax of the unit, ulimit -u)"));
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("loading failed: ", e.what()));
  }
}

}  // namespace

int64_t ArenaBytes(const Model& model, int64_t rows) {
  int64_t bytes = 0;
  for (const auto& [name, signature] : model.signatures()) {
    for (const Signature::Variant& variant : signature.variants())
      bytes = std::max(bytes, VariantArenaBytes(*variant.compiled, rows));
  }
  return bytes;
}

absl::StatusOr<std::shared_ptr<LocalServed>> LoadModel(const ModelConfig& config,
                                                       const LoadSource& source,
                                                       const LoadOptions& options,
                                                       const MemoryBudget& memory) {
  auto loaded = LoadOrCatch(config, source, options, memory);
  ReleaseFreeMemory();  // files and constants that were packed, or all of it
  return loaded;
}

}  // namespace floe::server
