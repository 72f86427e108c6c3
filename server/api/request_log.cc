#include "server/api/request_log.h"

#include <random>

#include "base/status.h"
#include "base/tf_record.h"
#include "server/request/encode_predict.h"
#include "server/request/wire_writer.h"

namespace floe::server {
namespace {

// Of PredictionLog; 0: none. And of the logs in it, which are alike.
uint32_t LogField(Door door) {
  switch (door) {
    case Door::kClassify:
      return 2;
    case Door::kRegress:
      return 3;
    case Door::kPredict:
    case Door::kModelInfer:
    case Door::kModelStreamInfer:
    case Door::kHttpPredict:
    case Door::kHttpModelInfer:
      return 6;
    default:
      return 0;
  }
}
constexpr uint32_t kLogRequest = 1, kLogReply = 2;

}  // namespace

bool RequestLog::Takes(Door door, int64_t one_in) {
  if (one_in <= 0 || LogField(door) == 0) return false;
  thread_local std::minstd_rand random{std::random_device()()};
  return one_in == 1 || std::uniform_int_distribution<int64_t>(1, one_in)(random) == 1;
}

absl::Status RequestLog::AddAsPredict(const Inference& asked, Outputs outputs) const {
  std::string request, reply;
  FLOE_RETURN_IF_ERROR(EncodeAsked(asked, &request));
  FLOE_RETURN_IF_ERROR(EncodePredict(asked, outputs, ReplyEncoding::kTyped, &reply));
  Add(Door::kPredict, asked.model->info().name, request, reply);
  return absl::OkStatus();
}

void RequestLog::Add(Door door, const std::string& model, std::string_view request,
                     std::string_view reply) const {
  std::string log, record, bytes;
  log.reserve(request.size() + reply.size() + 16);
  AppendBytesField(kLogRequest, request, &log);
  AppendBytesField(kLogReply, reply, &log);
  AppendBytesField(LogField(door), log, &record);
  std::string().swap(log);
  AppendTfRecord(record, &bytes);
  write_(model, std::move(bytes));
}

}  // namespace floe::server
