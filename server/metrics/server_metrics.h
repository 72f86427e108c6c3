// The metrics of a server: what a scrape of /metrics answers.
#pragma once

#include <string>
#include <vector>

#include "server/api/api.h"
#include "server/metrics/exposition.h"

namespace floe::server {

// Names of other servers that are written beside floe's own.
struct MetricNames {
  bool tfserving = false, triton = false, kserve = false;
};
// Of server.metrics_names.
MetricNames MetricNamesOf(const std::vector<std::string>& words);

// All families with the names of docs/metrics.md. Seconds, bytes and counts since the start. Labels
// have names of configured models alone, whatever callers ask for. Takes each scheduler's lock for
// a moment. Threading: any thread.
std::string ServerMetrics(const ApiContext& context, MetricFormat format,
                          const MetricNames& names = {});

}  // namespace floe::server
