// Names from requests and models in messages: quoted, printable and bounded, since the caller chose
// some of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/quoted.h"

namespace floe::server {

// "'a', 'b'"; a long list ends in "and N more"; "(none)" when empty.
std::string QuotedNames(const std::vector<std::string>& names);

// "; nearest: 'a', 'b'", or nothing when there are no candidates.
std::string NearestHint(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace floe::server
