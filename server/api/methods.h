// The single RPCs, for RegisterApi and tests. See api.h for lifetimes.
#pragma once

#include <string>

#include "server/api/api.h"
#include "tensorflow_serving/apis/get_model_metadata.pb.h"
#include "tensorflow_serving/apis/get_model_status.pb.h"

namespace floe::server {

// PredictionService/Predict. Its caller may also set the metadata floe-reply. The reply may come
// from a worker's thread.
Method PredictMethod(const ApiContext& context);

// PredictionService/Classify, Regress and MultiInference. Each task of the last is a request of its
// own to the model, all of one version.
Method ClassifyMethod(const ApiContext& context);
Method RegressMethod(const ApiContext& context);
Method MultiInferenceMethod(const ApiContext& context);

// PredictionService/GetModelMetadata: signature_def only.
absl::Status GetModelMetadata(const ModelRegistry& registry,
                              const tensorflow::serving::GetModelMetadataRequest& request,
                              tensorflow::serving::GetModelMetadataResponse* response);

// ModelService/GetModelStatus.
absl::Status GetModelStatus(const ModelRegistry& registry,
                            const tensorflow::serving::GetModelStatusRequest& request,
                            tensorflow::serving::GetModelStatusResponse* response);

// floe.Admin/GetStats: live numbers of the server, and of every version of every model. For
// operators, as is SetLogLevel.
Method GetStatsMethod(const ApiContext& context);
Method SetLogLevelMethod(const ApiContext& context);

// grpc.health.v1.Health Check and Watch.
Method HealthCheckMethod(HealthState& health);
Method HealthWatchMethod(HealthState& health);

// ServerReflectionInfo. `services` are the full names that list_services answers.
Method ReflectionMethod(std::vector<std::string> services);

// INVALID_ARGUMENT, naming the models there are, when a request names none in that field.
absl::Status CheckModelName(const ModelRegistry& registry, std::string_view model,
                            const char* field = "model_spec.name");

}  // namespace floe::server
