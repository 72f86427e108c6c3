#include "config/files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file_beneath.h"
#include "base/status.h"
#include "config/model_server_config.h"
#include "tensorflow_serving/config/model_server_config.pb.h"
#include "tensorflow_serving/servables/tensorflow/session_bundle_config.pb.h"

namespace floe {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{16} << 20;

absl::Status Unreadable(const std::string& path, const std::string& why) {
  return absl::NotFoundError(absl::StrCat("config file '", path, "' cannot be read: ", why));
}

// Chained, so that moving bytes from one file to the next changes it.
uint64_t MixHash(uint64_t hash, const std::string& text) {
  const uint64_t own = std::hash<std::string_view>()(text);
  return (hash ^ own) * 0x9E3779B97F4A7C15u + (hash >> 29);
}

uint64_t HashOf(uint64_t hash, const absl::StatusOr<std::string>& text) {
  return MixHash(hash, text.ok() ? absl::StrCat("+", *text)
                                 : absl::StrCat("-", std::string(text.status().message())));
}

// Mistakes of all files, and the files' bytes as they are hashed.
class Loader {
 public:
  // False: not given or not readable.
  bool Read(const std::string& path, std::string* text) {
    if (path.empty()) return false;
    absl::StatusOr<std::string> read = ReadConfigText(path);
    source_.files.push_back(path);
    source_.content_hash = HashOf(source_.content_hash, read);
    Note(read.status());
    if (!read.ok()) return false;
    *text = *std::move(read);
    return true;
  }
  void Note(const absl::Status& status) {
    if (status.ok()) return;
    if (code_ == absl::StatusCode::kOk || absl::IsNotFound(status)) code_ = status.code();
    mistakes_.push_back(std::string(status.message()));
  }
  absl::Status status() const {
    return mistakes_.empty() ? absl::OkStatus()
                             : absl::Status(code_, absl::StrJoin(mistakes_, "\n"));
  }
  const ConfigSource& source() const { return source_; }

 private:
  ConfigSource source_;
  absl::StatusCode code_ = absl::StatusCode::kOk;
  std::vector<std::string> mistakes_;
};

// The first word of a text behind comments and white space; empty when it starts otherwise.
std::string FirstWord(const std::string& text) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const size_t start = line.find_first_not_of(" \t\r");
    if (start == absl::string_view::npos || line[start] == '#') continue;
    line.remove_prefix(start);
    const size_t end = line.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
    return std::string(line.substr(0, end));
  }
  return "";
}

std::string YesNo(bool value) { return value ? "true" : "false"; }

// Keys of the parts that are read once, with their values.
std::map<std::string, std::string> StartOnly(const ServerConfig& c) {
  const ListenConfig& s = c.server;
  return {
      {"server.port", absl::StrCat(s.port)},
      {"server.bind_address", s.bind_address},
      {"server.grpc_socket_path", s.grpc_socket_path},
      {"server.enable_reflection", YesNo(s.enable_reflection)},
      {"server.max_message_bytes", absl::StrCat(s.max_message_bytes)},
      {"server.drain_timeout_seconds", absl::StrCat(s.drain_timeout_seconds)},
      {"server.drain_lame_duck_seconds", absl::StrCat(s.drain_lame_duck_seconds)},
      {"server.grpc_channel_arguments", s.grpc_channel_arguments},
      {"server.insecure_public", YesNo(s.insecure_public)},
      {"server.max_connections", absl::StrCat(s.max_connections)},
      {"server.max_connections_per_address", absl::StrCat(s.max_connections_per_address)},
      {"server.enable_config_rpcs", YesNo(s.enable_config_rpcs)},
      {"server.reply", c.reply == ReplyFormat::kContent ? "content" : "typed"},
      {"log.level", c.log.level},
      {"log.format", c.log.format == LogFormat::kJson ? "json" : "text"},
      {"cpu.gemm", c.cpu.gemm},
      {"cpu.blas_library", c.cpu.blas_library},
  };
}

}  // namespace

absl::StatusOr<std::string> ReadConfigText(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return Unreadable(path, std::strerror(errno));
  if (S_ISDIR(info.st_mode)) return Unreadable(path, "it is a directory; expected a file");
  if (S_ISREG(info.st_mode) && info.st_size > kMaxFileBytes)
    return Unreadable(path, absl::StrCat("it has ", info.st_size, " bytes; at most ", kMaxFileBytes,
                                         " are read"));
  std::ifstream in(path, std::ios::binary);
  if (!in.is_open()) return Unreadable(path, std::strerror(errno));
  return std::string{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

absl::StatusOr<ServerConfig> LoadConfigFiles(const ConfigFiles& files, ModelConfig* defaults) {
  Loader loader;
  ServerConfig config;
  std::vector<std::string> notes;
  std::string text;
  if (loader.Read(files.batching_parameters, &text))
    loader.Note(ParseBatchingParameters(text, files.batching_parameters, defaults, &notes));
  if (loader.Read(files.yaml, &text)) {
    absl::StatusOr<ServerConfig> parsed =
        ParseConfig(text, files.yaml, DirectoryOf(files.yaml), *defaults);
    loader.Note(parsed.status());
    if (parsed.ok()) config = *std::move(parsed);
  }
  if (loader.Read(files.model_config, &text)) {
    ModelListContext context;
    context.file = files.model_config;
    context.directory = DirectoryOf(files.model_config);
    context.known = &config.models;
    context.defaults = *defaults;
    auto models = ParseModelServerConfig(text, context, &notes);
    loader.Note(models.status());
    if (models.ok()) config.models = *std::move(models);
  }
  FLOE_RETURN_IF_ERROR(loader.status());
  config.notes = std::move(notes);
  config.source = loader.source();
  return config;
}

absl::StatusOr<ServerConfig> LoadConfigFile(const std::string& path) {
  ConfigFiles files;
  files.yaml = path;
  ModelConfig defaults;
  return LoadConfigFiles(files, &defaults);
}

ConfigKind KindOf(const std::string& text) {
  const std::string word = FirstWord(text);
  namespace pb = tensorflow::serving;
  if (pb::ModelServerConfig::descriptor()->FindFieldByName(word) != nullptr)
    return ConfigKind::kModelConfig;
  if (pb::BatchingParameters::descriptor()->FindFieldByName(word) != nullptr)
    return ConfigKind::kBatchingParameters;
  return ConfigKind::kYaml;
}

uint64_t HashFiles(const std::vector<std::string>& paths) {
  uint64_t hash = 0;
  for (const std::string& path : paths) hash = HashOf(hash, ReadConfigText(path));
  return hash;
}

std::vector<std::string> ChangesForRestart(const ServerConfig& before, const ServerConfig& after) {
  std::vector<std::string> changes;
  const auto old = StartOnly(before);
  for (const auto& [key, value] : StartOnly(after))
    if (const std::string& was = old.at(key); was != value)
      changes.push_back(absl::StrCat(key, ": ", was.empty() ? "(empty)" : was, " -> ",
                                     value.empty() ? "(empty)" : value));
  return changes;
}

}  // namespace floe
