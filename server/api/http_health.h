// Health by HTTP: the same truth as grpc.health.v1.
#pragma once

#include <functional>
#include <string>

#include "server/api/http.h"
#include "server/health/health.h"
#include "server/registry/registry.h"

namespace floe::server {

// /livez, /healthz and /v2/health/live answer 200 as long as the server answers at all, also while
// it drains: who restarts what is not alive must not end the calls in progress. /readyz and
// /v2/health/ready answer 200 where the service "" serves, else 503. `detail` says what operators
// should know, a line each with its end ("" for nothing); it may be empty. Paths of KServe have no
// body but KServe's. `health` outlives the routes.
void AddHealthRoutes(const HealthState& health, const std::function<std::string()>& detail,
                     HttpRoutes* routes);

// KServe's /v2/models/{model}/ready and /v2/models/{model}/versions/{version}/ready: 200 where the
// model's own health serves, and the version, if one is named, is available; else 503, and 404 for
// models and versions that are not configured or not there. What is given outlives the routes.
void AddModelHealthRoutes(const ModelRegistry& registry, const HealthState& health,
                          HttpRoutes* routes);

}  // namespace floe::server
