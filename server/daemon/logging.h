// Where the process's log goes: stderr, as text or as one JSON object a line.
#pragma once

#include <spdlog/formatter.h>

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "config/config.h"

namespace floe::server {

// Replaces spdlog's default logger by one that never blocks on stderr (LogBuffer). Bytes that are
// not text are escaped, and lines are cut at kMostLineBytes. RESOURCE_EXHAUSTED when the system
// gives no thread. `config` is valid. Before other threads log.
absl::Status InitLogging(const LogConfig& config);
inline constexpr size_t kMostLineBytes = size_t{16} << 10;

// Sets the level, by a name of log.level; INVALID_ARGUMENT otherwise. Threading: any thread.
absl::Status SetLogLevel(const std::string& level);
std::string LogLevel();

// Returns when all logged lines are written, or at `until`.
void FlushLog(TimePoint until);

// {"time":"2024-01-31T12:00:00.123Z","level":"info","message":"..."}
std::unique_ptr<spdlog::formatter> MakeJsonFormatter();

// `text` as the inside of a JSON string. Bytes that are no UTF-8 are kept as they are.
std::string JsonEscaped(const std::string& text);

}  // namespace floe::server
