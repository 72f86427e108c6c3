// Tables of methods, and methods of a single function.
#include "server/api/rpc.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/nearest.h"
#include "base/quoted.h"
#include "base/status.h"
#include "server/api/audit.h"
#include "server/api/call_watch.h"

namespace floe::server {

namespace {

// A text that the caller chose, for messages and the log.
std::string Kept(std::string_view value) {
  constexpr size_t kMostBytes = 128;
  return Printable(value.substr(0, kMostBytes), 3 * kMostBytes);
}

class FunctionCall : public CallHandler {
 public:
  FunctionCall(const UnaryFunction& function, CallHead head, std::shared_ptr<Responder> responder)
      : function_(function), head_(std::move(head)), responder_(std::move(responder)) {}
  void OnMessage(Message message) override {
    function_(head_, std::move(message), std::move(responder_));
  }

 private:
  const UnaryFunction& function_;  // of the method, which outlives its calls
  const CallHead head_;
  std::shared_ptr<Responder> responder_;
};

}  // namespace

void AddMetadata(std::string_view key, std::string_view value, CallHead* head) {
  if (key.starts_with("floe-")) {
    head->metadata.emplace_back(key, value);
  } else if (key == kRequestIdKey) {
    head->request_id = Kept(value);
  } else if (key == kTraceparentKey) {
    head->traceparent = Kept(value);
  }
}

Method UnaryMethod(MethodRole role, UnaryFunction function, int64_t max_bytes) {
  const auto kept = std::make_shared<const UnaryFunction>(std::move(function));
  return {{MethodKind::kUnary, role, max_bytes},
          [kept](const CallHead& head, std::shared_ptr<Responder> responder) {
            return std::make_shared<FunctionCall>(*kept, head, std::move(responder));
          }};
}

Method RefusedMethod(MethodRole role, const std::string& reason) {
  return {{MethodKind::kUnary, role}, [reason](const CallHead&, const std::shared_ptr<Responder>&) {
            return absl::UnimplementedError(reason);
          }};
}

absl::StatusOr<std::shared_ptr<CallHandler>> Method::Open(
    const CallHead& head, std::shared_ptr<Responder> responder) const {
  const absl::Status status = CheckAccess(head.roles, info_.role, head.local, head.caller);
  if (!status.ok() && info_.role == MethodRole::kOperators) LogRefusedOperator(head, status);
  if (!status.ok() && watch_ != nullptr) watch_->Refused(CallRefusal::kAccess, head, status);
  FLOE_RETURN_IF_ERROR(status);
  if (watch_ == nullptr || info_.is_inference) return open_(head, std::move(responder));
  return watch_->Open(head, responder, open_);
}

void Invoke(const Method& method, const CallHead& head, Message message,
            const std::shared_ptr<Responder>& responder) {
  const absl::StatusOr<std::shared_ptr<CallHandler>> call = method.Open(head, responder);
  if (!call.ok()) return responder->Finish(call.status());
  (*call)->OnMessage(std::move(message));
}

void MethodTable::SetWatch(CallWatch* watch) {
  watch_ = watch;
  for (auto& [path, method] : methods_) {
    method.SetWatch(watch);
    watch->AddMethod(path);
  }
}

const Method* MethodTable::Find(const std::string& path) const {
  const auto it = methods_.find(path);
  return it == methods_.end() ? nullptr : &it->second;
}

std::vector<std::string> MethodTable::Paths() const {
  std::vector<std::string> paths;
  paths.reserve(methods_.size());
  for (const auto& [path, method] : methods_) paths.push_back(path);
  return paths;
}

absl::Status UnknownMethodError(const MethodTable& table, const std::string& path) {
  constexpr size_t kShown = 200;  // a path is the caller's text and may be long
  const std::string shown = path.substr(0, kShown);
  if (shown.starts_with("/v1/") || shown.starts_with("/v2/"))
    return absl::UnimplementedError(
        absl::StrCat(Quoted(shown),
                     " belongs to the REST API, whose requests are not those of gRPC "
                     "(docs/rest.md)"));
  return absl::UnimplementedError(
      absl::StrCat("this server has no method ", Quoted(shown),
                   "; nearest: ", QuotedList(NearestNames(shown, table.Paths()))));
}

}  // namespace floe::server
