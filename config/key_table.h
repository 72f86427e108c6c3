// The keys of floe.yaml, a row each. From the rows come reading and writing YAML, the ranges of
// flags and of other files, what a reload says of changes, and the tables of docs/config.md.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/limits.h"

namespace YAML {
class Emitter;
class Node;
}  // namespace YAML

namespace floe {

class YamlReader;

// A key whose value is a field of S, a ServerConfig or a ModelConfig. Its default is the field's.
template <typename S>
struct Key {
  // `path`: "server.port"; `at`: S& -> the field, without captures; `form`: of config/key_forms.h.
  template <typename At, typename Form>
  Key(const std::string& path, At at, Form form, const char* help);

  std::string path, section, name;   // "server.port", "server", "port"; a section may be empty
  const char* help;                  // one line, in Markdown
  bool is_switch = false;            // true or false
  std::optional<IntRange> range;     // of a whole number
  std::vector<std::string> choices;  // of a name

  // Reads the value, and notes what is wrong with it under its path in the file.
  std::function<void(YamlReader&, const std::string& path, const YAML::Node&, S* out)> read;
  std::function<void(YAML::Emitter& out, const S& from)> write;  // the value
  std::function<bool(const S& from)> is_set;  // false: what is not written, such as an empty list
  std::function<bool(const S& a, const S& b)> same;
  std::function<std::string(const S& from)> text;
  // Reads what `text` gives, of keys with scalars. What is wrong with it; empty: nothing is.
  std::function<std::string(const std::string& text, S* out)> parse;

 private:
  // Once per type and form, and not per key, which would take long to compile.
  template <typename T, typename Form>
  void Init(T& (*at)(S&), Form form);
};

// In the order of floe.yaml. What the server's keys say is read at the start only, what the models'
// say at every reload.
const std::vector<Key<ServerConfig>>& ServerKeys();
const std::vector<Key<ModelConfig>>& ModelKeys();

// The key of this path, which exists.
const Key<ServerConfig>& ServerKey(const std::string& path);
const Key<ModelConfig>& ModelKey(const std::string& path);

// What to do instead of a key that other servers or older versions have, as a clause: "was removed:
// use cpu_shares". Null: nothing is known of it.
const char* InsteadOf(const std::string& name);

// The tables of docs/config.md.
std::string KeysMarkdown();

}  // namespace floe
