// floe.yaml -> ServerConfig, and back.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "config/base_path.h"
#include "config/config.h"
#include "config/files.h"
#include "config/key_table.h"
#include "config/limits.h"
#include "config/yaml_reader.h"

namespace floe {
namespace {

// The names on the top level of a file of such keys: keys without a section, and sections.
template <typename S>
std::vector<std::string> TopNames(const std::vector<Key<S>>& keys) {
  std::vector<std::string> names;
  for (const Key<S>& key : keys)
    if (key.section.empty() || names.empty() || names.back() != key.section)
      names.push_back(key.section.empty() ? key.name : key.section);
  return names;
}

// Where a model's keys are is in ModelConfig::where.
void NoteWhere(const std::string& /*path*/, const std::string& /*where*/, ModelConfig* /*out*/) {}
void NoteWhere(const std::string& path, const std::string& where, ServerConfig* out) {
  out->where[path] = absl::StrCat(where, ": ", path);
}

// What stands in the section `name` on the way to `key`, or is its name: "tls" of
// "server.tls.key" in "server". Empty: the key is elsewhere.
std::string NameIn(const std::string& key, const std::string& name) {
  if (key.size() <= name.size() || key[name.size()] != '.' ||
      key.compare(0, name.size(), name) != 0)
    return "";
  const size_t start = name.size() + 1;
  return key.substr(start, key.find('.', start) - start);
}

// Reads a value or, where `name` is that of a section, its keys.
template <typename S>
void ReadKey(YamlReader& r, const std::vector<Key<S>>& keys, const std::string& name,
             const std::string& path, const YAML::Node& node, S* out) {
  std::vector<std::string> names;
  for (const Key<S>& key : keys) {
    if (key.path == name) {
      NoteWhere(path, r.Where(node), out);
      return key.read(r, path, node, out);
    }
    const std::string in = NameIn(key.path, name);
    if (!in.empty() && (names.empty() || names.back() != in)) names.push_back(in);
  }
  r.Entries(node, path, names, [&](auto& inner, auto& inner_path, auto& value) {
    ReadKey(r, keys, absl::StrCat(name, ".", inner), inner_path, value, out);
  });
}

// yaml-cpp throws only for what this does not do: keys without values, wrong nesting.
template <typename S>
void WriteKeys(YAML::Emitter& out, const std::vector<Key<S>>& keys, const S& from) {
  std::vector<std::string> open;  // sections
  const auto close = [&](size_t left) {
    for (; open.size() > left; open.pop_back()) out << YAML::EndMap;
  };
  for (const Key<S>& key : keys) {
    if (!key.is_set(from)) continue;
    std::vector<std::string> names = absl::StrSplit(key.path, '.');
    const std::string name = std::move(names.back());
    names.pop_back();
    const auto common = std::mismatch(open.begin(), open.end(), names.begin(), names.end());
    close(static_cast<size_t>(common.first - open.begin()));
    while (open.size() < names.size()) {
      open.push_back(names[open.size()]);
      out << YAML::Key << open.back() << YAML::Value << YAML::BeginMap;
    }
    out << YAML::Key << name << YAML::Value;
    key.write(out, from);
  }
  close(0);
}

// Where each name is given.
using NamePlaces = std::map<std::string, std::vector<std::string>>;

ModelConfig ReadModel(YamlReader& r, const std::string& path, const YAML::Node& node,
                      const std::string& directory, ModelConfig model, NamePlaces* places) {
  r.Entries(node, path, TopNames(ModelKeys()), [&](auto& name, auto& key_path, auto& value) {
    ReadKey(r, ModelKeys(), name, key_path, value, &model);
  });
  const auto at = [&](const char* key) {
    return node.IsMap() && node[key].IsDefined() ? node[key] : node;
  };
  if (const YAML::Node batching = at("batching"); batching.IsMap() && !batching.is(node)) {
    FillBatching(batching["max_batch_size"].IsDefined(), &model.batching);
    for (const std::string& mistake : BatchingMistakes(model.batching))
      r.Fail(batching, path + ".batching", mistake);
  }
  if (model.name.empty()) r.Fail(node, path, "expected 'name: NAME', what clients call the model");
  if (model.base_path.empty())
    r.Fail(node, path,
           "expected 'base_path: PATH', the directory that holds <version>/ directories, or the "
           "model file");
  model.where = r.Where(at("base_path"));
  if (!model.name.empty()) {
    std::vector<std::string>& others = (*places)[model.name];
    for (const std::string& other : others)
      r.Fail(at("name"), path + ".name",
             absl::StrCat("the model name '", model.name, "' is taken (", other,
                          "); names must differ"));
    others.push_back(model.where);
  }
  if (absl::StatusOr<std::string> local = LocalPath(model.base_path, directory); local.ok())
    model.base_path = *std::move(local);
  else
    r.Fail(at("base_path"), path + ".base_path", std::string(local.status().message()));
  return model;
}

// May throw what yaml-cpp throws.
absl::StatusOr<ServerConfig> Parse(const std::string& text, const std::string& file,
                                   const std::string& directory, const ModelConfig& defaults) {
  ServerConfig config;
  YamlReader r(file);
  const std::vector<YAML::Node> documents = YAML::LoadAll(text);
  for (size_t i = 1; i < documents.size(); ++i)
    if (!documents[i].IsNull())
      r.Fail(documents[i], "",
             "another document begins behind '---'; put all into one, or into a file each");
  std::vector<std::string> known = TopNames(ServerKeys());
  known.emplace_back("models");
  const YAML::Node root = documents.empty() ? YAML::Node() : documents[0];
  r.Entries(root, "", known, [&](auto& name, auto& path, auto& node) {
    if (name != "models") return ReadKey(r, ServerKeys(), name, path, node, &config);
    if (!node.IsNull() && !node.IsSequence()) return void(r.FailExpected(node, path, "a list"));
    if (node.size() > kMaxModels)
      return void(
          r.Fail(node, path, absl::StrCat(node.size(), " entries; expected at most ", kMaxModels)));
    NamePlaces places;
    for (size_t i = 0; i < node.size(); ++i)
      config.models.push_back(
          ReadModel(r, absl::StrCat(path, "[", i, "]"), node[i], directory, defaults, &places));
  });
  if (!r.ok()) return absl::InvalidArgumentError(r.Mistakes());
  TlsConfig& tls = config.server.tls;
  for (std::string* path : {&tls.certificate, &tls.key, &tls.client_ca, &tls.ssl_config_file,
                            &config.server.auth.tokens_file})
    if (!directory.empty() && !path->empty() && path->front() != '/')
      *path = absl::StrCat(directory, "/", *path);
  return config;
}

// What yaml-cpp cannot say of a text that it does not understand from `line` on: that the indent of
// this line or one before it is wrong.
std::string IndentHint(const std::string& text, size_t line) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  std::set<size_t> indents;
  for (size_t i = 0; i <= line && i < lines.size(); ++i) {
    const size_t indent = lines[i].find_first_not_of(' ');
    if (indent == std::string::npos || lines[i][indent] == '#') continue;
    if (lines[i][indent] == '\t')
      return absl::StrCat("; a tab indents line ", i + 1, ", and YAML allows spaces only");
    if (i == line && !indents.empty() && indents.count(indent) == 0)
      return absl::StrCat("; this line is indented by ", indent,
                          " and none above it is; the keys of a mapping have the same indent");
    indents.insert(indent);
    // "- a: 1" begins a mapping whose further keys are where "a" is.
    if (lines[i].compare(indent, 2, "- ") == 0)
      indents.insert(std::min(lines[i].find_first_not_of(' ', indent + 1), lines[i].size()));
  }
  return "";
}

// The one boundary where yaml-cpp's exceptions stop.
template <typename Read>
auto WithoutExceptions(const std::string& text, const std::string& file, const Read& read)
    -> decltype(read()) {
  try {
    return read();
  } catch (const YAML::Exception& e) {
    const int line = std::max(e.mark.line, 0);
    return absl::InvalidArgumentError(absl::StrCat(file, ":", line + 1, ": not valid YAML (column ",
                                                   e.mark.column + 1, "): ", e.msg,
                                                   IndentHint(text, static_cast<size_t>(line))));
  }
}

}  // namespace

absl::StatusOr<ServerConfig> ParseConfig(const std::string& text, const std::string& file,
                                         const std::string& directory,
                                         const ModelConfig& defaults) {
  return WithoutExceptions(text, file, [&] { return Parse(text, file, directory, defaults); });
}

absl::Status CheckListsModels(const std::string& yaml, const std::string& file) {
  return WithoutExceptions(yaml, file, [&]() -> absl::Status {
    const YAML::Node root = YAML::Load(yaml);
    if (root.IsMap() && root["models"].IsDefined() && root["models"].IsSequence())
      return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        file,
        ": there is no list 'models', as in a file that was cut short; 'models: []' says "
        "that there are to be none"));
  });
}

std::string ConfigToYaml(const ServerConfig& config) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  WriteKeys(out, ServerKeys(), config);
  out << YAML::Key << "models" << YAML::Value << YAML::BeginSeq;
  for (const ModelConfig& model : config.models) {
    out << YAML::BeginMap;
    WriteKeys(out, ModelKeys(), model);
    out << YAML::EndMap;
  }
  out << YAML::EndSeq << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

}  // namespace floe
