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

// Replaces spdlog's default logger by one that never waits for stderr: a thread writes what is
// logged, and lines are dropped while stderr takes none (LogBuffer). What is no text in a line is
// escaped, and a line is cut at kMostLineBytes. RESOURCE_EXHAUSTED when the system gives no thread.
// `config` is valid. Before other threads log.
absl::Status InitLogging(const LogConfig& config);
inline constexpr size_t kMostLineBytes = size_t{16} << 10;

// The level from now on, as log.level has it; INVALID_ARGUMENT otherwise. Threading: any thread.
absl::Status SetLogLevel(const std::string& level);
std::string LogLevel();

// Returns when all that was logged is written, or at `until`.
void FlushLog(TimePoint until);

// {"time":"2024-01-31T12:00:00.123Z","level":"info","message":"..."}
std::unique_ptr<spdlog::formatter> MakeJsonFormatter();

// `text` as the inside of a JSON string. Bytes that are no UTF-8 are kept as they are.
std::string JsonEscaped(const std::string& text);

}  // namespace floe::server
