// The RPCs that change and show the configuration.
#pragma once

#include "server/api/api.h"

namespace floe::server {

// ModelService/HandleReloadConfigRequest. One at a time, on a thread of its own that ends with the
// last copy of the method; a few wait for it, more are refused (RESOURCE_EXHAUSTED). Takes
// TensorFlow Serving's model_config_list, or custom_model_config with a floe.YamlModels. With the
// metadata kGenerationKey only that generation is replaced (ABORTED otherwise). The bound is the
// deadline, but at most ten minutes; without one, two. A caller that leaves ends its reload.
UnaryMethod ReloadConfigMethod(const ApiContext& context);

// floe.Admin/GetConfig.
UnaryMethod GetConfigMethod(const ApiContext& context);

}  // namespace floe::server
