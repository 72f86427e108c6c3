// What `bench` and `profile` share: options that say which call of a model file to measure, loading
// the file, and making the inputs.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "cli/local_model.h"
#include "cli/rpc.h"

namespace floe::cli {

struct MeasureOptions {
  std::string file;  // as of FindModelFile, or the name of a model that `target` serves
  std::string inputs;
  Target target;
  std::string gemm = "auto", device = "cpu", gpu_libraries = "none";
  LocalOptions local;  // but for `gemm`
  bool precision_given = false;
  int64_t unknown_dim = 0;  // 0: one that fits
  int threads = 0;          // 0: 1, or those of the served model
  double seconds = 2;
  bool by_position = false;
};

// Whether MODEL is the name of a served model rather than a file. A name that is neither is most
// likely a file's.
bool NamesServedModel(const std::string& model);

// MODEL and the options of MeasureOptions.
void AddMeasureOptions(CLI::App& command, MeasureOptions& options);

// A loaded file with the arrays it is fed.
struct MeasuredModel {
  LocalModel local;
  NamedTensors arrays;
  double load_ms = 0;  // of reading and compiling the file
};
// Sets the file, and the threads where the options leave them to a server. `notes` as of
// FindModelFile.
absl::StatusOr<MeasuredModel> LoadMeasured(MeasureOptions* options, std::ostream& notes);

// What became of the layers that libraries of the device were offered; a line each.
void PrintLibraries(const MeasuredModel& model, std::ostream& out);

// The inputs of a call of `batch` rows: the arrays, their rows repeated, or made-up values.
// `batch` 0: the rows of the arrays, or 1.
absl::StatusOr<std::vector<Tensor>> MeasuredInputs(const MeasureOptions& options,
                                                   const MeasuredModel& model, int64_t batch);

// The rows of a call made for `batch`.
int64_t RowsOf(const BoundCall& call, int64_t batch);

using MeasureClock = std::chrono::steady_clock;
double Microseconds(MeasureClock::duration d);
MeasureClock::duration Seconds(double seconds);

// Calls `run` so many times, or for `runs` 0 until `seconds` have passed, but once at least.
// Returns how often, or the first error.
absl::StatusOr<int64_t> Repeat(double seconds, int64_t runs,
                               const std::function<absl::Status()>& run);

// The cost of reading the clock once, in microseconds.
double TimerMicroseconds();

// To a nanosecond, the unit of the clock.
double Rounded(double us);

}  // namespace floe::cli
