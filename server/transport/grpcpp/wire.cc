#include "server/transport/grpcpp/wire.h"

#include <grpc/support/time.h>

#include <chrono>
#include <functional>

#include "absl/strings/str_cat.h"
#include "base/retry_after.h"

namespace floe::server {
namespace {

constexpr size_t kMaxStatusBytes = 2048;  // three times as many when every byte is escaped
constexpr size_t kAdoptBytes = 512;  // below this a copy costs less than the owner of the original

TimePoint DeadlineOf(gpr_timespec deadline) {
  if (gpr_time_cmp(deadline, gpr_inf_future(deadline.clock_type)) == 0) return TimePoint::max();
  const gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
  // Beyond what the clock can count, as some clients say "never".
  constexpr int64_t kCentury = int64_t{100} * 366 * 24 * 3600;
  if (left.tv_sec > kCentury) return TimePoint::max();
  const auto duration = std::chrono::seconds(left.tv_sec) + std::chrono::nanoseconds(left.tv_nsec);
  return Clock::Steady().Now() + duration;
}

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  std::string message(status.message());
  if (message.size() > kMaxStatusBytes) {
    message.resize(kMaxStatusBytes);
    message += "...";
  }
  return {static_cast<grpc::StatusCode>(status.code()), message};
}

void AddRetryHint(const absl::Status& status, grpc::ServerContextBase* context) {
  if (const auto wait = RetryAfter(status))
    context->AddTrailingMetadata("grpc-retry-pushback-ms", absl::StrCat(wait->count()));
}

CallInfo MakeCallInfo(const std::string& path, const std::string& peer,
                      const grpc::CallbackServerContext& context) {
  CallInfo info;
  info.path = path;
  const auto& metadata = context.client_metadata();
  for (const auto& [key, value] : metadata) {
    info.metadata.emplace_back(std::string_view(key.data(), key.size()),
                               std::string_view(value.data(), value.size()));
  }
  info.deadline = DeadlineOf(context.raw_deadline());
  info.caller = std::hash<std::string>()(peer);  // address and port
  return info;
}

absl::Status TakeSlice(grpc::ByteBuffer* buffer, int64_t max_bytes, grpc::Slice* slice) {
  const size_t size = buffer->Length();
  if (size > static_cast<size_t>(max_bytes)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the request has ", size, " bytes and the server accepts ", max_bytes,
                     "; raise --grpc_max_message_bytes there (and, for large replies, the client's "
                     "grpc.max_receive_message_length)"));
  }
  grpc::Status status = buffer->TrySingleSlice(slice);
  if (!status.ok()) status = buffer->DumpToSingleSlice(slice);
  buffer->Clear();
  if (status.ok()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the request cannot be read: ", status.error_message()));
}

grpc::ByteBuffer Pack(std::string&& message) {
  if (message.size() < kAdoptBytes) {
    const grpc::Slice slice(message.data(), message.size());
    return {&slice, 1};
  }
  auto* const owned = new std::string(std::move(message));
  const grpc::Slice slice(
      owned->data(), owned->size(), [](void* string) { delete static_cast<std::string*>(string); },
      owned);
  return {&slice, 1};
}

}  // namespace floe::server
