// The files of a configuration, as one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "config/config.h"

namespace floe {

// Empty: not given.
struct ConfigFiles {
  std::string yaml;                 // floe.yaml
  std::string model_config;         // ModelServerConfig in text format
  std::string batching_parameters;  // BatchingParameters in text format
  // A file that says the models and holds no list of them, which is otherwise one of no models.
  // TensorFlow Serving takes it so at its start, and later does nothing, rather than unload all
  // models.
  bool empty_list_is_mistake = false;
};

// Reads and merges them. Models start from `*defaults`, over which the batching parameters are laid
// first, and take what their own entries say. A model list replaces the YAML's models; those of the
// same name lend what a list cannot say. Relative base_paths start at the directory of the file
// that has them. Sets source.files and source.content_hash. Errors name every mistake of every
// file, one per line: NOT_FOUND when one cannot be read, else INVALID_ARGUMENT.
absl::StatusOr<ServerConfig> LoadConfigFiles(const ConfigFiles& files, ModelConfig* defaults);

// INVALID_ARGUMENT for a floe.yaml without a list `models`, such as a file that was cut short; the
// empty list is one. `file` is what messages call it.
absl::Status CheckListsModels(const std::string& yaml, const std::string& file);

// What kind of file a text is, by its first field.
enum class ConfigKind : uint8_t { kYaml, kModelConfig, kBatchingParameters };
ConfigKind KindOf(const std::string& text);

// A whole file, or what comes through a pipe, of at most 16 MiB. NOT_FOUND naming path and reason.
absl::StatusOr<std::string> ReadConfigText(const std::string& path);

// A relative path starts at the process's directory, which other processes do not know. Links and
// ".." stay as they are; the empty path stays empty.
std::string AbsolutePath(const std::string& path);

// What differs but is only read at the start, which is all but the models: "server.port: 8500 ->
// 9000", in the order of floe.yaml.
std::vector<std::string> ChangesForRestart(const ServerConfig& before, const ServerConfig& after);

}  // namespace floe
