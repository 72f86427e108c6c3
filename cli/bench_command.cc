// `floectl bench`: measures the calls of a model file in this process.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/local_model.h"
#include "cli/made_up_inputs.h"
#include "cli/npz.h"
#include "cli/table.h"
#include "nlohmann/json.hpp"

namespace floe::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string file, inputs, signature;
  std::string gemm = "auto";
  std::map<std::string, std::string> routes;
  std::vector<std::string> disabled_passes, tags;
  std::vector<std::string> fetches;
  int64_t batch = 0;        // 0: the rows of the inputs, or 1
  int64_t unknown_dim = 0;  // 0: one that fits
  int threads = 1;
  double seconds = 2;
  bool by_position = false, json = false;
};

struct Result {
  double load_ms = 0, first_us = 0;
  double p50_us = 0, p99_us = 0, min_us = 0, mean_us = 0;
  int64_t calls = 0;
  int64_t batch = 0;
  int64_t peak_rss_bytes = 0;
  double timer_us = 0;  // the cost of one reading of the clock, contained in every figure
};

double Microseconds(Clock::duration d) {
  return std::chrono::duration<double, std::micro>(d).count();
}

// The largest resident size of this process so far. From /proc: getrusage's figure survives exec
// and may be that of the shell which started us.
int64_t PeakRssBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

double TimerMicroseconds() {
  constexpr int kReadings = 1000;
  const Clock::time_point start = Clock::now();
  Clock::time_point last = start;
  for (int i = 0; i < kReadings; ++i) last = Clock::now();
  return Microseconds(last - start) / kReadings;
}

absl::StatusOr<std::vector<Tensor>> Inputs(const Options& options, const NamedTensors& arrays,
                                           const LocalModel& model) {
  if (options.inputs.empty()) {
    FLOE_ASSIGN_OR_RETURN(MadeUpCall made,
                          MakeUpInputs(*model.signature, {{std::max<int64_t>(options.batch, 1)},
                                                          options.unknown_dim}));
    return std::move(made.inputs);
  }
  MatchOptions match;
  match.by_position = options.by_position;
  match.signature = model.signature;
  FLOE_ASSIGN_OR_RETURN(std::vector<Tensor> inputs, MatchInputs(model.def(), arrays, match));
  if (options.batch == 0) return inputs;
  return WithRows(*model.signature, inputs, options.batch);
}

// Calls until the time is up. Percentiles are of the last kSamples calls.
absl::Status Measure(const BoundCall& call, ExecContext& exec, double seconds, Result* result) {
  constexpr size_t kSamples = size_t{1} << 20;
  std::vector<float> samples;
  samples.reserve(kSamples);
  const Clock::time_point start = Clock::now();
  const Clock::time_point end =
      start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  result->min_us = 1e30;
  // One reading between calls: the end of one is the start of the next, less what storing the
  // sample takes.
  Clock::time_point before = Clock::now();
  do {
    FLOE_RETURN_IF_ERROR(RunCall(call, exec));
    const Clock::time_point after = Clock::now();
    const double us = Microseconds(after - before);
    if (samples.size() < kSamples) {
      samples.push_back(us);
    } else {
      samples[result->calls % kSamples] = us;
    }
    result->min_us = std::min(result->min_us, us);
    ++result->calls;
    before = Clock::now();
  } while (before < end);
  result->mean_us = Microseconds(before - start) / result->calls;
  std::sort(samples.begin(), samples.end());
  result->p50_us = samples[(samples.size() - 1) / 2];
  result->p99_us = samples[(samples.size() - 1) * 99 / 100];
  return absl::OkStatus();
}

absl::StatusOr<Result> Bench(const Options& options) {
  Result result;
  LocalOptions local_options;
  FLOE_ASSIGN_OR_RETURN(local_options.compile.kernels.gemm, GemmBackendFromName(options.gemm));
  local_options.compile.disabled_passes = options.disabled_passes;
  local_options.compile.kernels.routes = options.routes;
  local_options.fetches = options.fetches;
  local_options.signature = options.signature;
  local_options.tags = options.tags;
  NamedTensors arrays;
  if (!options.inputs.empty()) {
    FLOE_ASSIGN_OR_RETURN(arrays, ReadNpz(options.inputs));
  }
  if (!options.by_position) local_options.feeds = FeedsOf(arrays);
  const Clock::time_point load_start = Clock::now();
  FLOE_ASSIGN_OR_RETURN(const LocalModel model, LoadLocal(options.file, local_options));
  result.load_ms = Microseconds(Clock::now() - load_start) / 1000;

  FLOE_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs, Inputs(options, arrays, model));
  ExecContext exec(options.threads);
  const Clock::time_point first_start = Clock::now();
  FLOE_ASSIGN_OR_RETURN(const BoundCall call, BindCall(*model.signature, inputs));
  FLOE_RETURN_IF_ERROR(RunCall(call, exec));
  result.first_us = Microseconds(Clock::now() - first_start);
  result.batch = call.plan->has_rows() ? call.rows : std::max<int64_t>(options.batch, 1);

  const Clock::time_point warm_end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(options.seconds / 10));
  while (Clock::now() < warm_end) FLOE_RETURN_IF_ERROR(RunCall(call, exec));
  // Before the samples are stored: they are the benchmark's memory, not the engine's.
  result.peak_rss_bytes = PeakRssBytes();
  result.timer_us = TimerMicroseconds();
  FLOE_RETURN_IF_ERROR(Measure(call, exec, options.seconds, &result));
  return result;
}

