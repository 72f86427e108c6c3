// Reads recorded requests from a TFRecord file and has each run.
#include "server/loading/warm_up_requests.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/read_file.h"
#include "base/status.h"
#include "base/tf_record.h"
#include "server/request/decode_examples.h"
#include "server/request/decode_predict.h"
#include "tensorflow_serving/apis/prediction_log.pb.h"

namespace floe::server {
namespace {

constexpr int64_t kMostRecords = 1000;  // TensorFlow Serving's bound
constexpr int64_t kMaxFileBytes = int64_t{1} << 30;
constexpr int64_t kMaxInputBytes = int64_t{1} << 30;  // of one request, decoded

// Runs what `decode` makes of the request's bytes.
using Decode =
    absl::FunctionRef<absl::Status(std::string_view message, FindModel find, Inference* asked)>;
absl::Status RunRequest(const google::protobuf::Message& request, const Model& model, Decode decode,
                        const RunRecorded& run) {
  const std::string message = request.SerializeAsString();
  Inference asked;
  asked.storage = InputStorage(kMaxInputBytes);
  // The caller keeps the model.
  FLOE_RETURN_IF_ERROR(decode(
      message, [&](const ModelSpec&) { return ModelHandle(ModelHandle(), &model); }, &asked));
  return run(asked);
}

absl::Status RunExamples(const google::protobuf::Message& request, ExampleMethod method,
                         const Model& model, const RunRecorded& run) {
  return RunRequest(
      request, model,
      [method](std::string_view message, FindModel find, Inference* asked) {
        return DecodeExamples(message, {method}, find, asked);
      },
      run);
}

absl::Status RunTasks(const tensorflow::serving::MultiInferenceRequest& request, const Model& model,
                      const RunRecorded& run) {
  const std::string message = request.SerializeAsString();
  MultiInferenceFields fields;
  FLOE_RETURN_IF_ERROR(ReadMultiInferenceFields(message, &fields));
  for (const InferenceTask& task : fields.tasks)
    FLOE_RETURN_IF_ERROR(RunRequest(
        request, model,
        [&](std::string_view whole, FindModel find, Inference* asked) {
          return DecodeTask(task, fields.input, whole.size(), false, find, asked);
        },
        run));
  return absl::OkStatus();
}

absl::Status Replay(std::string_view record, const Model& model, const RunRecorded& run,
                    int64_t* skipped) {
  tensorflow::serving::PredictionLog log;
  if (!log.ParseFromArray(record.data(), static_cast<int>(record.size())) ||
      log.log_type_case() == tensorflow::serving::PredictionLog::LOG_TYPE_NOT_SET)
    return absl::InvalidArgumentError("it is no PredictionLog");
  if (log.has_predict_log())
    return RunRequest(log.predict_log().request(), model, DecodePredict, run);
  if (log.has_classify_log())
    return RunExamples(log.classify_log().request(), ExampleMethod::kClassify, model, run);
  if (log.has_regress_log())
    return RunExamples(log.regress_log().request(), ExampleMethod::kRegress, model, run);
  if (log.has_multi_inference_log())
    return RunTasks(log.multi_inference_log().request(), model, run);
  ++*skipped;
  return absl::OkStatus();
}

}  // namespace

absl::Status ReplayWarmUpRequests(const std::string& file, const Model& model,
                                  const RunRecorded& run, std::vector<std::string>* notes) {
  FLOE_ASSIGN_OR_RETURN(const FileBytes bytes, ReadFile(file, kMaxFileBytes));
  TfRecordReader reader(bytes.view());
  int64_t skipped = 0;
  for (std::string_view record;;) {
    FLOE_ASSIGN_OR_RETURN(const bool more, reader.Next(&record));
    if (!more) break;
    if (reader.count() > kMostRecords)
      return absl::InvalidArgumentError(
          absl::StrCat("there are more than ", kMostRecords, " records"));
    if (record.size() > INT32_MAX)
      return absl::InvalidArgumentError(
          absl::StrCat("record ", reader.count(), " is larger than 2 GiB"));
    if (absl::Status s = Replay(record, model, run, &skipped); !s.ok())
      return Annotate(s, absl::StrCat("record ", reader.count()));
  }
  notes->push_back(absl::StrCat(
      "warm-up: ", reader.count() - skipped, " recorded requests",
      skipped == 0 ? std::string() : absl::StrCat(", ", skipped, " skipped that are streams")));
  return absl::OkStatus();
}

}  // namespace floe::server
