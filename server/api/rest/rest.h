// The REST APIs: what floe answers over HTTP besides health.
#pragma once

#include "server/api/api.h"
#include "server/api/http.h"
#include "server/api/rest/rest_call.h"

namespace floe::server {

// TensorFlow Serving's: predict, status and metadata of models, versions and labels, and the list
// of models (GET /v1/models), which TensorFlow Serving has not. Lifetimes as for RegisterApi.
void AddServingRoutes(const ApiContext& context, const RestOptions& options, HttpRoutes* routes);
// KServe v2's: infer with binary tensors, and the methods of `methods` that say what the server and
// its models are, or load and unload them. The table outlives the routes. AddHealthRoutes has those
// of health.
void AddKServeRoutes(const ApiContext& context, const MethodTable& methods,
                     const RestOptions& options, HttpRoutes* routes);
// What operators call: POST /v1/config/reload, as in OpenVINO Model Server.
void AddAdminRoutes(const MethodTable& methods, HttpRoutes* routes);

}  // namespace floe::server
