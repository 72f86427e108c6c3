// Reads recorded requests from a TFRecord file and has each run.
#include "server/loading/warm_up_requests.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/read_file.h"
#include "base/status.h"
#include "base/tf_record.h"
#include "server/request/decode_predict.h"
#include "tensorflow_serving/apis/prediction_log.pb.h"

namespace floe::server {
namespace {

constexpr int64_t kMostRecords = 1000;  // TensorFlow Serving's bound
constexpr int64_t kMaxFileBytes = int64_t{1} << 30;
constexpr int64_t kMaxInputBytes = int64_t{1} << 30;  // of one request, decoded

absl::Status RunPredict(const tensorflow::serving::PredictRequest& predict, const Model& model,
                        const RunRecorded& run) {
  const std::string message = predict.SerializeAsString();
  Inference asked;
  asked.storage = InputStorage(kMaxInputBytes);
  // The caller keeps the model.
  FLOE_RETURN_IF_ERROR(DecodePredict(
      message, [&](const ModelSpec&) { return ModelHandle(ModelHandle(), &model); }, &asked));
  return run(asked);
}

absl::Status Replay(std::string_view record, const Model& model, const RunRecorded& run,
                    int64_t* skipped) {
  tensorflow::serving::PredictionLog log;
  if (!log.ParseFromArray(record.data(), static_cast<int>(record.size())) ||
      log.log_type_case() == tensorflow::serving::PredictionLog::LOG_TYPE_NOT_SET)
    return absl::InvalidArgumentError("it is no PredictionLog");
  if (log.has_predict_log()) return RunPredict(log.predict_log().request(), model, run);
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
  notes->push_back(
      absl::StrCat("warm-up: ", reader.count() - skipped, " recorded requests",
                   skipped == 0 ? std::string()
                                : absl::StrCat(", ", skipped, " skipped that are not of Predict")));
  return absl::OkStatus();
}

}  // namespace floe::server
