#include "server/api/call_watch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/http_status.h"
#include "base/status.h"
#include "server/api/followed.h"

namespace floe::server {
namespace {

constexpr char kOther[] = "other";
// Anybody can be refused as often as he likes; the counts have them all.
constexpr int kRefusedLinesPerSecond = 100;

Duration TimeSince(TimePoint arrived) {
  return arrived == TimePoint::min() ? Duration::zero() : Clock::Steady().Now() - arrived;
}

// Who followed the call is told at its end.
Trailers TrailersOf(Followed* followed, std::string request_id, TimePoint arrived) {
  Trailers trailers;
  if (request_id.empty()) request_id = NewRequestId();
  trailers.emplace_back(kRequestIdKey, std::move(request_id));
  followed->timings.emplace();
  followed->timings->run = TimeSince(arrived);
  AddTraceAndTimes(*followed, &trailers);
  return trailers;
}

// The head of a call, which may outlast what its views are of.
struct KeptHead {
  explicit KeptHead(const CallHead& of) : path(of.path), head(of) { head.path = path; }
  const std::string path;
  CallHead head;
};

bool IsOfAccess(const absl::Status& status) {
  return absl::IsPermissionDenied(status) || absl::IsUnauthenticated(status);
}

class WatchedResponder : public Responder {
 public:
  WatchedResponder(CallWatch* watch, std::shared_ptr<const KeptHead> kept,
                   std::unique_ptr<Followed> followed, std::shared_ptr<Responder> to)
      : watch_(*watch),
        kept_(std::move(kept)),
        followed_(std::move(followed)),
        to_(std::move(to)) {}
  void Write(std::string&& message) override { to_->Write(std::move(message)); }
  using Responder::Finish;
  void Finish(const absl::Status& status, const Trailers& trailers) override {
    const CallHead& head = kept_->head;
    if (IsOfAccess(status))  // by the model that its message names
      watch_.Refused(CallRefusal::kAccess, head, status);
    else
      watch_.CountRpc(head.path, status.code());
    if (followed_ == nullptr) return to_->Finish(status, trailers);
    Trailers all = TrailersOf(followed_.get(), head.request_id, head.arrived);
    all.insert(all.end(), trailers.begin(), trailers.end());
    to_->Finish(status, all);
  }
  void Defer() override { to_->Defer(); }
  int64_t Credit() const override { return to_->Credit(); }
  void Pause() override { to_->Pause(); }
  void Resume() override { to_->Resume(); }

 private:
  CallWatch& watch_;
  const std::shared_ptr<const KeptHead> kept_;
  const std::unique_ptr<Followed> followed_;
  const std::shared_ptr<Responder> to_;
};

// Notes when the transport does not give the message to the method.
class WatchedCall : public CallHandler {
 public:
  WatchedCall(CallWatch* watch, std::shared_ptr<const KeptHead> kept,
              std::shared_ptr<CallHandler> call)
      : watch_(*watch), kept_(std::move(kept)), call_(std::move(call)) {}
  void OnMessage(Message message) override { call_->OnMessage(std::move(message)); }
  absl::Status OnRefused(const absl::Status& status) override {
    watch_.Refused(absl::IsResourceExhausted(status) ? CallRefusal::kSize : CallRefusal::kHead,
                   kept_->head, status);
    return call_->OnRefused(status);
  }
  void OnHalfClose() override { call_->OnHalfClose(); }
  void OnWritable() override { call_->OnWritable(); }
  bool OnDrain() override { return call_->OnDrain(); }
  void OnDone() override { call_->OnDone(); }

 private:
  CallWatch& watch_;
  const std::shared_ptr<const KeptHead> kept_;
  const std::shared_ptr<CallHandler> call_;
};

class WatchedHttp : public ChangingResponder {
 public:
  WatchedHttp(CallWatch* watch, std::string route, const CallHead& head,
              std::unique_ptr<Followed> followed, std::shared_ptr<HttpResponder> to)
      : ChangingResponder(std::move(to)),
        watch_(*watch),
        route_(std::move(route)),
        request_id_(head.request_id),
        arrived_(head.arrived),
        followed_(std::move(followed)) {}

 private:
  void Change(HttpReply* reply, bool /*whole*/) override {
    watch_.CountRoute(route_, reply->status);
    if (followed_ != nullptr) AddToReply(TrailersOf(followed_.get(), request_id_, arrived_), reply);
  }

