// Which RPCs there are, and their paths.
#include "server/api/api.h"

#include <google/protobuf/stubs/logging.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "config/config_rpcs.h"
#include "server/api/audit.h"
#include "server/api/config_service.h"
#include "server/api/kserve.h"
#include "server/api/methods.h"
#include "server/api/proto_method.h"

namespace floe::server {
namespace {

namespace pb = tensorflow::serving;

constexpr char kPrediction[] = "tensorflow.serving.PredictionService";
constexpr char kSession[] = "tensorflow.serving.SessionService";
constexpr char kModel[] = "tensorflow.serving.ModelService";
constexpr char kAdmin[] = "floe.Admin";
constexpr char kHealth[] = "grpc.health.v1.Health";
constexpr char kReflection[] = "grpc.reflection.v1alpha.ServerReflection";
// The same messages under a newer name. Not listed among the services: its descriptors are not
// known here.
constexpr char kReflectionV1[] = "grpc.reflection.v1.ServerReflection";

std::string Path(const char* service, const char* method) {
  return absl::StrCat("/", service, "/", method);
}

// It would run any part of a graph, whatever its signatures offer.
Method RefusedSessionRun() {
  return RefusedMethod(MethodRole::kInference,
                       "SessionRun is not offered: it runs any tensors of a graph. Call Predict of "
                       "a signature; the configuration's `signature` of a model names tensors that "
                       "have none");
}

}  // namespace

void RegisterApi(const ApiContext& context, MethodTable* table) {
  // A request that is no message gets an error; protobuf's lines on stderr would fill the log.
  google::protobuf::SetLogHandler(nullptr);
  const ModelRegistry& registry = context.registry;
  table->Add(Path(kPrediction, "Predict"), PredictMethod(context));
  table->Add(Path(kPrediction, "Classify"), ClassifyMethod(context));
  table->Add(Path(kPrediction, "Regress"), RegressMethod(context));
  table->Add(Path(kPrediction, "MultiInference"), MultiInferenceMethod(context));
  table->Add(Path(kPrediction, "GetModelMetadata"),
             ProtoMethod<pb::GetModelMetadataRequest, pb::GetModelMetadataResponse>(
                 MethodRole::kModels,
                 [&registry](const CallHead& head, const auto& request, auto* response) {
                   FLOE_RETURN_IF_ERROR(head.caller.CheckModel(request.model_spec().name()));
                   return GetModelMetadata(registry, request, response);
                 }));
  table->Add(Path(kModel, "GetModelStatus"),
             ProtoMethod<pb::GetModelStatusRequest, pb::GetModelStatusResponse>(
                 MethodRole::kModels,
                 [&registry](const CallHead& head, const auto& request, auto* response) {
                   FLOE_RETURN_IF_ERROR(head.caller.CheckModel(request.model_spec().name()));
                   return GetModelStatus(registry, request, response);
                 }));
  table->Add(kReloadConfigMethod, Audited(ReloadConfigMethod(context)));
  table->Add(kReadAgainMethod, Audited(ReadAgainMethod(context)));
  table->Add(kGetConfigMethod, GetConfigMethod(context));
  table->Add(Path(kAdmin, "GetStats"), GetStatsMethod(context));
  table->Add(Path(kAdmin, "SetLogLevel"), Audited(SetLogLevelMethod(context)));
  table->Add(Path(kSession, "SessionRun"), RefusedSessionRun());
  RegisterKServe(context, table);
  table->Add(Path(kHealth, "Check"), HealthCheckMethod(context.health));
  if (context.enable_health_watch) {
    table->Add(Path(kHealth, "Watch"), HealthWatchMethod(context.health));
  } else {
    table->Add(
        Path(kHealth, "Watch"),
        RefusedMethod(MethodRole::kHealth,
                      "Watch is switched off here (server.enable_health_watch); call Check"));
  }
  if (!context.enable_reflection) return;
  const Method reflection =
      ReflectionMethod({kPrediction, kModel, kKServe, kAdmin, kHealth, kReflection});
  table->Add(Path(kReflection, "ServerReflectionInfo"), reflection);
  table->Add(Path(kReflectionV1, "ServerReflectionInfo"), reflection);
}

}  // namespace floe::server
