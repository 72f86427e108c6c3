// Reads the files of a command line in order, and hashes them.
#include "config/files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file_beneath.h"
#include "base/status.h"
#include "config/key_table.h"
#include "config/model_server_config.h"
#include "tensorflow_serving/config/model_server_config.pb.h"
#include "tensorflow_serving/servables/tensorflow/session_bundle_config.pb.h"

namespace floe {
namespace {

constexpr size_t kMaxFileBytes = size_t{16} << 20;

absl::Status Unreadable(const std::string& path, const std::string& why) {
  return absl::NotFoundError(absl::StrCat("config file '", path, "' cannot be read: ", why));
}

// Of the files so far and one more, for this process alone.
uint64_t HashOf(uint64_t hash, const absl::StatusOr<std::string>& text) {
  return absl::HashOf(hash, text.ok(), text.ok() ? *text : std::string(text.status().message()));
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

}  // namespace

std::string AbsolutePath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return path.empty() || error ? path : absolute.string();
}

absl::StatusOr<std::string> ReadConfigText(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return Unreadable(path, std::strerror(errno));
  if (S_ISDIR(info.st_mode)) return Unreadable(path, "it is a directory; expected a file");
  std::ifstream in(path, std::ios::binary);
  if (!in.is_open()) return Unreadable(path, std::strerror(errno));
  // In pieces: what is no regular file does not say how long it is, and may have no end.
  std::string text, piece(size_t{64} << 10, '\0');
  while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())), in.gcount() > 0) {
    text.append(piece, 0, static_cast<size_t>(in.gcount()));
    if (text.size() > kMaxFileBytes)
      return Unreadable(path, absl::StrCat("it has more than ", kMaxFileBytes, " bytes"));
  }
  if (in.bad()) return Unreadable(path, std::strerror(errno));
  return text;
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
        ParseConfig(text, files.yaml, DirectoryOf(AbsolutePath(files.yaml)), *defaults);
    loader.Note(parsed.status());
    if (parsed.ok() && files.empty_list_is_mistake && files.model_config.empty())
      loader.Note(CheckListsModels(text, files.yaml));
    if (parsed.ok()) config = *std::move(parsed);
  }
  if (loader.Read(files.model_config, &text)) {
    ModelListContext context;
    context.file = files.model_config;
    context.directory = DirectoryOf(AbsolutePath(files.model_config));
    context.known = &config.models;
    context.defaults = *defaults;
    context.may_be_empty = !files.empty_list_is_mistake;
    auto models = ParseModelServerConfig(text, context, &notes);
    loader.Note(models.status());
    if (models.ok()) config.models = *std::move(models);
  }
  FLOE_RETURN_IF_ERROR(loader.status());
  config.notes = std::move(notes);
  config.source = loader.source();
  return config;
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

std::vector<std::string> ChangesForRestart(const ServerConfig& before, const ServerConfig& after) {
  std::vector<std::string> changes;
  const auto shown = [](const std::string& text) { return text.empty() ? "(empty)" : text; };
  for (const Key<ServerConfig>& key : ServerKeys())
    if (!key.same(before, after))
      changes.push_back(
          absl::StrCat(key.path, ": ", shown(key.text(before)), " -> ", shown(key.text(after))));
  return changes;
}

}  // namespace floe
