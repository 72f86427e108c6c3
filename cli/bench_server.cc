#include "cli/bench_server.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/quoted.h"
#include "base/status.h"
#include "cli/load_generator.h"
#include "cli/load_report.h"
#include "cli/local_model.h"
#include "cli/predict_io.h"
#include "runtime/made_up_inputs.h"

namespace floe::cli {
namespace {

bool HasOpenRows(const SymShape& shape) {
  return shape.rank_known() && shape.rank() > 0 && !shape.dim(0).concrete();
}

absl::StatusOr<std::vector<Tensor>> MakeUp(const SignatureDef& def, int64_t batch,
                                           int64_t unknown_dim) {
  std::mt19937 random = MadeUpRandom();
  std::vector<Tensor> inputs;
  for (const SignatureTensor& input : def.inputs) {
    const SymShape& declared = input.type.shape;
    if (!declared.rank_known()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the server does not say how many dimensions input ", Quoted(input.key),
                       " has; give it as INPUT or in a file for --inputs"));
    }
    const Shape shape = FilledShape(declared, batch, std::max<int64_t>(unknown_dim, 1));
    FLOE_RETURN_IF_ERROR(CheckMadeUp(input, shape));
    inputs.push_back(MadeUpTensor(input.type.dtype, shape, random));
  }
  return inputs;
}

// For a call of `batch` rows; 0: as many as the inputs have, or 1.
absl::StatusOr<std::vector<Tensor>> InputsOf(const ServerBenchOptions& options,
                                             const SignatureDef& def, int64_t batch) {
  if (options.inputs.empty()) return MakeUp(def, std::max<int64_t>(batch, 1), options.unknown_dim);
  std::vector<InputArgument> arguments;
  for (const std::string& text : options.inputs) {
    FLOE_ASSIGN_OR_RETURN(InputArgument argument, ParseInputArgument(text));
    arguments.push_back(std::move(argument));
  }
  FLOE_ASSIGN_OR_RETURN(std::vector<Tensor> inputs, TensorsFromArguments(def, arguments));
  for (size_t i = 0; i < inputs.size() && batch > 0; ++i) {
    if (!inputs[i].valid() || inputs[i].shape().rank() == 0 ||
        !HasOpenRows(def.inputs[i].type.shape))
      continue;
    FLOE_ASSIGN_OR_RETURN(inputs[i], TakeRows(inputs[i], batch));
  }
  return inputs;
}

int64_t BatchOf(const SignatureDef& def, const std::vector<Tensor>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].valid() && inputs[i].shape().rank() > 0 && HasOpenRows(def.inputs[i].type.shape))
      return inputs[i].shape().dim(0);
  }
  return 1;
}

// Shows how far a run of `seconds` is, on one line of a terminal, which goes when this ends.
class ProgressLine {
 public:
  ProgressLine(std::ostream* terminal, std::string what, double seconds)
      : terminal_(terminal), what_(std::move(what)), seconds_(seconds) {}
  ~ProgressLine() {
    if (terminal_ != nullptr) *terminal_ << kClear << std::flush;
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  LoadGenerator::Progress Show() {
    if (terminal_ == nullptr) return {};
    return [this](double seconds, int64_t ended, int64_t failed) {
      *terminal_ << kClear
                 << absl::StrFormat("%s: %.0f of %g s, %d calls, %d failed", what_,
                                    std::min(seconds, seconds_), seconds_, ended, failed)
                 << std::flush;
    };
  }

 private:
  static constexpr char kClear[] = "\r\x1b[K";

  std::ostream* const terminal_;
  const std::string what_;
  const double seconds_;
};

class ServerBench {
 public:
  ServerBench(const ServerBenchOptions& options, Context& context)
      : options_(options), context_(context), client_(options.target) {}

  absl::Status Run() {
    FLOE_ASSIGN_OR_RETURN(const CalledSignature called, FetchCalled(client_, options_.call));
    std::vector<int64_t> batches = options_.batches;
    if (batches.empty()) batches.push_back(0);
    std::vector<LoadRow> rows;
    LoadSubject subject = {options_.target.address, options_.call.model, options_.call.signature,
                           called.version};
    for (const int64_t batch : batches) {
      FLOE_ASSIGN_OR_RETURN(LoadRow row, Measure(called.def, batch));
      rows.push_back(std::move(row));
    }
    Print(subject, rows);
    return LoadOutcome(rows, options_.no_fail);
  }

