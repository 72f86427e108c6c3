// `floectl bench`: measures the calls of a model file in this process, or those of a server.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>

#include "base/byte_size.h"
#include "base/status.h"
#include "cli/bench_server.h"
#include "cli/command.h"
#include "cli/measured_call.h"
#include "cli/model_path.h"
#include "cli/table.h"
#include "nlohmann/json.hpp"

namespace floe::cli {
namespace {

struct BenchOptions {
  MeasureOptions measure;
  std::vector<int64_t> batches;  // empty: the rows of the inputs, or 1
  bool json = false;
  ServerBenchOptions server;  // but for what `measure` and the others have
};

constexpr double kServerSeconds = 10;

struct Result {
  double load_ms = 0, first_us = 0;
  double p50_us = 0, p99_us = 0, min_us = 0, mean_us = 0;
  int64_t calls = 0;
  int64_t batch = 0;
  int64_t peak_rss_bytes = 0;
  double timer_us = 0;  // the cost of one reading of the clock, contained in every figure

  double RowsPerSecond() const { return static_cast<double>(batch) * 1e6 / mean_us; }
};

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

// Calls until the time is up. Percentiles are of the last kSamples calls.
absl::Status Measure(const BoundCall& call, ExecContext& exec, double seconds, Result* result) {
  constexpr size_t kSamples = size_t{1} << 20;
  std::vector<float> samples;
  samples.reserve(kSamples);
  const MeasureClock::time_point start = MeasureClock::now();
  const MeasureClock::time_point end = start + Seconds(seconds);
  result->min_us = 1e30;
  // One reading between calls: the end of one is the start of the next, less what storing the
  // sample takes.
  MeasureClock::time_point before = MeasureClock::now();
  do {
    FLOE_RETURN_IF_ERROR(RunCall(call, exec));
    const MeasureClock::time_point after = MeasureClock::now();
    const double us = Microseconds(after - before);
    if (samples.size() < kSamples) {
      samples.push_back(us);
    } else {
      samples[result->calls % kSamples] = us;
    }
    result->min_us = std::min(result->min_us, us);
    ++result->calls;
    before = MeasureClock::now();
  } while (before < end);
  result->mean_us = Microseconds(before - start) / result->calls;
  std::sort(samples.begin(), samples.end());
  result->p50_us = samples[(samples.size() - 1) / 2];
  result->p99_us = samples[(samples.size() - 1) * 99 / 100];
  return absl::OkStatus();
}

absl::StatusOr<Result> Bench(const MeasureOptions& options, const MeasuredModel& model,
                             int64_t batch) {
  Result result;
  result.load_ms = model.load_ms;
  FLOE_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs, MeasuredInputs(options, model, batch));
  ExecContext exec(options.threads);
  const MeasureClock::time_point first_start = MeasureClock::now();
  FLOE_ASSIGN_OR_RETURN(const BoundCall call, BindCall(*model.local.signature, inputs));
  FLOE_RETURN_IF_ERROR(RunCall(call, exec));
  result.first_us = Microseconds(MeasureClock::now() - first_start);
  result.batch = RowsOf(call, batch);
  FLOE_RETURN_IF_ERROR(
      Repeat(options.seconds / 10, 0, [&] { return RunCall(call, exec); }).status());
  // Before the samples are stored: they are the benchmark's memory, not the engine's.
  result.peak_rss_bytes = PeakRssBytes();
  result.timer_us = TimerMicroseconds();
  FLOE_RETURN_IF_ERROR(Measure(call, exec, options.seconds, &result));
  return result;
}

nlohmann::ordered_json ResultJson(const MeasureOptions& options, const Result& r) {
  return {
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
      {"rows_per_second", std::round(r.RowsPerSecond())},
      {"peak_rss_bytes", r.peak_rss_bytes},
      {"timer_us", Rounded(r.timer_us)},
  };
}

// An object for one batch, as scripts know it; an array of them for a list.
void PrintJson(const BenchOptions& options, const std::vector<Result>& results, std::ostream& out) {
  nlohmann::ordered_json json;
  for (const Result& result : results) json.push_back(ResultJson(options.measure, result));
  if (options.batches.size() < 2) json = nlohmann::ordered_json(json[0]);
  out << json.dump(2) << "\n";
}

std::string Fixed(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

void PrintTable(const MeasureOptions& options, const std::vector<Result>& results,
                std::ostream& out) {
  out << options.file << ": " << options.threads << " thread(s), gemm " << options.gemm
      << ", loaded in " << Fixed(results[0].load_ms) << " ms\n";
  Table table({"batch", "p50 us", "p99 us", "min us", "first us", "rows/s", "calls", "peak RSS"});
  for (const Result& r : results) {
    table.Add({std::to_string(r.batch), Fixed(r.p50_us), Fixed(r.p99_us), Fixed(r.min_us),
               Fixed(r.first_us), HumanCount(r.RowsPerSecond()), std::to_string(r.calls),
               HumanBytes(static_cast<double>(r.peak_rss_bytes))});
  }
  table.Print(out);
}

absl::Status Run(BenchOptions options, Context& context) {
  FLOE_ASSIGN_OR_RETURN(const MeasuredModel model, LoadMeasured(&options.measure, context.err));
  std::vector<int64_t> batches = options.batches;
  if (batches.empty()) batches.push_back(0);
  std::vector<Result> results;
  for (const int64_t batch : batches) {
    FLOE_ASSIGN_OR_RETURN(const Result result, Bench(options.measure, model, batch));
    results.push_back(result);
  }
  if (options.json) {
    PrintJson(options, results, context.out);
  } else {
    PrintLibraries(model, context.out);
    PrintTable(options.measure, results, context.out);
  }
  return absl::OkStatus();
}

absl::Status RunServer(BenchOptions options, Context& context) {
  ServerBenchOptions& server = options.server;
  const MeasureOptions& measure = options.measure;
  server.target = measure.target;
  server.call.model = measure.file;
  if (!measure.local.signature.empty()) server.call.signature = measure.local.signature;
  if (!measure.inputs.empty()) server.inputs.push_back("@" + measure.inputs);
  server.batches = options.batches;
  server.unknown_dim = measure.unknown_dim;
  server.seconds = measure.seconds;
  server.json = options.json;
  if (server.concurrency == 0)
    server.concurrency = server.rate > 0 ? kOpenConcurrency : kClosedConcurrency;
  return BenchServer(server, context);
}

// Options that MODEL gives no meaning to.
void CheckMode(const std::vector<CLI::Option*>& others, bool server) {
  for (const CLI::Option* option : others) {
    if (option->count() == 0) continue;
    throw CLI::ValidationError(
        option->get_name(), server
                                ? "is for a file that is measured in this process, not for a server"
                                : "is for a server, which --target names; this is a file");
  }
}

// Whether the command line means a server; throws where it contradicts itself.
bool MeansServer(CLI::App& command, const std::vector<CLI::Option*>& of_files,
                 const std::vector<CLI::Option*>& of_servers, BenchOptions* options) {
  const bool server = command.count("--target") > 0 || NamesServedModel(options->measure.file);
  CheckMode(server ? of_files : of_servers, server);
  if (!server) return false;
  if (command.count("--seconds") == 0) options->measure.seconds = kServerSeconds;
  const ServerBenchOptions& s = options->server;
  if (s.concurrency > 0 && s.concurrency < s.connections)
    throw CLI::ValidationError("--connections", "there are more than --concurrency");
  return true;
}

}  // namespace

void AddBenchCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* const command = app.add_subcommand(
      "bench", "Measure a model file in this process, or a server with --target");
  AddMeasureOptions(*command, options->measure);
  command->get_option("MODEL")->description(
      std::string(kModelHelp) + ". With --target, or if there is no such file, a served model");
  command->get_option("--seconds")
      ->description("Seconds to measure, after a warm-up of a tenth of that. Of a server: 10");
  command
      ->add_option("-b,--batch", options->batches,
                   "Rows per call, or a list: each is measured. Default: those of the inputs, or 1")
      ->type_name("N,N")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  command->add_flag("--json", options->json, "Print JSON: an array for a list of batches");
  std::vector<CLI::Option*> of_files;
  for (const char* const name : {"--threads", "--by-position", "--fetch", "--tags", "--gemm",
                                 "--precision", "--disable-pass", "--route"})
    of_files.push_back(command->get_option(name)->group("Of a file"));
  const std::vector<CLI::Option*> of_servers = AddServerBenchOptions(*command, options->server);
  for (CLI::Option* option : of_servers) {
    if (!option->get_positional()) option->group("Of a server");
  }
  command->footer(
      "Of a file, each figure includes the cost of reading the clock once (timer_us in the JSON, "
      "about 0.03).\n"
      "load_ms is for reading and compiling it. first_us includes planning for the shapes.\n"
      "peak RSS is of the process up to that row.\n"
      "A server is measured by Predict calls, whose latencies in a closed loop count from sending, "
      "and with --rate from\nwhen the call was due. The exit status is 1 if a call fails.\n"
      "Example:\n  floectl bench frozen.pb --batch 1,8,32 --threads 1\n"
      "  floectl bench mnist_beginner --target 127.0.0.1:8500 --concurrency 32 --connections 2\n"
      "  floectl bench mnist_beginner input=@digits.npy --target 127.0.0.1:8500 --rate 500");
  command->callback([command, of_files, of_servers, options, &context] {
    const bool server = MeansServer(*command, of_files, of_servers, options.get());
    context.action = [server, options, &context] {
      return server ? RunServer(*options, context) : Run(*options, context);
    };
  });
}

}  // namespace floe::cli
