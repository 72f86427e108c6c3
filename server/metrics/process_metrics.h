// The metrics of the process, with the names that Prometheus' client libraries give them.
#pragma once

#include "server/metrics/exposition.h"

namespace floe::server {

void WriteProcessMetrics(Exposition* text);

}  // namespace floe::server
