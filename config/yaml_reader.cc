// Mappings, and the messages of mistakes.
#include "config/yaml_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/nearest.h"
#include "config/key_table.h"

namespace floe {
namespace {

// From 0 on; an empty document has no position.
int LineOf(const YAML::Node& node) { return std::max(node.Mark().line, 0); }

// "server.port": where a key of this name belongs; "": nowhere.
std::string PathOf(const std::string& name) {
  for (const Key<ServerConfig>& key : ServerKeys())
    if (key.name == name || key.section == name) return key.name == name ? key.path : name;
  for (const Key<ModelConfig>& key : ModelKeys())
    if (key.name == name) return "models[]." + key.path;
  return name == "models" ? name : "";
}

std::string Unknown(const std::string& key, const std::vector<std::string>& known) {
  if (const char* instead = InsteadOf(key)) return instead;
  if (const std::string path = PathOf(key); !path.empty())
    return absl::StrCat("is no key here, but '", path, "' is one; check the indent");
  return absl::StrCat("unknown key", NearestHint(key, known), "; expected one of ",
                      absl::StrJoin(known, ", "));
}

// "a list", "the text 'abc'", "nothing": what a value is, for messages.
std::string Describe(const YAML::Node& node) {
  if (node.IsMap()) return "a mapping";
  if (node.IsSequence()) return "a list";
  if (!node.IsScalar()) return "nothing";
  return absl::StrCat(IsQuoted(node) ? "the text '" : "'", node.Scalar(), "'");
}

}  // namespace

void YamlReader::Entries(const YAML::Node& node, const std::string& path,
                         const std::vector<std::string>& known, const Entry& read) {
  if (node.IsNull()) return;
  if (!node.IsMap()) return void(FailExpected(node, path, "a mapping of keys"));
  std::map<std::string, int> first_lines;
  for (const auto& entry : node) {
    const YAML::Node& key_node = entry.first;
    if (!key_node.IsScalar()) {
      FailExpected(key_node, path, "a key");
      continue;
    }
    const std::string& key = key_node.Scalar();
    const std::string key_path = path.empty() ? key : absl::StrCat(path, ".", key);
    const auto [first, is_new] = first_lines.emplace(key, LineOf(key_node) + 1);
    if (!is_new)
      Fail(key_node, key_path,
           absl::StrCat("is written twice (first in line ", first->second, "); keep one"));
    else if (!known.empty() && std::find(known.begin(), known.end(), key) == known.end())
      Fail(key_node, key_path, Unknown(key, known));
    else
      read(key, key_path, entry.second);
  }
}

bool YamlReader::Fail(const YAML::Node& at, const std::string& path, const std::string& message) {
  mistakes_.emplace(LineOf(at),
                    absl::StrCat(Where(at), ": ", path, path.empty() ? "" : ": ", message));
  return false;
}

bool YamlReader::FailExpected(const YAML::Node& at, const std::string& path,
                              const std::string& expected) {
  return Fail(at, path, absl::StrCat("expected ", expected, ", got ", Describe(at)));
}

std::string YamlReader::Where(const YAML::Node& node) const {
  return absl::StrCat(file_, ":", LineOf(node) + 1);
}

std::string YamlReader::Mistakes() const {
  return absl::StrJoin(mistakes_, "\n",
                       [](std::string* out, const auto& mistake) { *out += mistake.second; });
}

}  // namespace floe