 private:
  absl::StatusOr<LoadRow> Measure(const SignatureDef& def, int64_t batch) {
    FLOE_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs, InputsOf(options_, def, batch));
    const tensorflow::serving::PredictRequest request = RequestOf(options_.call, def, inputs);
    FLOE_RETURN_IF_ERROR(Try(request));
    LoadRow row;
    row.batch = BatchOf(def, inputs);
    row.seconds = options_.seconds;
    row.warmup_seconds =
        options_.warmup_seconds < 0 ? options_.seconds / 10 : options_.warmup_seconds;
    row.options = {.target = options_.target,
                   .method = kPredictMethod,
                   .request = request.SerializeAsString(),
                   .connections = options_.connections,
                   .concurrency = options_.concurrency,
                   .rate = options_.rate,
                   .constant_arrivals = options_.constant_arrivals};
    LoadGenerator generator(row.options);
    if (row.warmup_seconds > 0) {
      ProgressLine line(context_.terminal, "warm-up", row.warmup_seconds);
      const LoadResult warmup = generator.Run(row.warmup_seconds, line.Show());
      row.warmup_calls = warmup.succeeded + warmup.failed;
    }
    ++row.warmup_calls;  // that of Try
    ProgressLine line(context_.terminal, absl::StrCat("batch ", row.batch), row.seconds);
    row.result = generator.Run(row.seconds, line.Show());
    return row;
  }

  // One call, lest a mistake in the request be measured.
  absl::Status Try(const tensorflow::serving::PredictRequest& request) const {
    tensorflow::serving::PredictResponse response;
    absl::Status status = client_.Call(kPredictMethod, request, &response);
    if (options_.inputs.empty() && absl::IsInvalidArgument(status)) {
      return Annotate(status,
                      "made-up inputs (--dim sets their open dimensions; INPUT and --inputs give "
                      "your own)");
    }
    return status;
  }

  void Print(const LoadSubject& subject, const std::vector<LoadRow>& rows) {
    if (!options_.json) return PrintLoad(subject, rows, context_.out);
    nlohmann::ordered_json json;
    for (const LoadRow& row : rows) json.push_back(LoadJson(subject, row));
    if (rows.size() == 1) json = nlohmann::ordered_json(json[0]);
    context_.out << json.dump(2) << "\n";
  }

  const ServerBenchOptions& options_;
  Context& context_;
  const RpcClient client_;
};

}  // namespace

std::vector<CLI::Option*> AddServerBenchOptions(CLI::App& command, ServerBenchOptions& options) {
  std::vector<CLI::Option*> added = {AddInputArguments(command, options.inputs)};
  for (CLI::Option* option : AddVersionOptions(command, options.call)) added.push_back(option);
  added.push_back(command
                      .add_option("-c,--concurrency", options.concurrency,
                                  absl::StrCat("Calls that wait for an answer at the same time "
                                               "(default ",
                                               kClosedConcurrency, "); with --rate at most (",
                                               kOpenConcurrency, ")"))
                      ->type_name("N")
                      ->check(CLI::Range(1, 1'000'000)));
  added.push_back(command
                      .add_option("--connections", options.connections,
                                  "Connections that share the calls, with a thread for each as far "
                                  "as there are CPUs")
                      ->type_name("N")
                      ->check(CLI::Range(1, 10'000))
                      ->capture_default_str());
  CLI::Option* const rate =
      command
          .add_option("--rate", options.rate,
                      "Calls a second, however long answers take (open loop). Default: each answer "
                      "is followed by the next call (closed loop)")
          ->type_name("R")
          ->check(CLI::Range(0.001, 1e7));
  const std::map<std::string, bool> arrivals = {{"poisson", false}, {"constant", true}};
  added.push_back(rate);
  added.push_back(
      command
          .add_option("--arrivals", options.constant_arrivals,
                      "With --rate: poisson, at random (default), or constant, evenly spaced")
          ->transform(CLI::CheckedTransformer(arrivals).description(""))
          ->type_name("NAME")
          ->needs(rate));
  added.push_back(command
                      .add_option("--warmup", options.warmup_seconds,
                                  "Seconds of the same load before (default: a tenth of --seconds)")
                      ->type_name("S")
                      ->check(CLI::Range(0.0, 86400.0)));
  added.push_back(command.add_flag("--no-fail", options.no_fail,
                                   "Exit with 0 although calls failed, as long as some succeed"));
  return added;
}

absl::Status BenchServer(const ServerBenchOptions& options, Context& context) {
  return ServerBench(options, context).Run();
}

}  // namespace floe::cli
