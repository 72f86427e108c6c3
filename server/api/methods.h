// The single RPCs, for RegisterApi and tests. See api.h for lifetimes.
#pragma once

#include <string>

#include "server/api/api.h"
#include "tensorflow_serving/apis/get_model_metadata.pb.h"
#include "tensorflow_serving/apis/get_model_status.pb.h"

namespace floe::server {

// PredictionService/Predict. The reply may come from a worker's thread.
UnaryMethod PredictMethod(const ApiContext& context);

// PredictionService/GetModelMetadata: signature_def only.
absl::Status GetModelMetadata(const ModelRegistry& registry,
                              const tensorflow::serving::GetModelMetadataRequest& request,
                              tensorflow::serving::GetModelMetadataResponse* response);

// ModelService/GetModelStatus.
absl::Status GetModelStatus(const ModelRegistry& registry,
                            const tensorflow::serving::GetModelStatusRequest& request,
                            tensorflow::serving::GetModelStatusResponse* response);

// grpc.health.v1.Health Check and Watch.
UnaryMethod HealthCheckMethod(HealthState& health);
StreamMethod HealthWatchMethod(HealthState& health);

// ServerReflectionInfo. `services` are the full names that list_services answers.
StreamMethod ReflectionMethod(std::vector<std::string> services);

// INVALID_ARGUMENT when a request names no model.
absl::Status CheckModelName(const ModelRegistry& registry, std::string_view model);

}  // namespace floe::server