  CallWatch& watch_;
  const std::string route_, request_id_;
  const TimePoint arrived_;
  const std::unique_ptr<Followed> followed_;
};

}  // namespace

const char* CauseOf(CallRefusal cause) {
  static constexpr const char* kCauses[] = {"unknown", "access", "size", "head", "limit"};
  return kCauses[static_cast<size_t>(cause)];
}

CallWatch::CallWatch(AccessLog* log) : log_(log), lines_(kRefusedLinesPerSecond) {
  AddMethod(kOther);
  AddRoute(kOther);
}

absl::StatusOr<std::shared_ptr<CallHandler>> CallWatch::Open(
    const CallHead& head, const std::shared_ptr<Responder>& responder, const OpenCall& open) {
  const auto kept = std::make_shared<const KeptHead>(head);
  auto opened = [&]() -> absl::StatusOr<std::shared_ptr<CallHandler>> {
    FLOE_ASSIGN_OR_RETURN(auto followed, FollowCall(head, /*logged=*/false));
    return open(head,
                std::make_shared<WatchedResponder>(this, kept, std::move(followed), responder));
  }();
  if (opened.ok()) return std::make_shared<WatchedCall>(this, kept, *opened);
  Refused(absl::IsUnimplemented(opened.status()) ? CallRefusal::kUnknown : CallRefusal::kHead, head,
          opened.status());
  return opened;
}

std::shared_ptr<HttpResponder> CallWatch::Around(const HttpHead& head, const std::string& route,
                                                 const std::shared_ptr<HttpResponder>& responder) {
  CallHead call;
  call.path = head.path;
  call.arrived = head.arrived;
  for (const auto& [name, value] : head.fields) AddMetadata(name, value, &call);
  absl::StatusOr<std::unique_ptr<Followed>> followed = FollowCall(call, /*logged=*/false);
  if (!followed.ok()) {
    CountRoute(route, HttpStatusOf(followed.status().code()));
    responder->Send(ErrorReply(followed.status()));
    return nullptr;
  }
  return std::make_shared<WatchedHttp>(this, route, call, *std::move(followed), responder);
}

void CallWatch::Refused(CallRefusal cause, const RefusedCall& call, const absl::Status& status) {
  CountRpc(call.path, status.code());
  Log(cause, call, status);
}

void CallWatch::Refused(CallRefusal cause, const CallHead& head, const absl::Status& status) {
  const auto& who = head.caller.principal();
  Refused(cause,
          {head.peer, head.path, who == nullptr ? std::string_view() : std::string_view(who->name),
           head.request_id, head.traceparent},
          status);
}

void CallWatch::RefusedHttp(CallRefusal cause, const RefusedCall& call, const std::string& route,
                            int status, std::string_view reason) {
  CountRoute(route, status);
  while (reason.ends_with('\n')) reason.remove_suffix(1);
  Log(cause, call,
      absl::Status(CodeOfHttp(status),
                   absl::StrCat("HTTP ", status, reason.empty() ? "" : ": ", std::string(reason))));
}

void NoteRefused(const HttpRoutes& routes, CallRefusal cause, const RefusedCall& call,
                 const HttpReply& reply) {
  if (routes.watch() != nullptr)
    routes.watch()->RefusedHttp(cause, call, "", reply.status, reply.body);
}

void CallWatch::Log(CallRefusal cause, const RefusedCall& call, const absl::Status& status) {
  if (log_ == nullptr || !lines_.Take()) return;
  AccessRecord record;
  record.peer = call.peer;
  record.caller = call.caller;
  record.method = call.path;
  record.status = status;
  record.refused = CauseOf(cause);
  record.request_id = call.request_id;
  const auto trace = ParseTraceparent(call.traceparent);
  if (trace.has_value()) record.trace_id = trace->trace_id;
  log_->Add(record);
}

void CallWatch::CountRpc(std::string_view path, absl::StatusCode code) {
  auto found = rpcs_.find(path);
  if (found == rpcs_.end()) found = rpcs_.find(std::string_view(kOther));
  const auto index = std::min(static_cast<size_t>(code), kCodes - 1);
  found->second[index].fetch_add(1, std::memory_order_relaxed);
}

void CallWatch::CountRoute(const std::string& route, int status) {
  auto found = routes_.find(route);
  if (found == routes_.end()) found = routes_.find(std::string_view(kOther));
  const auto* const known = std::find(kStatuses.begin(), kStatuses.end(), status);
  found->second[static_cast<size_t>(known - kStatuses.begin())].fetch_add(
      1, std::memory_order_relaxed);
}

void CallWatch::ForEachRpc(const Visit& visit) const {
  for (const auto& [name, counts] : rpcs_)
    for (size_t code = 0; code < kCodes; ++code)
      if (const uint64_t count = counts[code].load(std::memory_order_relaxed); count > 0)
        visit(name, absl::StatusCodeToString(static_cast<absl::StatusCode>(code)), count);
}

void CallWatch::ForEachRoute(const Visit& visit) const {
  for (const auto& [name, counts] : routes_)
    for (size_t i = 0; i <= kStatuses.size(); ++i)
      if (const uint64_t count = counts[i].load(std::memory_order_relaxed); count > 0)
        visit(name, i < kStatuses.size() ? absl::StrCat(kStatuses[i]) : kOther, count);
}

}  // namespace floe::server
