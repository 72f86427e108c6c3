// The methods of inference.GRPCInferenceService, and what they say of the server.
#include "server/api/kserve.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "server/api/audit.h"
#include "server/api/methods.h"
#include "server/api/proto_method.h"
#include "server/request/decode_infer.h"

namespace floe::server {
namespace {

namespace kserve_pb = inference;

std::string KServePath(const std::string& method) {
  return absl::StrCat("/", kKServe, "/", method);
}

bool Serves(const HealthState& health, const std::string& name) {
  return health.Get(name) == ServingStatus::kServing;
}

// The truth that gRPC's health tells. Models that are not known are not ready, as with Triton.
absl::Status ModelReady(const ApiContext& context, const kserve_pb::ModelReadyRequest& request,
                        kserve_pb::ModelReadyResponse* response) {
  FLOE_RETURN_IF_ERROR(CheckModelName(context.registry, request.name(), "name"));
  FLOE_ASSIGN_OR_RETURN(const std::optional<int64_t> version, KServeVersion(request.version()));
  response->set_ready(Serves(context.health, absl::StrCat("model/", request.name())) &&
                      context.registry.Acquire(request.name(), {version, {}}).ok());
  return absl::OkStatus();
}

void AddHealth(const ApiContext& context, MethodTable* table) {
  table->Add(KServePath("ServerLive"),
             ProtoMethod<kserve_pb::ServerLiveRequest, kserve_pb::ServerLiveResponse>(
                 MethodRole::kHealth, [](const CallHead&, const auto&, auto* response) {
                   response->set_live(true);
                   return absl::OkStatus();
                 }));
  table->Add(KServePath("ServerReady"),
             ProtoMethod<kserve_pb::ServerReadyRequest, kserve_pb::ServerReadyResponse>(
                 MethodRole::kHealth,
                 [&health = context.health](const CallHead&, const auto&, auto* response) {
                   response->set_ready(Serves(health, ""));
                   return absl::OkStatus();
                 }));
  table->Add(
      KServePath("ModelReady"),
      ProtoMethod<kserve_pb::ModelReadyRequest, kserve_pb::ModelReadyResponse>(
          MethodRole::kHealth, [context](const CallHead&, const auto& request, auto* response) {
            return ModelReady(context, request, response);
          }));
}

// Lists have no models that the caller may not use.
template <typename Response>
void HideOthers(const Caller&, Response*) {}
void HideOthers(const Caller& caller, kserve_pb::RepositoryIndexResponse* response) {
  KeepSeen(caller, response->mutable_models());
}
void HideOthers(const Caller& caller, kserve_pb::ModelStatisticsResponse* response) {
  KeepSeen(caller, response->mutable_model_stats());
}

// A method that reads the registry alone.
template <typename Request, typename Response>
Method ReadMethod(const ModelRegistry& registry,
                  absl::Status (*read)(const ModelRegistry&, const Request&, Response*)) {
  return ProtoMethod<Request, Response>(
      MethodRole::kModels,
      [&registry, read](const CallHead& head, const auto& request, auto* response) {
        if constexpr (requires { request.name(); })
          if (!request.name().empty()) FLOE_RETURN_IF_ERROR(head.caller.CheckModel(request.name()));
        FLOE_RETURN_IF_ERROR(read(registry, request, response));
        HideOthers(head.caller, response);
        return absl::OkStatus();
      });
}

void AddMetadataMethods(const ApiContext& context, MethodTable* table) {
  table->Add(KServePath("ServerMetadata"),
             ProtoMethod<kserve_pb::ServerMetadataRequest, kserve_pb::ServerMetadataResponse>(
                 MethodRole::kModels,
                 [version = context.server.version](const CallHead&, const auto&, auto* response) {
                   response->set_name("floe");
                   response->set_version(version);
                   for (const char* extension : {"binary_tensor_data", "model_configuration",
                                                 "model_repository", "statistics"})
                     response->add_extensions(extension);
                   return absl::OkStatus();
                 }));
  table->Add(KServePath("ModelMetadata"), ReadMethod(context.registry, ModelMetadata));
  table->Add(KServePath("ModelConfig"), ReadMethod(context.registry, ModelConfigOf));
  table->Add(KServePath("ModelStatistics"), ReadMethod(context.registry, ModelStatisticsOf));
  table->Add(KServePath("RepositoryIndex"), ReadMethod(context.registry, RepositoryIndex));
}

void AddRefusals(MethodTable* table) {
  for (const char* kind : {"System", "Cuda"})
    for (const char* verb : {"Status", "Register", "Unregister"})
      table->Add(KServePath(absl::StrCat(kind, "SharedMemory", verb)),
                 RefusedMethod(MethodRole::kInference,
                               "shared memory is not offered; send tensors in raw_input_contents"));
  table->Add(KServePath("TraceSetting"),
             RefusedMethod(MethodRole::kOperators, "traces are not offered"));
  table->Add(KServePath("LogSettings"),
             RefusedMethod(MethodRole::kOperators,
                           "log settings are not offered; call floe.Admin/SetLogLevel"));
}

}  // namespace

void RegisterKServe(const ApiContext& context, MethodTable* table) {
  AddHealth(context, table);
  AddMetadataMethods(context, table);
  table->Add(KServePath("ModelInfer"), ModelInferMethod(context));
  table->Add(KServePath("ModelStreamInfer"), ModelStreamInferMethod(context));
  table->Add(KServePath("RepositoryModelLoad"), Audited(RepositoryModelLoadMethod(context)));
  table->Add(KServePath("RepositoryModelUnload"), Audited(RepositoryModelUnloadMethod(context)));
  AddRefusals(table);
}

}  // namespace floe::server
