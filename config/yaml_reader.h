// Reading YAML mappings entry by entry, noting every mistake with its line and key path.
#pragma once

#include <yaml-cpp/yaml.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace floe {

// The mistakes found so far. Threading: one thread.
class YamlReader {
 public:
  using Entry =
      std::function<void(const std::string& key, const std::string& path, const YAML::Node& value)>;

  explicit YamlReader(std::string file) : file_(std::move(file)) {}

  // Calls `read` for each entry of a mapping, of which nothing is the empty one. Other nodes, keys
  // that are written twice and keys not among `known` are mistakes; no `known`: all are.
  void Entries(const YAML::Node& node, const std::string& path,
               const std::vector<std::string>& known, const Entry& read);

  // Both are false. The message of the second is "expected ..., got ...".
  bool Fail(const YAML::Node& at, const std::string& path, const std::string& message);
  bool FailExpected(const YAML::Node& at, const std::string& path, const std::string& expected);

  std::string Where(const YAML::Node& node) const;  // "file:line"
  bool ok() const { return mistakes_.empty(); }
  std::string Mistakes() const;  // one per line, by line of the file

 private:
  std::string file_;
  std::multimap<int, std::string> mistakes_;  // by line; those of a line in the order of reading
};

// Quoted scalars are text, whatever they look like.
inline bool IsQuoted(const YAML::Node& node) { return node.Tag() == "!"; }

}  // namespace floe
