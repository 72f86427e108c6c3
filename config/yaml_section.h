// Reading one YAML mapping field by field, noting every mistake with its line and key path.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "config/limits.h"

namespace floe {

// The mistakes found so far, in the order of reading.
class YamlErrors {
 public:
  explicit YamlErrors(std::string file) : file_(std::move(file)) {}
  void Add(const YAML::Mark& mark, const std::string& path, const std::string& message);
  std::string Where(const YAML::Mark& mark) const;  // "file:line"
  bool empty() const { return lines_.empty(); }
  std::string Joined() const;  // one per line, by line of the file

 private:
  struct Line {
    int line;
    std::string text;
  };
  std::string file_;
  std::vector<Line> lines_;
};

// A mapping. Each reader takes the field out when it is there, leaves `*out` alone when it is not,
// and notes a mistake when the value has the wrong type or is out of range. Finish() notes the keys
// nobody asked for. Threading: one thread. Node and errors outlive it.
class YamlSection {
 public:
  // `path`: of this mapping, "" for the document. Anything but a mapping (or nothing) is a mistake.
  YamlSection(const YAML::Node& node, std::string path, YamlErrors& errors);

  void Bool(const std::string& key, bool* out);
  void Int(const std::string& key, const IntRange& range, int64_t* out);
  // Or `auto`, which is 0. Whether the key is there.
  bool IntOrAuto(const std::string& key, const IntRange& range, int64_t* out);
  // Bytes as ParseBytes reads them.
  void Bytes(const std::string& key, int64_t* out);
  void IntList(const std::string& key, const IntRange& range, std::vector<int64_t>* out);
  // Free keys, none of them empty, with numbers.
  void IntMap(const std::string& key, const IntRange& range, std::map<std::string, int64_t>* out);
  void NumberMap(const std::string& key, std::map<std::string, double>* out);
  void String(const std::string& key, std::string* out);
  // The index of the value among `names`.
  void Choice(const std::string& key, const std::vector<std::string>& names, int* out);
  void Map(const std::string& key, const std::function<void(YamlSection&)>& read);
  void List(const std::string& key, const std::function<void(YamlSection&)>& read);
  // The value as it is, known from then on; undefined when it is absent.
  YAML::Node Take(const std::string& key) { return Find(key); }
  // For mappings with free keys: every value with its key, each key known.
  void Each(const std::function<void(const std::string& key, const YAML::Node& value)>& read);
  // Free keys with text values.
  void StringMap(const std::string& key, std::map<std::string, std::string>* out);

  void Fail(const YAML::Node& at, const std::string& key, const std::string& message);
  void Fail(const std::string& message) { errors_.Add(mark_, path_, message); }
  std::string PathOf(const std::string& key) const;
  YAML::Mark MarkOf(const std::string& key) const;  // of a key, or of the mapping when it is absent
  std::string WhereIs(const std::string& key) const { return errors_.Where(MarkOf(key)); }
  YamlErrors& errors() { return errors_; }
  void Finish();

 private:
  struct Entry {
    std::string key;
    YAML::Node key_node, value;
    bool used = false;
  };
  YAML::Node Find(const std::string& key);  // marks it known and used; undefined when absent
  bool ReadInt(const YAML::Node& node, const std::string& key, const IntRange& range, int64_t* out);

  YamlErrors& errors_;
  std::string path_;
  YAML::Mark mark_;
  std::vector<Entry> entries_;
  std::vector<std::string> known_;
};

// "a list", "the text 'abc'", "nothing": what a value is, for messages.
std::string DescribeYaml(const YAML::Node& node);

}  // namespace floe
