// floed's command line: TF Serving's single-model flags and floe's own, laid over the configuration
// file.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "config/config.h"

namespace floe::server {

inline constexpr char kVersion[] = "0.1.0";

// What the command line asks for.
struct Command {
  ServerConfig config;        // file and flags together, validated
  bool check_config = false;  // only say whether the configuration is right
};

// Reads the flags and the file that --config names. Empty: floed is to end with `*exit_code`, after
// --help and --version (0, text on `out`), a wrong flag (2) or a wrong configuration (1), said on
// `err`. Never throws.
std::optional<Command> ParseCommandLine(int argc, const char* const* argv, std::ostream& out,
                                        std::ostream& err, int* exit_code);

}  // namespace floe::server
