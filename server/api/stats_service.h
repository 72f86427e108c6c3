// floe.Admin's RPCs that show how the work goes on. For operators.
#pragma once

#include "server/api/api.h"

namespace floe::server {

// floe.Admin/GetStats: live numbers of the server, and of every version of every model.
Method GetStatsMethod(const ApiContext& context);

// floe.Admin/SetLogLevel.
Method SetLogLevelMethod(const ApiContext& context);

}  // namespace floe::server
