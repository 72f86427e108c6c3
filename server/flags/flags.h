// floed's command line: TensorFlow Serving's flags and floe's own, laid over the configuration
// files.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "config/config.h"

namespace floe::server {

inline constexpr char kVersion[] = "0.1.0";

// What the command line asks for.
struct Command {
  ServerConfig config;        // files and flags together, validated
  bool check_config = false;  // only say whether the configuration is right
};

// Reads the flags and the files that they name. Empty: floed is to end with `*exit_code`, after
// --help and --version (0, text on `out`), a wrong flag (2) or a wrong configuration (1), said on
// `err`. Never throws.
std::optional<Command> ParseCommandLine(int argc, const char* const* argv, std::ostream& out,
                                        std::ostream& err, int* exit_code);

// Reads the files of the command line behind `current` again, as ParseCommandLine did. The status
// names every mistake; the files may be half written, so that a later try may do. Never throws.
absl::StatusOr<ServerConfig> ReloadConfig(const ServerConfig& current);

}  // namespace floe::server
