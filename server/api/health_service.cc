// Health: Check answers at once, Watch sends each change.
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "grpc/health/v1/health.pb.h"
#include "server/api/methods.h"
#include "server/api/proto_method.h"

namespace floe::server {
namespace {

namespace health_pb = grpc::health::v1;

std::string StatusMessage(ServingStatus status) {
  health_pb::HealthCheckResponse response;
  response.set_status(static_cast<health_pb::HealthCheckResponse::ServingStatus>(status));
  return response.SerializeAsString();
}

// Watches one name from the first message until the call is over.
class WatchHandler : public CallHandler {
 public:
  WatchHandler(HealthState& health, std::shared_ptr<Responder> responder)
      : health_(health), responder_(std::move(responder)) {}

  void OnMessage(Message message) override {
    if (answered_) return;
    answered_ = true;
    health_pb::HealthCheckRequest request;
    const absl::Status status = ParseMessage(message.bytes, &request);
    if (!status.ok()) return responder_->Finish(status);
    // The watcher holds the responder alone: this handler may be gone when a status arrives.
    watch_ = health_.Watch(request.service(), [responder = responder_](ServingStatus now) {
      responder->Write(StatusMessage(now));
    });
  }

  void OnHalfClose() override {
    if (answered_) return;
    answered_ = true;
    responder_->Finish(absl::InvalidArgumentError("Watch was sent no HealthCheckRequest"));
  }

  void OnDone() override {
    if (watch_.has_value()) health_.Unwatch(*watch_);
  }

 private:
  HealthState& health_;
  const std::shared_ptr<Responder> responder_;
  bool answered_ = false;
  std::optional<int64_t> watch_;
};

}  // namespace

Method HealthCheckMethod(HealthState& health) {
  return ProtoMethod<health_pb::HealthCheckRequest, health_pb::HealthCheckResponse>(
      MethodRole::kHealth, [&health](const CallHead&, const auto& request, auto* response) {
        const std::optional<ServingStatus> status = health.Get(request.service());
        if (!status.has_value()) {
          return absl::NotFoundError(
              absl::StrCat("health: unknown service ", Quoted(request.service())));
        }
        response->set_status(static_cast<health_pb::HealthCheckResponse::ServingStatus>(*status));
        return absl::OkStatus();
      });
}

Method HealthWatchMethod(HealthState& health) {
  return {{MethodKind::kStream, MethodRole::kHealth},
          [&health](const CallHead&, std::shared_ptr<Responder> responder) {
            return std::make_shared<WatchHandler>(health, std::move(responder));
          }};
}

}  // namespace floe::server
