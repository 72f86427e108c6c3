// Which RPCs there are, and their paths.
#include "server/api/api.h"

#include <google/protobuf/stubs/logging.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "config/config_rpcs.h"
#include "server/api/config_service.h"
#include "server/api/kserve.h"
#include "server/api/methods.h"
#include "server/api/proto_method.h"

namespace floe::server {
namespace {

namespace pb = tensorflow::serving;

constexpr char kPrediction[] = "tensorflow.serving.PredictionService";
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

void RegisterRefusals(MethodTable* table) {
  for (const char* method : {"Classify", "Regress", "MultiInference"}) {
    table->Add(
        Path(kPrediction, method),
        RefusedMethod(MethodRole::kInference,
                      absl::StrCat(method,
                                   " is not offered; call Predict with tensors, or with "
                                   "serialized tf.Examples as strings where a signature parses "
                                   "them")));
  }
}

}  // namespace

void RegisterApi(const ApiContext& context, MethodTable* table) {
  // A request that is no message gets an error; protobuf's lines on stderr would fill the log.
  google::protobuf::SetLogHandler(nullptr);
  const ModelRegistry& registry = context.registry;
  table->Add(Path(kPrediction, "Predict"), PredictMethod(context));
  table->Add(
      Path(kPrediction, "GetModelMetadata"),
      ProtoMethod<pb::GetModelMetadataRequest, pb::GetModelMetadataResponse>(
          MethodRole::kModels, [&registry](const CallHead&, const auto& request, auto* response) {
            return GetModelMetadata(registry, request, response);
          }));
  table->Add(
      Path(kModel, "GetModelStatus"),
      ProtoMethod<pb::GetModelStatusRequest, pb::GetModelStatusResponse>(
          MethodRole::kModels, [&registry](const CallHead&, const auto& request, auto* response) {
            return GetModelStatus(registry, request, response);
          }));
  table->Add(kReloadConfigMethod, ReloadConfigMethod(context));
  table->Add(kGetConfigMethod, GetConfigMethod(context));
  table->Add(Path(kAdmin, "GetStats"), GetStatsMethod(context));
  table->Add(Path(kAdmin, "SetLogLevel"), SetLogLevelMethod(context));
  RegisterRefusals(table);
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
