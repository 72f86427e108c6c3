// The options that `bench` and `profile` share, and the call they measure.
#include "cli/measured_call.h"

#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "cli/command.h"
#include "cli/made_up_inputs.h"
#include "cli/npz.h"

namespace floe::cli {

void AddMeasureOptions(CLI::App& command, MeasureOptions& options) {
  command.add_option("FILE", options.file, "The model: a SavedModel's directory, or a file")
      ->required();
  command
      .add_option("-i,--inputs", options.inputs,
                  "Arrays to feed (.npz). Default: floats in [0, 1), other types 0")
      ->type_name("IN.npz");
  command.add_option("-t,--threads", options.threads, "Threads inside one call")
      ->type_name("N")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
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
  AddGemmOption(command, options.gemm);
  AddDisablePassOption(command, options.local.compile.disabled_passes);
  AddRouteOption(command, options.local.compile.kernels.routes);
}

absl::StatusOr<MeasuredModel> LoadMeasured(const MeasureOptions& options) {
  MeasuredModel model;
  LocalOptions local = options.local;
  FLOE_ASSIGN_OR_RETURN(local.compile.kernels.gemm, GemmBackendFromName(options.gemm));
  if (!options.inputs.empty()) {
    FLOE_ASSIGN_OR_RETURN(model.arrays, ReadNpz(options.inputs));
  }
  if (!options.by_position) local.feeds = FeedsOf(model.arrays);
  const MeasureClock::time_point start = MeasureClock::now();
  FLOE_ASSIGN_OR_RETURN(model.local, LoadLocal(options.file, local));
  model.load_ms = Microseconds(MeasureClock::now() - start) / 1000;
  return model;
}

absl::StatusOr<std::vector<Tensor>> MeasuredInputs(const MeasureOptions& options,
                                                   const MeasuredModel& model, int64_t batch) {
  const Signature& signature = *model.local.signature;
  if (options.inputs.empty()) {
    FLOE_ASSIGN_OR_RETURN(MadeUpCall made, MakeUpInputs(signature, {{std::max<int64_t>(batch, 1)},
                                                                    options.unknown_dim}));
    return std::move(made.inputs);
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
