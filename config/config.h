// floed's configuration: typed, with its defaults, and how to read it from YAML.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

namespace floe {

// How many requests wait and how many run together.
struct BatchingConfig {
  int64_t max_batch_size = 64;        // rows of one run
  int64_t batch_timeout_micros = 0;   // an idle worker waits this long for a fuller batch
  int64_t max_enqueued_batches = 64;  // the queue holds this * max_batch_size requests
};

// A value for a placeholder that callers need not feed. A bare YAML scalar becomes bool, int32
// (int64 when it does not fit), float32 or string; `dtype` (NumPy's names), when not empty, says
// otherwise.
struct PlaceholderDefault {
  std::variant<bool, int64_t, double, std::string> value;
  std::string dtype;
};

// Replaces the file's signature when not empty: alias -> tensor name ("node" or "node:1").
struct SignatureConfig {
  std::map<std::string, std::string> inputs, outputs;
};

enum class ReplyFormat : uint8_t { kTyped, kContent };

struct ModelConfig {
  std::string name;
  std::string base_path;  // absolute, or relative to the process when given by a flag
  std::string where;      // "floe.yaml:12", or the flag, for messages
  int64_t workers = 1;
  int64_t intra_op_threads = 1;
  BatchingConfig batching;
  // A model whose measured run is shorter runs on the thread that brought the request; 0: never.
  int64_t inline_below_us = 50;
  std::map<std::string, PlaceholderDefault> placeholder_defaults;
  SignatureConfig signature;
  std::optional<ReplyFormat> reply;  // unset: as the server's flag says
};

struct ListenConfig {
  int64_t port = 8500;  // 0: no TCP
  std::string bind_address = "127.0.0.1";
  std::string grpc_socket_path;  // empty: no unix socket
  bool enable_reflection = false;
  int64_t max_message_bytes = int64_t{256} << 20;
  int64_t drain_timeout_seconds = 30;
  int64_t drain_lame_duck_seconds = 1;
  std::string grpc_channel_arguments;  // "key=value,key=value"
  bool insecure_public = false;        // plain text beyond loopback is accepted
};

enum class LogFormat : uint8_t { kText, kJson };

struct LogConfig {
  std::string level = "info";  // one of LogLevels()
  LogFormat format = LogFormat::kText;
};

struct CpuConfig {
  std::string gemm = "auto";  // one of GemmNames()
  std::string blas_library;   // empty: the system's OpenBLAS, when gemm says openblas
};

struct ServerConfig {
  ListenConfig server;
  LogConfig log;
  CpuConfig cpu;
  std::vector<ModelConfig> models;
  ReplyFormat reply = ReplyFormat::kTyped;  // of models that do not say
};

const std::vector<std::string>& LogLevels();
const std::vector<std::string>& GemmNames();

// Reads a file. NOT_FOUND when it cannot be opened. INVALID_ARGUMENT lists every mistake, one per
// line, as "file:line: key.path: what is wrong, what was expected"; a relative base_path is taken
// from the file's directory.
absl::StatusOr<ServerConfig> LoadConfigFile(const std::string& path);

// The same for text; `file` is what messages call it, `directory` where relative paths start ("" =
// leave them).
absl::StatusOr<ServerConfig> ParseConfig(const std::string& text, const std::string& file,
                                         const std::string& directory);

// Rules that hold whatever the source: models' names and paths given, names unique, ranges of what
// flags may set, and plain text only on loopback unless `insecure_public`. INVALID_ARGUMENT with
// one line per mistake.
absl::Status ValidateConfig(const ServerConfig& config);

// Whether the files the configuration names exist. NOT_FOUND with one line per missing one.
absl::Status CheckPaths(const ServerConfig& config);

// True for 127.0.0.0/8, ::1 and localhost.
bool IsLoopback(const std::string& address);

// "key=value,key=value" as pairs, in order. INVALID_ARGUMENT names the part that has no '=' or no
// key.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ParseChannelArguments(
    const std::string& text);

}  // namespace floe
