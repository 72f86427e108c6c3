// Conversions between grpc++ and server/api: status, metadata, peers, messages without copies.
#include "server/transport/grpcpp/wire.h"

#include <grpc/support/time.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/quoted.h"
#include "base/retry_after.h"
#include "base/status.h"
#include "server/listener/call_book.h"
#include "server/transport/call_text.h"
#include "server/transport/gunzip.h"

namespace floe::server {
namespace {

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

// Owns the string.
grpc::Slice SliceOf(std::string&& text) {
  auto* const owned = new std::string(std::move(text));
  return {owned->data(), owned->size(),
          [](void* string) { delete static_cast<std::string*>(string); }, owned};
}

// gRPC's own function ends the process where there is no memory for the whole. Parts go as they are
// copied, so that the message is there once.
grpc::Status Join(grpc::ByteBuffer* buffer, grpc::Slice* slice) {
  std::string whole;
  whole.reserve(buffer->Length());  // or std::bad_alloc
  std::vector<grpc::Slice> parts;
  grpc::Status status = buffer->Dump(&parts);
  if (!status.ok()) return status;
  buffer->Clear();
  for (grpc::Slice& part : parts) {
    whole.append(reinterpret_cast<const char*>(part.begin()), part.size());
    const grpc::ByteBuffer last(&part, 1);  // see Received
    part = grpc::Slice();
  }
  *slice = SliceOf(std::move(whole));
  return grpc::Status::OK;
}

// "ipv4:127.0.0.1:40213" and "ipv6:%5B::1%5D:40213", of gRPC, as PeerOf reads them.
std::string PeerText(std::string peer) {
  if (!peer.starts_with("ipv")) return "unix";
  peer.erase(0, peer.find(':') + 1);
  if (peer.find('%') == std::string::npos) return peer;
  return absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}});
}

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(status.code()),
          Printable({status.message().data(), status.message().size()}, kMostStatusBytes)};
}

void AddTrailers(const absl::Status& status, const Trailers& trailers,
                 grpc::ServerContextBase* context) {
  for (const auto& [key, value] : trailers) context->AddTrailingMetadata(key, value);
  if (const auto wait = RetryAfter(status))
    context->AddTrailingMetadata("grpc-retry-pushback-ms", absl::StrCat(wait->count()));
}

CallHead MakeCallHead(std::string_view path, const grpc::CallbackServerContext& context) {
  CallHead head;
  head.path = path;
  head.peer = PeerText(context.peer());
  for (const auto& [name, value] : context.client_metadata())
    AddMetadata({name.data(), name.size()}, {value.data(), value.size()}, &head);
  head.arrived = Clock::Steady().Now();
  head.deadline = DeadlineOf(context.raw_deadline());
  head.principal = std::hash<std::string>()(head.peer);  // address and port
  head.local = PeerOf(head.peer).local();
  return head;
}

absl::Status TakeMessage(grpc::ByteBuffer* buffer, const MessageLimits& limits,
                         Received* received) {
  FLOE_RETURN_IF_ERROR(CheckSize(buffer->Length(), limits.max_bytes));
  grpc::Slice* const slice = &received->slice;
  grpc::Status status = buffer->TrySingleSlice(slice);
  if (status.ok()) {
    received->buffer.Swap(buffer);
  } else {
    status = Join(buffer, slice);
  }
  buffer->Clear();
  if (!status.ok())
    return absl::InternalError(
        absl::StrCat("the request cannot be read: ", status.error_message()));
  if (!IsGzip(BytesOf(*slice))) return absl::OkStatus();
  if (!limits.unpack) return NoCompressionError();
  FLOE_ASSIGN_OR_RETURN(std::string unpacked, Gunzip(BytesOf(*slice), limits.max_bytes));
  *slice = SliceOf(std::move(unpacked));
  return absl::OkStatus();
}

grpc::ByteBuffer Pack(std::string&& message) {
  if (message.size() < kAdoptBytes) {
    const grpc::Slice slice(message.data(), message.size());
    return {&slice, 1};
  }
  const grpc::Slice slice = SliceOf(std::move(message));
  return {&slice, 1};
}

}  // namespace floe::server
