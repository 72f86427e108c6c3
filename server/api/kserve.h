// KServe v2 (inference.GRPCInferenceService): its methods, for RegisterApi and tests.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "kserve/grpc_service.pb.h"
#include "server/api/api.h"

namespace floe::server {

inline constexpr char kKServe[] = "inference.GRPCInferenceService";

// All of them; see api.h for lifetimes. Those that are known but not offered answer UNIMPLEMENTED
// with the reason.
void RegisterKServe(const ApiContext& context, MethodTable* table);

// ModelInfer and ModelStreamInfer. The replies may come from a worker's thread.
Method ModelInferMethod(const ApiContext& context);
Method ModelStreamInferMethod(const ApiContext& context);

// The rest, for models that are served.
absl::Status ModelMetadata(const ModelRegistry& registry,
                           const inference::ModelMetadataRequest& request,
                           inference::ModelMetadataResponse* response);
absl::Status ModelConfigOf(const ModelRegistry& registry,
                           const inference::ModelConfigRequest& request,
                           inference::ModelConfigResponse* response);
absl::Status ModelStatisticsOf(const ModelRegistry& registry,
                               const inference::ModelStatisticsRequest& request,
                               inference::ModelStatisticsResponse* response);
absl::Status RepositoryIndex(const ModelRegistry& registry,
                             const inference::RepositoryIndexRequest& request,
                             inference::RepositoryIndexResponse* response);

// INVALID_ARGUMENT: a repository was named, but there is only one.
absl::Status CheckRepository(const std::string& name);

// RepositoryModelLoad and RepositoryModelUnload: the names of models, never paths or files. They
// answer once the model is available, or gone for new requests, or with the error.
Method RepositoryModelLoadMethod(const ApiContext& context);
Method RepositoryModelUnloadMethod(const ApiContext& context);

}  // namespace floe::server
