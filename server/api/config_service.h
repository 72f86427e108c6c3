// The RPCs that change and show the configuration.
#pragma once

#include <string>

#include "server/api/api.h"
#include "tensorflow_serving/apis/status.pb.h"

namespace floe::server {

// Its message shortened and printable.
tensorflow::serving::StatusProto ToProto(const absl::Status& status);

// Who changes something, for the log: "RPC from 127.0.0.1:40213".
std::string CallerOf(const CallHead& head);

// ModelService/HandleReloadConfigRequest: ModelRegistry::StartReload. Takes TensorFlow Serving's
// model_config_list, or custom_model_config with a floe.YamlModels. With the metadata
// kGenerationKey only that generation is replaced (ABORTED otherwise). The bound is the deadline,
// but at most ten minutes; without one, two. A caller that leaves ends its reload.
Method ReloadConfigMethod(const ApiContext& context);

// floe.Admin/GetConfig.
Method GetConfigMethod(const ApiContext& context);

}  // namespace floe::server
