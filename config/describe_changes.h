// What a change of the models' configuration changes, in words for the log.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace floe {

// "added 'b'; changed 'a' (versions, workers); removed 'c'"; "nothing changed". Of many models some
// are named.
std::string DescribeChanges(const std::vector<ModelConfig>& before,
                            const std::vector<ModelConfig>& after);

}  // namespace floe
