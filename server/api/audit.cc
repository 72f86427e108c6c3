#include "server/api/audit.h"

#include <spdlog/spdlog.h>

#include <memory>
#include <string>
#include <utility>

#include "base/quoted.h"
#include "server/api/line_limit.h"

namespace floe::server {
namespace {

constexpr size_t kMostAuditedBytes = 512;

std::string ResultOf(const absl::Status& status) {
  const absl::string_view said = status.message();
  return status.ok() ? "OK"
                     : absl::StatusCodeToString(status.code()) + ": " +
                           Printable({said.data(), said.size()}, kMostAuditedBytes);
}

class AuditedResponder : public Responder {
 public:
  AuditedResponder(const CallHead& head, std::shared_ptr<Responder> responder)
      : path_(head.path), who_(head.caller.name()), peer_(head.peer), to_(std::move(responder)) {}

  void Write(std::string&& message) override { to_->Write(std::move(message)); }
  using Responder::Finish;
  void Finish(const absl::Status& status, const Trailers& trailers) override {
    spdlog::info("audit: {} by {} from {}: {}", path_, who_, peer_.empty() ? "this process" : peer_,
                 ResultOf(status));
    to_->Finish(status, trailers);
  }
  void Defer() override { to_->Defer(); }
  int64_t Credit() const override { return to_->Credit(); }
  void Pause() override { to_->Pause(); }
  void Resume() override { to_->Resume(); }

 private:
  const std::string path_, who_, peer_;
  const std::shared_ptr<Responder> to_;
};

}  // namespace

Method Audited(const Method& method) {
  return {method.info(), [method](const CallHead& head, std::shared_ptr<Responder> responder) {
            return method.Open(head,
                               std::make_shared<AuditedResponder>(head, std::move(responder)));
          }};
}

void LogRefusedOperator(const CallHead& head, const absl::Status& status) {
  static LineLimit limit(10);
  if (limit.Take())
    spdlog::warn("audit: {} by {} from {} was refused: {}", std::string(head.path),
                 std::string(head.caller.name()), head.peer, ResultOf(status));
}

}  // namespace floe::server
