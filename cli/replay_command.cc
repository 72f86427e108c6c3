// `floectl replay`: sends recorded requests to a server, and compares its answers with the recorded
// ones.
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/read_file.h"
#include "base/status.h"
#include "base/tf_record.h"
#include "cli/command.h"
#include "cli/latency_histogram.h"
#include "cli/rpc.h"
#include "nlohmann/json.hpp"
#include "tensorflow_serving/apis/prediction_log.pb.h"

namespace floe::cli {
namespace {

namespace tfs = tensorflow::serving;
using google::protobuf::Message;

constexpr int64_t kMostFileBytes = int64_t{4} << 30;

struct ReplayOptions {
  Target target;
  std::string file, model;
  double rate = 0;  // 0: each thread sends as soon as it has an answer
  int concurrency = 1;
  int64_t times = 1;
  bool json = false;
};

// A request as it was recorded, with its answer where there is one.
struct Recorded {
  const char* method = "";
  std::unique_ptr<Message> request, answer;
};

struct ReplayResult {
  int64_t sent = 0, succeeded = 0, compared = 0, differing = 0;
  int64_t first_differing = 0;  // a record's number, from 1; 0: none
  std::map<absl::StatusCode, std::pair<int64_t, std::string>> errors;
  LatencyHistogram latency;
  double seconds = 0;
};

// What may differ between versions and servers that answer alike.
template <typename Proto>
std::unique_ptr<Message> Answer(Proto answer) {
  answer.clear_model_spec();
  return std::make_unique<Proto>(std::move(answer));
}

template <typename Log>
Recorded RecordOf(const char* method, const Log& log, const std::string& model) {
  auto request = log.request();
  if (!model.empty()) request.mutable_model_spec()->set_name(model);
  Recorded recorded;
  recorded.method = method;
  recorded.request = std::make_unique<decltype(request)>(std::move(request));
  recorded.answer = log.has_response() ? Answer(log.response()) : std::unique_ptr<Message>();
  return recorded;
}

// One without a method: a request of a kind that is not sent.
absl::StatusOr<Recorded> ReadRecord(std::string_view bytes, const std::string& model) {
  tfs::PredictionLog log;
  if (bytes.size() > INT32_MAX ||
      !log.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
      log.log_type_case() == tfs::PredictionLog::LOG_TYPE_NOT_SET)
    return absl::InvalidArgumentError("it is no PredictionLog");
  if (log.has_predict_log())
    return RecordOf("/tensorflow.serving.PredictionService/Predict", log.predict_log(), model);
  if (log.has_classify_log())
    return RecordOf("/tensorflow.serving.PredictionService/Classify", log.classify_log(), model);
  if (log.has_regress_log())
    return RecordOf("/tensorflow.serving.PredictionService/Regress", log.regress_log(), model);
  return Recorded();
}

absl::StatusOr<std::vector<Recorded>> ReadRecords(const ReplayOptions& options, int64_t* skipped) {
  FLOE_ASSIGN_OR_RETURN(const FileBytes bytes, ReadFile(options.file, kMostFileBytes));
  TfRecordReader reader(bytes.view());
  std::vector<Recorded> records;
  for (std::string_view record;;) {
    FLOE_ASSIGN_OR_RETURN(const bool more, reader.Next(&record));
    if (!more) break;
    absl::StatusOr<Recorded> read = ReadRecord(record, options.model);
    if (!read.ok())
      return Annotate(read.status(), absl::StrCat(options.file, ": record ", reader.count()));
    if (read->request == nullptr)
      ++*skipped;
    else
      records.push_back(*std::move(read));
  }
  if (records.empty())
    return absl::InvalidArgumentError(
        absl::StrCat(options.file, " has no request of Predict, Classify or Regress"));
  return records;
}

bool SameAnswer(const Message& one, const Message& other) {
  google::protobuf::util::DefaultFieldComparator comparator;
  comparator.set_treat_nan_as_equal(true);
  google::protobuf::util::MessageDifferencer differencer;
  differencer.set_field_comparator(&comparator);
  return differencer.Compare(one, other);
}

// The answer without the model that gave it.
void ClearSpec(Message* answer) {
  const auto* const spec = answer->GetDescriptor()->FindFieldByName("model_spec");
  answer->GetReflection()->ClearField(answer, spec);
}

// Threading: Run once.
class Replay {
 public:
  Replay(const ReplayOptions& options, const std::vector<Recorded>& records)
      : options_(options), records_(records), client_(options.target) {}

  ReplayResult Run() {
    start_ = Clock::Steady().Now();
    std::vector<std::thread> threads;
    for (int i = 1; i < options_.concurrency; ++i) threads.emplace_back([this] { Work(); });
    Work();
    for (std::thread& thread : threads) thread.join();
    const MutexLock lock(mutex_);
    result_.seconds = floe::Seconds(Clock::Steady().Now() - start_);
    return result_;
  }

 private:
  // Sends what nobody has sent yet, each when it is due.
  void Work() {
    const auto count = static_cast<int64_t>(records_.size());
    for (int64_t i = next_++; i < count * options_.times; i = next_++) {
      TimePoint due = Clock::Steady().Now();
      if (options_.rate > 0) {
        due = start_ + std::chrono::duration_cast<Duration>(
                           std::chrono::duration<double>(static_cast<double>(i) / options_.rate));
        std::this_thread::sleep_until(due);
      }
      Send(i % count, due);
    }
  }

