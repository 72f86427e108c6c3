// Metrics by HTTP, for Prometheus and what reads as it does.
#pragma once

#include <string>

#include "server/api/api.h"
#include "server/api/http.h"
#include "server/metrics/server_metrics.h"

namespace floe::server {

// GET /metrics, with `names` beside floe's own, and GET `path`, which has TensorFlow Serving's
// names too; "": none. In OpenMetrics 1.0 where the Accept field names it, else in Prometheus' text
// 0.0.4. Written on a thread beside the transport's. What `context` refers to outlives the routes.
void AddMetricsRoutes(const ApiContext& context, const MetricNames& names, const std::string& path,
                      HttpRoutes* routes);

}  // namespace floe::server
