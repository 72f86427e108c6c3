// The RPCs that change and show the configuration.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "server/api/api.h"
#include "tensorflow_serving/apis/status.pb.h"

namespace floe::server {

// Its message shortened and printable.
tensorflow::serving::StatusProto ToProto(const absl::Status& status);

// Who changes something, for the log: "RPC from 127.0.0.1:40213 by token 'ci'".
std::string CallerOf(const CallHead& head);

// What the models are to be, of what they are.
using ModelsFor = std::function<absl::StatusOr<std::vector<ModelConfig>>(const ConfigState&)>;
// Makes that the active configuration, for the caller of `head`. `again`: where another change
// comes first, it is asked once more; otherwise that is ABORTED. The bound is the call's deadline,
// but at most ten minutes; without one, two. Errors fit into headers. `done` as of StartReload.
void ChangeConfig(ModelRegistry& registry, const CallHead& head, ModelsFor models, bool again,
                  ReloadDone done);

// ModelService/HandleReloadConfigRequest: ModelRegistry::StartReload. Takes TensorFlow Serving's
// model_config_list, or custom_model_config with a floe.YamlModels. With the metadata
// kGenerationKey only that generation is replaced (ABORTED otherwise). A caller that leaves ends
// its reload.
Method ReloadConfigMethod(const ApiContext& context);

// floe.Admin/Reload: the files of the configuration are read again, and applied.
Method ReadAgainMethod(const ApiContext& context);

// floe.Admin/GetConfig.
Method GetConfigMethod(const ApiContext& context);

}  // namespace floe::server