  void Send(int64_t index, TimePoint due) {
    const Recorded& record = records_[static_cast<size_t>(index)];
    const std::unique_ptr<Message> answer = NewAnswer(record);
    const absl::Status status = client_.Call(record.method, *record.request, answer.get());
    const Duration took = Clock::Steady().Now() - due;
    ClearSpec(answer.get());
    const bool compared = status.ok() && record.answer != nullptr;
    const bool differs = compared && !SameAnswer(*record.answer, *answer);
    const MutexLock lock(mutex_);
    ++result_.sent;
    if (status.ok()) {
      ++result_.succeeded;
      result_.latency.Record(took);
    } else {
      auto& [errors, message] = result_.errors[status.code()];
      if (++errors == 1) message = std::string(status.message());
    }
    if (compared) ++result_.compared;
    if (!differs) return;
    ++result_.differing;
    int64_t& first = result_.first_differing;
    first = first == 0 ? index + 1 : std::min(first, index + 1);
  }

  static std::unique_ptr<Message> NewAnswer(const Recorded& record) {
    const std::string method = record.method;
    if (method.ends_with("/Classify")) return std::make_unique<tfs::ClassificationResponse>();
    if (method.ends_with("/Regress")) return std::make_unique<tfs::RegressionResponse>();
    return std::make_unique<tfs::PredictResponse>();
  }

  const ReplayOptions& options_;
  const std::vector<Recorded>& records_;
  const RpcClient client_;
  TimePoint start_;
  std::atomic<int64_t> next_{0};
  Mutex mutex_;
  ReplayResult result_ ABSL_GUARDED_BY(mutex_);
};

double Millis(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

void PrintJson(const ReplayResult& r, int64_t skipped, std::ostream& out) {
  nlohmann::ordered_json json = {{"sent", r.sent},
                                 {"succeeded", r.succeeded},
                                 {"skipped", skipped},
                                 {"compared", r.compared},
                                 {"differing", r.differing},
                                 {"seconds", r.seconds},
                                 {"p50_ms", Millis(r.latency.Percentile(500))},
                                 {"p99_ms", Millis(r.latency.Percentile(990))},
                                 {"max_ms", Millis(r.latency.Max())}};
  if (r.first_differing > 0) json["first_differing"] = r.first_differing;
  json["errors"] = nlohmann::ordered_json::object();
  for (const auto& [code, error] : r.errors)
    json["errors"][absl::StatusCodeToString(code)] = error.first;
  out << json.dump(2) << "\n";
}

void PrintText(const ReplayResult& r, int64_t skipped, std::ostream& out) {
  out << absl::StrFormat("%d requests in %.2f s, %d succeeded", r.sent, r.seconds, r.succeeded);
  if (skipped > 0) out << ", " << skipped << " records skipped";
  out << absl::StrFormat("\nlatency: p50 %.3f ms, p99 %.3f ms, max %.3f ms\n",
                         Millis(r.latency.Percentile(500)), Millis(r.latency.Percentile(990)),
                         Millis(r.latency.Max()));
  out << r.differing << " of " << r.compared << " answers differ from the recorded ones";
  if (r.first_differing > 0) out << ", first that to request " << r.first_differing;
  out << "\n";
  for (const auto& [code, error] : r.errors)
    out << error.first << " x " << absl::StatusCodeToString(code) << ": " << error.second << "\n";
}

absl::Status Outcome(const ReplayResult& result) {
  if (result.succeeded < result.sent)
    return absl::Status(result.errors.begin()->first,
                        absl::StrCat(result.sent - result.succeeded,
                                     " requests failed: ", result.errors.begin()->second.second));
  if (result.differing == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(result.differing, " answers differ from the recorded ones"));
}

absl::Status RunReplay(const ReplayOptions& options, Context& context) {
  int64_t skipped = 0;
  FLOE_ASSIGN_OR_RETURN(const std::vector<Recorded> records, ReadRecords(options, &skipped));
  const ReplayResult result = Replay(options, records).Run();
  if (options.json)
    PrintJson(result, skipped, context.out);
  else
    PrintText(result, skipped, context.out);
  return Outcome(result);
}

}  // namespace

void AddReplayCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<ReplayOptions>();
  CLI::App* const command =
      app.add_subcommand("replay", "Send recorded requests to a server, and compare its answers");
  command
      ->add_option("FILE", options->file,
                   "TFRecord file of PredictionLog: a request log, or "
                   "assets.extra/tf_serving_warmup_requests")
      ->required();
  AddTargetOptions(*command, options->target);
  command->add_option("--model", options->model, "Ask this model instead of the recorded ones")
      ->type_name("NAME");
  command
      ->add_option("--rate", options->rate,
                   "Requests a second, evenly spaced; latencies count from when a request was due. "
                   "Default: each answer is followed by the next request")
      ->type_name("R")
      ->check(CLI::Range(0.001, 1e6));
  command->add_option("--concurrency", options->concurrency, "Requests in progress at most")
      ->type_name("N")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--times", options->times, "How often the file is sent")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Recorded answers are compared but for the version that gave them. The exit status is 1 if a "
      "request fails or an answer\ndiffers.\n"
      "Example:\n  floectl replay /var/lib/floe/requests/mnist.tfrecord --target 127.0.0.1:8500 "
      "--rate 100 --concurrency 16");
  command->callback([options, &context] {
    context.action = [options, &context] { return RunReplay(*options, context); };
  });
}

}  // namespace floe::cli
