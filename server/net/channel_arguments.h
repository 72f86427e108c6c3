// gRPC's channel arguments, which people know and set.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "server/net/net_rules.h"

namespace floe::server {

// Sets what they say. Returns the names of those without effect here.
std::vector<std::string> ApplyChannelArguments(
    const std::vector<std::pair<std::string, std::string>>& arguments, NetLimits* limits);

}  // namespace floe::server
