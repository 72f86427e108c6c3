// Methods of floe.Admin as routes.
#include <chrono>

#include "absl/status/status.h"
#include "floe/admin.pb.h"
#include "server/api/rest/method_route.h"
#include "server/api/rest/rest.h"

namespace floe::server {

void AddAdminRoutes(const MethodTable& methods, HttpRoutes* routes) {
  RestOptions options;
  options.timeout = std::chrono::minutes(2);  // models are loaded meanwhile
  routes->Add(ProtoRoute<floe::ReloadRequest, floe::ReloadResponse>(
      "POST", "/v1/config/reload", *methods.Find("/floe.Admin/Reload"), options,
      [](const HttpHead&, std::string_view, auto*) { return absl::OkStatus(); }));
}

}  // namespace floe::server
