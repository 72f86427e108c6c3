#include "server/api/http_health.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/quoted.h"

namespace floe::server {
namespace {

bool IsReady(const HealthState& health) {
  return health.Get("") == std::optional(ServingStatus::kServing);
}

HttpReply NotCached(HttpReply reply) {
  reply.fields.emplace_back("Cache-Control", "no-store");
  return reply;
}

HttpReply TextReply(bool ok, const std::string& text) {
  HttpReply reply;
  reply.status = ok ? 200 : 503;
  reply.body = text;
  return NotCached(std::move(reply));
}

HttpReply NotFound(const std::string& what) {
  HttpReply reply;
  reply.status = 404;
  reply.body = what + "\n";
  return NotCached(std::move(reply));
}

// The Open Inference Protocol's ServerLiveResponse and ServerReadyResponse.
HttpReply StateReply(bool ok, const char* name) {
  return NotCached(
      JsonReply(ok ? 200 : 503, absl::StrCat("{\"", name, "\":", ok ? "true" : "false", "}")));
}

HttpReply ModelReply(const ModelRegistry& registry, const HealthState& health,
                     const HttpHead& head) {
  const std::string name(head.Name("model")), version(head.Name("version"));
  VersionChoice choice;
  int64_t number = 0;
  if (!version.empty() && !absl::SimpleAtoi(version, &number))
    return NotFound(absl::StrCat("a version is a number, got ", Quoted(version)));
  if (!version.empty()) choice.version = number;
  const auto statuses = registry.Status(name, choice);
  const auto serving = health.Get("model/" + name);
  // A configured model whose versions are not found yet is there, and not ready.
  if (!statuses.ok() && !(serving.has_value() && version.empty()))
    return NotFound(std::string(statuses.status().message()));
  const bool available = statuses.ok() && absl::c_any_of(*statuses, [](const VersionStatus& one) {
                           return one.state == VersionState::kAvailable;
                         });
  return StateReply(available && serving == ServingStatus::kServing, "ready");
}

}  // namespace

void AddHealthRoutes(const HealthState& health, const std::function<std::string()>& detail,
                     HttpRoutes* routes) {
  for (const char* path : {"/healthz", "/livez"})
    routes->Add(SimpleRoute(path, MethodRole::kHealth,
                            [](const HttpHead&) { return TextReply(true, "ok\n"); }));
  routes->Add(SimpleRoute("/readyz", MethodRole::kHealth, [&health, detail](const HttpHead&) {
    const bool ready = IsReady(health);
    return TextReply(
        ready, absl::StrCat(ready ? "ok\n" : "not serving\n", detail ? detail() : std::string()));
  }));
  routes->Add(SimpleRoute("/v2/health/live", MethodRole::kHealth,
                          [](const HttpHead&) { return StateReply(true, "live"); }));
  routes->Add(SimpleRoute("/v2/health/ready", MethodRole::kHealth, [&health](const HttpHead&) {
    return StateReply(IsReady(health), "ready");
  }));
}

void AddModelHealthRoutes(const ModelRegistry& registry, const HealthState& health,
                          HttpRoutes* routes) {
  for (const char* path :
       {"/v2/models/{model}/ready", "/v2/models/{model}/versions/{version}/ready"})
    routes->Add(SimpleRoute(path, MethodRole::kHealth, [&registry, &health](const HttpHead& head) {
      return ModelReply(registry, health, head);
    }));
}

}  // namespace floe::server
