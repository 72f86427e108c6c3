// What the calls that show and replace a server's configuration are called on the wire, for both
// ends.
#pragma once

namespace floe {

inline constexpr char kReloadConfigMethod[] =
    "/tensorflow.serving.ModelService/HandleReloadConfigRequest";
inline constexpr char kReadAgainMethod[] = "/floe.Admin/Reload";
inline constexpr char kGetConfigMethod[] = "/floe.Admin/GetConfig";

// Key of a request's metadata: the generation that is to be replaced.
inline constexpr char kGenerationKey[] = "floe-config-generation";
// One of the metrics that a request may ask for: the active generation afterwards.
inline constexpr char kGenerationMetric[] = "floe_config_generation";

}  // namespace floe
