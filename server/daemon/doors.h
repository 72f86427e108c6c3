// Everything that clients may call: RPCs and paths of HTTP.
#pragma once

#include <functional>
#include <string>

#include "server/api/api.h"
#include "server/api/http.h"

namespace floe::server {

// `detail`: what probes of readiness are told beside the answer. For lifetimes see RegisterApi.
void AddDoors(const ApiContext& api, const ListenConfig& listen,
              const std::function<std::string()>& detail, MethodTable* methods, HttpRoutes* routes);

}  // namespace floe::server
