#include "server/daemon/doors.h"

#include "server/api/http_health.h"
#include "server/api/page/page.h"
#include "server/api/rest/rest.h"
#include "server/metrics/http_metrics.h"

namespace floe::server {
namespace {

RestOptions RestOptionsOf(const ListenConfig& listen) {
  RestOptions options;
  options.max_body_bytes = listen.http_max_body_bytes;
  if (listen.http_timeout_ms > 0)
    options.timeout = std::chrono::milliseconds(listen.http_timeout_ms);
  return options;
}

}  // namespace

void AddDoors(const ApiContext& api, const ListenConfig& listen,
              const std::function<std::string()>& detail, MethodTable* methods,
              HttpRoutes* routes) {
  RegisterApi(api, methods);
  AddHealthRoutes(api.health, detail, routes);
  AddServingRoutes(api, RestOptionsOf(listen), routes);
  AddKServeRoutes(api, *methods, RestOptionsOf(listen), routes);
  AddAdminRoutes(*methods, routes);
  AddModelHealthRoutes(api.registry, api.health, routes);
  AddPageRoutes(api, routes);
  AddMetricsRoutes(api, MetricNamesOf(listen.metrics_names), listen.metrics_path, routes);
  if (api.watch == nullptr) return;
  methods->SetWatch(api.watch);
  routes->SetWatch(api.watch);
}

}  // namespace floe::server
