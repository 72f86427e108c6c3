// `floectl profile`: times the steps of a model file in this process.
#include <memory>

#include "base/status.h"
#include "cli/command.h"
#include "cli/measured_call.h"
#include "cli/profile_report.h"
#include "nlohmann/json.hpp"

namespace floe::cli {
namespace {

constexpr int kTracedRuns = 10;
constexpr size_t kTracedCalls = 200'000;  // no further run is traced after so many

struct ProfileOptions {
  MeasureOptions measure;
  int64_t batch = 0;  // 0: the rows of the inputs, or 1
  int64_t runs = 0;   // 0: as many as fit into measure.seconds
  std::string trace;
  bool json = false;
};

absl::Status RunProfiled(const BoundCall& call, ExecContext& exec, StepProfile* profile) {
  profile->StartRun();
  FLOE_RETURN_IF_ERROR(RunCall(call, exec));
  profile->EndRun();
  return absl::OkStatus();
}

// Warm-up, runs that nobody observes, the runs that count.
absl::StatusOr<ProfileReport> Measure(const ProfileOptions& options, const BoundCall& call,
                                      ExecContext& exec) {
  const double seconds = options.measure.seconds;
  const auto plain = [&] { return RunCall(call, exec); };
  FLOE_RETURN_IF_ERROR(Repeat(seconds / 10, (options.runs + 9) / 10, plain).status());
  const MeasureClock::time_point start = MeasureClock::now();
  FLOE_ASSIGN_OR_RETURN(const int64_t unobserved,
                        Repeat(seconds / 4, (options.runs + 3) / 4, plain));
  const double unobserved_us =
      Microseconds(MeasureClock::now() - start) / static_cast<double>(unobserved);
  StepProfile profile;
  exec.Observe(&profile);
  FLOE_RETURN_IF_ERROR(
      Repeat(seconds, options.runs, [&] { return RunProfiled(call, exec, &profile); }).status());
  exec.Observe(nullptr);
  ProfileReport report = Summarise(profile);
  report.unobserved_us = unobserved_us;
  return report;
}

absl::Status Trace(const ProfileOptions& options, const BoundCall& call, ExecContext& exec) {
  StepProfile profile;
  profile.KeepCalls();
  exec.Observe(&profile);
  for (int i = 0; i < kTracedRuns && profile.calls().size() < kTracedCalls; ++i)
    FLOE_RETURN_IF_ERROR(RunProfiled(call, exec, &profile));
  exec.Observe(nullptr);
  return WriteTrace(profile, "floectl profile " + options.measure.file, options.trace);
}

absl::Status Run(ProfileOptions options, Context& context) {
  FLOE_ASSIGN_OR_RETURN(const MeasuredModel model, LoadMeasured(&options.measure, context.err));
  const MeasureOptions& measure = options.measure;
  FLOE_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs,
                        MeasuredInputs(measure, model, options.batch));
  ExecContext exec(measure.threads);
  FLOE_ASSIGN_OR_RETURN(const BoundCall call, BindCall(*model.local.signature, inputs));
  FLOE_ASSIGN_OR_RETURN(const ProfileReport report, Measure(options, call, exec));
  if (!options.trace.empty()) FLOE_RETURN_IF_ERROR(Trace(options, call, exec));
  const int64_t batch = RowsOf(call, options.batch);
  if (options.json) {
    nlohmann::ordered_json json = {{"file", measure.file},
                                   {"gemm", measure.gemm},
                                   {"batch", batch},
                                   {"threads", measure.threads},
                                   {"timer_us", Rounded(TimerMicroseconds())}};
    json.update(ProfileJson(report));
    context.out << json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
                << "\n";
  } else {
    context.out << measure.file << ": batch " << batch << ", " << measure.threads
                << " thread(s), gemm " << measure.gemm << ", " << Rounded(report.unobserved_us)
                << " us a run without the profile\n";
    PrintLibraries(model, context.out);
    PrintProfile(report, context.out);
  }
  return absl::OkStatus();
}

}  // namespace

void AddProfileCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<ProfileOptions>();
  CLI::App* const command =
      app.add_subcommand("profile", "Time each step of a model in this process");
  AddMeasureOptions(*command, options->measure);
  command
      ->add_option("-b,--batch", options->batch,
                   "Rows per call. Default: those of the inputs, or 1")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  command->add_option("--runs", options->runs, "Runs to measure, instead of --seconds")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  command
      ->add_option("--trace", options->trace,
                   "Also write the steps of up to 10 further runs as a trace, which "
                   "chrome://tracing and ui.perfetto.dev show")
      ->type_name("FILE.json");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Times are means per run. Each call of a step includes the cost of reading the clock once "
      "(timer_us in the JSON).\n"
      "Steps of loop bodies and branches have lines of their own, and their time is not their "
      "caller's.\n"
      "Example:\n  floectl profile frozen.pb --batch 8 --trace trace.json");
  command->callback([options, &context] {
    context.action = [options, &context] { return Run(*options, context); };
  });
}

}  // namespace floe::cli
