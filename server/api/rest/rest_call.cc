// Collects the body, and turns a Responder's message and status into a reply.
#include "server/api/rest/rest_call.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/retry_after.h"
#include "base/status.h"
#include "server/api/followed.h"
#include "server/api/gunzip.h"
#include "server/api/rest/json_text.h"

namespace floe::server {
namespace {

// Bodies that unpack to more than so much must not be packed better than this: what numbers reach.
constexpr int64_t kFreelyUnpacked = int64_t{4} << 20;
constexpr int64_t kMostRatio = 200;
// JSON of this size takes less than a millisecond to read.
constexpr size_t kSmallJson = size_t{32} << 10;

// Threading: HttpHandler on the connection's thread, then Responder on any.
class RestCall : public HttpHandler,
                 public Responder,
                 public std::enable_shared_from_this<RestCall> {
 public:
  explicit RestCall(std::shared_ptr<HttpResponder> responder) : responder_(std::move(responder)) {}

  void set_call(std::shared_ptr<CallHandler> call) { call_ = std::move(call); }

  void OnBody(std::string_view part) override { body_->append(part); }
  void OnEnd() override {
    const size_t size = body_->size();
    body_->append(kJsonPadding, '\0');
    const std::shared_ptr<CallHandler> call = std::move(call_);
    call->OnMessage({std::string_view(*body_).substr(0, size), std::exchange(body_, nullptr)});
  }
  void OnDone() override { call_.reset(); }

  void Write(std::string&& message) override {
    constexpr size_t kSmall = size_t{64} << 10;  // its memory serves again where it was made
    reply_ = message.size() <= kSmall ? std::string(message) : std::move(message);
  }
  void Finish(const absl::Status& status, const Trailers& trailers) override {
    HttpReply reply;
    if (status.ok()) {
      reply.body = std::move(reply_);
      reply.content_type = form_.content_type;
      reply.fields = std::move(form_.fields);
    } else {
      reply = ErrorReply(status);
    }
    AddToReply(trailers, &reply);
    responder_->Send(std::move(reply));
  }
  using Responder::Finish;
  RestReplyForm* form() { return &form_; }

 private:
  const std::shared_ptr<HttpResponder> responder_;
  std::shared_ptr<CallHandler> call_;  // until it has its message
  std::shared_ptr<std::string> body_ = std::make_shared<std::string>();
  std::string reply_;
  RestReplyForm form_;
};

}  // namespace

CallHead CallHeadOf(const HttpHead& head, const RestOptions& options) {
  CallHead call;
  call.path = head.path;
  call.peer = head.peer;
  call.local = head.local;
  call.roles = head.roles;
  call.caller = head.caller;
  call.principal = head.principal;
  call.arrived = head.arrived;
  const TimePoint now = head.arrived == TimePoint::min() ? Clock::Steady().Now() : head.arrived;
  call.deadline = std::min(head.deadline, now + options.timeout);
  call.cancel = head.cancel != nullptr ? head.cancel : std::make_shared<CancelToken>();
  for (const auto& [name, value] : head.fields) AddMetadata(name, value, &call);
  return call;
}

absl::StatusOr<BodyPacking> PackingOf(const HttpHead& head) {
  const std::string* const encoding = head.Field("content-encoding");
  if (encoding == nullptr) return BodyPacking::kNone;
  const std::string name = absl::AsciiStrToLower(*encoding);
  if (name.empty() || name == "identity") return BodyPacking::kNone;
  if (name == "gzip" || name == "x-gzip" || name == "deflate") return BodyPacking::kZlib;
  return absl::UnimplementedError(absl::StrCat("Content-Encoding ", Quoted(*encoding),
                                               " is not known here; gzip and deflate are"));
}

absl::StatusOr<std::string> UnpackBody(std::string_view packed, int64_t max_bytes, size_t padding) {
  const int64_t most = std::min(
      max_bytes, std::max(kFreelyUnpacked, kMostRatio * static_cast<int64_t>(packed.size())));
  absl::StatusOr<std::string> body = Gunzip(packed, most);
  if (absl::IsResourceExhausted(body.status()))
    return AsTooLarge(absl::ResourceExhaustedError(
        absl::StrCat("the body of ", packed.size(), " bytes unpacks to more than ", most,
                     "; bodies of more than ", kFreelyUnpacked, " may be ", kMostRatio,
                     " times as large unpacked as packed, and have at most ", max_bytes)));
  if (body.ok()) body->append(padding, '\0');
  return body;
}

HttpRoute InferenceRoute(std::string pattern, const OpenInference& door, const RestOptions& options,
                         OpenRestCodec open) {
  HttpRoute route;
  route.method = "POST";
  route.pattern = std::move(pattern);
  route.role = MethodRole::kInference;
  route.watches_itself = true;
  route.max_body_bytes = options.max_body_bytes;
  route.open = [door, options, open = std::move(open)](
                   const HttpHead& head,
                   std::shared_ptr<HttpResponder> responder) -> std::shared_ptr<HttpHandler> {
    auto call = std::make_shared<RestCall>(std::move(responder));
    const absl::StatusOr<std::shared_ptr<CallHandler>> opened =
        door(CallHeadOf(head, options), call,
             [&](CodecPlace* place) { return open(head, call->form(), place); });
    if (!opened.ok()) return call->Finish(opened.status()), nullptr;
    call->set_call(*opened);
    return call;
  };
  return route;
}

absl::StatusOr<ModelSpec> SpecOf(const HttpHead& head) {
  ModelSpec spec;
  spec.name = head.Name("model");
  spec.label = head.Name("label");
  const std::string version(head.Name("version"));
  if (version.empty()) return spec;
  int64_t number = 0;
  const bool is_number = absl::SimpleAtoi(version, &number) && number >= 0;
  if (!is_number)
    return absl::InvalidArgumentError(
        absl::StrCat("the path's version ", Quoted(version), " is no whole number"));
  spec.version = number;
  return spec;
}

absl::Status RestTarget::Read(const HttpHead& head, const RestOptions& options,
                              const MemoryBudget* budget) {
  FLOE_ASSIGN_OR_RETURN(const ModelSpec named, SpecOf(head));
  FLOE_ASSIGN_OR_RETURN(packing, PackingOf(head));
  model = named.name;
  label = named.label;
  version = named.version;
  max_body_bytes = options.max_body_bytes;
  memory = budget;
  return absl::OkStatus();
}

bool RestTarget::IsSlow(size_t json_bytes) const {
  return packing != BodyPacking::kNone || json_bytes > kSmallJson;
}

absl::StatusOr<std::string_view> RestTarget::Unpacked(std::string_view body, InputStorage* storage,
                                                      std::string* unpacked) const {
  if (packing == BodyPacking::kNone) return body;
  FLOE_ASSIGN_OR_RETURN(*unpacked, UnpackBody(body, max_body_bytes, kJsonPadding));
  const auto bytes = static_cast<int64_t>(unpacked->size());
  FLOE_RETURN_IF_ERROR(storage->Charge(bytes));
  FLOE_RETURN_IF_ERROR(storage->Pay(bytes));
  return std::string_view(*unpacked).substr(0, unpacked->size() - kJsonPadding);
}

}  // namespace floe::server
