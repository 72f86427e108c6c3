// Names from requests and models in messages: quoted, printable and bounded, since the caller chose
// some of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/nearest.h"
#include "base/quoted.h"

namespace floe::server {

// "; nearest: 'a', 'b'", or nothing when there are no candidates.
std::string NearestHint(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace floe::server
