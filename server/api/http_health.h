// Health by HTTP: the same truth as grpc.health.v1.
#pragma once

#include <functional>
#include <string>

#include "server/api/http.h"
#include "server/health/health.h"

namespace floe::server {

// /livez, /healthz and /v2/health/live answer 200 as long as the server answers at all, also while
// it drains: who restarts what is not alive must not end the calls in progress. /readyz and
// /v2/health/ready answer 200 where the service "" serves, else 503. `detail` says what operators
// should know, a line each with its end ("" for nothing); it may be empty. Paths of KServe have no
// body but KServe's. `health` outlives the routes.
void AddHealthRoutes(const HealthState& health, std::function<std::string()> detail,
                     HttpRoutes* routes);

}  // namespace floe::server
