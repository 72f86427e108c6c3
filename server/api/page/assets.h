// The files of the pages: plain ones in this folder, which the build puts into the program.
#pragma once

#include <string_view>

namespace floe::server {

// Of "page.css" and the like; "" where there is none. Lives as long as the program.
std::string_view PageFile(std::string_view name);

}  // namespace floe::server
