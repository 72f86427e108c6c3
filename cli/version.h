// What `floectl --version` prints.
#pragma once

namespace floe::cli {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace floe::cli
