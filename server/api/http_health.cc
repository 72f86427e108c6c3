#include "server/api/http_health.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

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

// The Open Inference Protocol's ServerLiveResponse and ServerReadyResponse.
HttpReply JsonReply(bool ok, const char* name) {
  HttpReply reply;
  reply.status = ok ? 200 : 503;
  reply.content_type = "application/json";
  reply.body = absl::StrCat("{\"", name, "\":", ok ? "true" : "false", "}");
  return NotCached(std::move(reply));
}

}  // namespace

void AddHealthRoutes(const HealthState& health, std::function<std::string()> detail,
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
                          [](const HttpHead&) { return JsonReply(true, "live"); }));
  routes->Add(SimpleRoute("/v2/health/ready", MethodRole::kHealth, [&health](const HttpHead&) {
    return JsonReply(IsReady(health), "ready");
  }));
}

}  // namespace floe::server
