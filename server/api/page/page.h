// The status page: the server in a browser.
#pragma once

#include "server/api/api.h"
#include "server/api/http.h"

namespace floe::server {

// GET / and /models/{model}, what they refer to beneath /page/, and /page/events, by which they are
// kept up to date. They are for those who read; /page/config, which has the whole configuration,
// is for operators. Also GET /openapi.json, which describes every route of a server. Written on a
// thread of their own. What `context` refers to outlives the routes.
void AddPageRoutes(const ApiContext& context, HttpRoutes* routes);

}  // namespace floe::server
