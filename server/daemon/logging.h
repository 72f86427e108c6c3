// Where the process's log goes: stderr, as text or as one JSON object a line.
#pragma once

#include <spdlog/formatter.h>

#include <memory>
#include <string>

#include "config/config.h"

namespace floe::server {

// Replaces spdlog's default logger. `config` is valid. Before other threads log.
void InitLogging(const LogConfig& config);

// {"time":"2024-01-31T12:00:00.123Z","level":"info","message":"..."}
std::unique_ptr<spdlog::formatter> MakeJsonFormatter();

// `text` as the inside of a JSON string. Bytes that are no UTF-8 are kept as they are.
std::string JsonEscaped(const std::string& text);

}  // namespace floe::server