// To a nanosecond: the clock knows no more.
double Rounded(double value) { return std::round(value * 1000) / 1000; }

void PrintJson(const Options& options, const Result& r, std::ostream& out) {
  const nlohmann::ordered_json json = {
      {"file", options.file},
      {"gemm", options.gemm},
      {"batch", r.batch},
      {"threads", options.threads},
      {"calls", r.calls},
      {"p50_us", Rounded(r.p50_us)},
      {"p99_us", Rounded(r.p99_us)},
      {"min_us", Rounded(r.min_us)},
      {"mean_us", Rounded(r.mean_us)},
      {"first_us", Rounded(r.first_us)},
      {"load_ms", Rounded(r.load_ms)},
      {"rows_per_second", std::round(r.batch * 1e6 / r.mean_us)},
      {"peak_rss_bytes", r.peak_rss_bytes},
      {"timer_us", Rounded(r.timer_us)},
  };
  out << json.dump(2) << "\n";
}

std::string Fixed(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

void PrintTable(const Options& options, const Result& r, std::ostream& out) {
  out << options.file << ": batch " << r.batch << ", " << options.threads << " thread(s), gemm "
      << options.gemm << ", " << r.calls << " calls\n";
  Table table({"p50 us", "p99 us", "min us", "first us", "load ms", "rows/s", "peak RSS"});
  table.Add({Fixed(r.p50_us), Fixed(r.p99_us), Fixed(r.min_us), Fixed(r.first_us), Fixed(r.load_ms),
             HumanCount(r.batch * 1e6 / r.mean_us), HumanBytes(r.peak_rss_bytes)});
  table.Print(out);
}

absl::Status Run(const Options& options, Context& context) {
  FLOE_ASSIGN_OR_RETURN(const Result result, Bench(options));
  if (options.json) {
    PrintJson(options, result, context.out);
  } else {
    PrintTable(options, result, context.out);
  }
  return absl::OkStatus();
}

}  // namespace

void AddBenchCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* const command =
      app.add_subcommand("bench", "Measure a model file in this process, without a server");
  command->add_option("FILE", options->file, "The model: a SavedModel's directory, or a file")
      ->required();
  command
      ->add_option("-i,--inputs", options->inputs,
                   "Arrays to feed (.npz). Default: floats in [0, 1), other types 0")
      ->type_name("IN.npz");
  command
      ->add_option("-b,--batch", options->batch,
                   "Rows per call. Default: those of the inputs, or 1")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  command->add_option("-t,--threads", options->threads, "Threads inside one call")
      ->type_name("N")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command
      ->add_option("-s,--seconds", options->seconds,
                   "Seconds to measure, after a warm-up of a tenth of that")
      ->type_name("S")
      ->check(CLI::Range(0.001, 86400.0))
      ->capture_default_str();
  command
      ->add_option(
          "--dim", options->unknown_dim,
          "Size of unknown non-batch dimensions of generated inputs (default: one that fits)")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  command->add_option("--fetch", options->fetches, "A tensor to fetch; can be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command
      ->add_option("--signature", options->signature, "Signature to run (default serving_default)")
      ->type_name("NAME");
  AddTagsOption(*command, options->tags);
  command->add_flag("--by-position", options->by_position,
                    "Feed the arrays in the order of the signature");
  command->add_flag("--json", options->json, "Print JSON");
  AddGemmOption(*command, options->gemm);
  AddDisablePassOption(*command, options->disabled_passes);
  AddRouteOption(*command, options->routes);
  command->footer(
      "Each figure includes the cost of reading the clock once (timer_us in the JSON, about "
      "0.03).\n"
      "load_ms is for reading and compiling the file. first_us includes planning for the shapes.\n"
      "Example:\n  floectl bench frozen.pb --batch 8 --threads 1 --json");
  command->callback([options, &context] {
    context.action = [options, &context] { return Run(*options, context); };
  });
}

}  // namespace floe::cli
