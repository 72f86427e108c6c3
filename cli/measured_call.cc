// The options that `bench` and `profile` share, and the call they measure.
#include "cli/measured_call.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/model_path.h"
#include "cli/npz.h"
#include "cli/served_model.h"
#include "server/loading/model_options.h"

namespace floe::cli {
namespace {

// As the server loads it, but for what `local` says.
absl::StatusOr<LocalModel> LoadServed(LocalOptions local, MeasureOptions* options) {
  const absl::StatusOr<ServedModel> served = FindServed(options->target, options->file);
  if (!served.ok())
    return Annotate(served.status(), absl::StrCat("there is no file ", Quoted(options->file)));
  options->file = served->file;
  if (options->threads == 0) options->threads = static_cast<int>(served->config.intra_op_threads);
  FLOE_ASSIGN_OR_RETURN(ImportOptions import, server::ImportOptionsOf(served->config));
  import.fetches = local.fetches;
  import.feeds = local.feeds;
  if (!local.tags.empty()) import.tags = local.tags;
  const Precision asked = local.compile.kernels.precision;
  local.compile = server::CompileOptionsOf(served->config, std::move(local.compile));
  if (options->precision_given) local.compile.kernels.precision = asked;
  absl::StatusOr<ImportedModel> imported = ImportFile(served->file, import);
  if (!imported.ok())
    return Annotate(imported.status(), "the file that the server names is read on this machine");
  return CompileLocal(*std::move(imported), served->file, local);
}

}  // namespace

bool NamesServedModel(const std::string& model) {
  std::error_code ignored;
  return model.find_first_of("/.") == std::string::npos && !std::filesystem::exists(model, ignored);
}

void AddMeasureOptions(CLI::App& command, MeasureOptions& options) {
  command
      .add_option("MODEL", options.file,
                  absl::StrCat(kModelHelp,
                               ". Or the name of a model that the server at --target serves, if "
                               "there is no such file"))
      ->required();
  AddTargetOptions(command, options.target);
  command
      .add_option("-i,--inputs", options.inputs,
                  "Arrays to feed (.npz). Default: floats in [0, 1), other types 0")
      ->type_name("IN.npz");
  command
      .add_option("-t,--threads", options.threads,
                  "Threads inside one call. Default: 1, or those of the server's model")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command
      .add_option("-s,--seconds", options.seconds,
                  "Seconds to measure, after a warm-up of a tenth of that")
      ->type_name("S")
      ->check(CLI::Range(0.001, 86400.0))
      ->capture_default_str();
  command
      .add_option(
          "--dim", options.unknown_dim,
          "Size of unknown non-batch dimensions of generated inputs (default: one that fits)")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  command.add_option("--fetch", options.local.fetches, "A tensor to fetch; can be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command
      .add_option("--signature", options.local.signature,
                  "Signature to run (default serving_default)")
      ->type_name("NAME");
  AddTagsOption(command, options.local.tags);
  command.add_flag("--by-position", options.by_position,
                   "Feed the arrays in the order of the signature");
  AddDeviceOption(command, options.device, kDeviceHelp);
  command
      .add_option(
          "--gpu_libraries", options.gpu_libraries,
          "Libraries of NVIDIA that may compute layers on a GPU: none, cublaslt, cudnn, all")
      ->type_name("NAMES")
      ->check(CLI::IsMember({"none", "cublaslt", "cudnn", "all"}))
      ->capture_default_str();
  AddGemmOption(command, options.gemm);
  AddPrecisionOption(command, options.local.compile.kernels.precision)
      ->each([&options](const std::string&) { options.precision_given = true; });
  AddDisablePassOption(command, options.local.compile.disabled_passes);
  AddRouteOption(command, options.local.compile.kernels.routes);
}

absl::StatusOr<MeasuredModel> LoadMeasured(MeasureOptions* options, std::ostream& notes) {
  MeasuredModel model;
  LocalOptions local = options->local;
  FLOE_ASSIGN_OR_RETURN(local.compile.kernels.gemm, GemmBackendFromName(options->gemm));
  FLOE_RETURN_IF_ERROR(UseDevice(options->device, options->gpu_libraries, &local.compile));
  if (!options->inputs.empty()) {
    FLOE_ASSIGN_OR_RETURN(model.arrays, ReadNpz(options->inputs));
  }
  if (!options->by_position) local.feeds = FeedsOf(model.arrays);
  const MeasureClock::time_point start = MeasureClock::now();
  if (NamesServedModel(options->file)) {
    FLOE_ASSIGN_OR_RETURN(model.local, LoadServed(std::move(local), options));
  } else {
    FLOE_ASSIGN_OR_RETURN(options->file, FindModelFile(options->file, notes));
    FLOE_ASSIGN_OR_RETURN(model.local, LoadLocal(options->file, local));
  }
  options->threads = std::max(options->threads, 1);
  model.load_ms = Microseconds(MeasureClock::now() - start) / 1000;
  return model;
}

void PrintLibraries(const MeasuredModel& model, std::ostream& out) {
  for (const IslandInfo& island : model.local.model->islands()) {
    for (const LayerByLibrary& layer : island.by_library)
      out << layer.node << ": "
          << (layer.why_not.empty() ? layer.route : "floe's own kernel: " + layer.why_not) << "\n";
  }
}

absl::StatusOr<std::vector<Tensor>> MeasuredInputs(const MeasureOptions& options,
                                                   const MeasuredModel& model, int64_t batch) {
  const Signature& signature = *model.local.signature;
  if (options.inputs.empty()) {
    FLOE_ASSIGN_OR_RETURN(MadeUpCall made, MakeUpCall(signature, {{std::max<int64_t>(batch, 1)},
                                                                  options.unknown_dim}));
    return std::move(made.made.inputs);
  }
  MatchOptions match;
  match.by_position = options.by_position;
  match.signature = &signature;
  FLOE_ASSIGN_OR_RETURN(std::vector<Tensor> inputs,
                        MatchInputs(model.local.def(), model.arrays, match));
  if (batch == 0) return inputs;
  return WithRows(signature, inputs, batch);
}

int64_t RowsOf(const BoundCall& call, int64_t batch) {
  return call.plan->has_rows() ? call.rows : std::max<int64_t>(batch, 1);
}

double Microseconds(MeasureClock::duration d) {
  return std::chrono::duration<double, std::micro>(d).count();
}

MeasureClock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<MeasureClock::duration>(std::chrono::duration<double>(seconds));
}

absl::StatusOr<int64_t> Repeat(double seconds, int64_t runs,
                               const std::function<absl::Status()>& run) {
  const MeasureClock::time_point end = MeasureClock::now() + Seconds(seconds);
  int64_t made = 0;
  do {
    FLOE_RETURN_IF_ERROR(run());
    ++made;
  } while (runs > 0 ? made < runs : MeasureClock::now() < end);
  return made;
}

double TimerMicroseconds() {
  constexpr int kReadings = 1000;
  const MeasureClock::time_point start = MeasureClock::now();
  MeasureClock::time_point last = start;
  for (int i = 0; i < kReadings; ++i) last = MeasureClock::now();
  return Microseconds(last - start) / kReadings;
}

double Rounded(double us) { return std::round(us * 1000) / 1000; }

}  // namespace floe::cli
