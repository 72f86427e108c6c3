#include "config/yaml_section.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/nearest.h"

namespace floe {
namespace {

// Keys that were taken out, and what to do instead.
constexpr std::pair<std::string_view, const char*> kRemoved[] = {
    {"preferred_batch_size", "batches go when max_batch_size or batch_timeout_micros says so"},
    {"version_transition",
     "new versions are always up before old ones go; memory_limit says what may be in memory"},
};

// Null: the key never was one.
const char* InsteadOf(std::string_view key) {
  for (const auto& [removed, instead] : kRemoved)
    if (key == removed) return instead;
  return nullptr;
}

bool Missing(const YAML::Node& node) { return !node.IsDefined(); }

// Quoted scalars carry the tag "!": they are text, whatever they look like.
bool IsQuoted(const YAML::Node& node) { return node.Tag() == "!"; }

bool ReadBool(const YAML::Node& node, bool* out) {
  if (!node.IsScalar() || IsQuoted(node)) return false;
  const std::string& text = node.Scalar();
  if (text == "true" || text == "True" || text == "yes" || text == "on") return *out = true, true;
  if (text == "false" || text == "False" || text == "no" || text == "off")
    return *out = false, true;
  return false;
}

}  // namespace

std::string DescribeYaml(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Map:
      return "a mapping";
    case YAML::NodeType::Sequence:
      return "a list";
    case YAML::NodeType::Scalar:
      return absl::StrCat(IsQuoted(node) ? "the text '" : "'", node.Scalar(), "'");
    default:
      return "nothing";
  }
}

std::string YamlErrors::Where(const YAML::Mark& mark) const {
  return absl::StrCat(file_, ":", mark.line + 1);
}

void YamlErrors::Add(const YAML::Mark& mark, const std::string& path, const std::string& message) {
  lines_.push_back(
      {mark.line, absl::StrCat(Where(mark), ": ", path, path.empty() ? "" : ": ", message)});
}

std::string YamlErrors::Joined() const {
  std::vector<Line> sorted = lines_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Line& a, const Line& b) { return a.line < b.line; });
  return absl::StrJoin(sorted, "\n",
                       [](std::string* out, const Line& line) { out->append(line.text); });
}

YamlSection::YamlSection(const YAML::Node& node, std::string path, YamlErrors& errors)
    : errors_(errors), path_(std::move(path)), mark_(node.Mark()) {
  if (mark_.line < 0) mark_.line = 0;  // an empty document has no position
  if (node.IsNull()) return;
  if (!node.IsMap()) {
    Fail(absl::StrCat("expected a mapping of keys, got ", DescribeYaml(node)));
    return;
  }
  for (const auto& pair : node) {
    if (!pair.first.IsScalar()) {
      errors_.Add(pair.first.Mark(), path_,
                  absl::StrCat("expected a key, got ", DescribeYaml(pair.first)));
      continue;
    }
    const std::string& key = pair.first.Scalar();
    for (const Entry& entry : entries_)
      if (entry.key == key)
        errors_.Add(pair.first.Mark(), PathOf(key),
                    absl::StrCat("is written twice (first in line ", entry.key_node.Mark().line + 1,
                                 "); keep one"));
    entries_.push_back({key, pair.first, pair.second});
  }
}

std::string YamlSection::PathOf(const std::string& key) const {
  return path_.empty() ? key : absl::StrCat(path_, ".", key);
}

YAML::Node YamlSection::Find(const std::string& key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.push_back(key);
  YAML::Node found(YAML::NodeType::Undefined);
  for (Entry& entry : entries_) {
    if (entry.key != key) continue;
    if (!found.IsDefined()) found.reset(entry.value);
    entry.used = true;
  }
  return found;
}

YAML::Mark YamlSection::MarkOf(const std::string& key) const {
  for (const Entry& entry : entries_)
    if (entry.key == key) return entry.key_node.Mark();
  return mark_;
}

void YamlSection::Fail(const YAML::Node& at, const std::string& key, const std::string& message) {
  errors_.Add(at.Mark(), PathOf(key), message);
}

void YamlSection::Bool(const std::string& key, bool* out) {
  const YAML::Node node = Find(key);
  if (Missing(node) || ReadBool(node, out)) return;
  Fail(node, key, absl::StrCat("expected true or false, got ", DescribeYaml(node)));
}

bool YamlSection::ReadInt(const YAML::Node& node, const std::string& key, const IntRange& range,
                          int64_t* out) {
  int64_t value = 0;
  if (node.IsScalar() && !IsQuoted(node) && absl::SimpleAtoi(node.Scalar(), &value) &&
      value >= range.low && value <= range.high) {
    *out = value;
    return true;
  }
  const std::string expected =
      range.high == std::numeric_limits<int64_t>::max()
          ? absl::StrCat("expected a whole number, at least ", range.low, ", got ")
          : absl::StrCat("expected a whole number from ", range.low, " to ", range.high, ", got ");
  Fail(node, key, expected + DescribeYaml(node));
  return false;
}

bool YamlSection::IntOrAuto(const std::string& key, const IntRange& range, int64_t* out) {
  const YAML::Node node = Find(key);
  if (Missing(node)) return false;
  if (node.IsScalar() && node.Scalar() == "auto")
    *out = 0;
  else
    ReadInt(node, key, range, out);
  return true;
}

void YamlSection::Int(const std::string& key, const IntRange& range, int64_t* out) {
  const YAML::Node node = Find(key);
  if (!Missing(node)) ReadInt(node, key, range, out);
}

void YamlSection::Bytes(const std::string& key, int64_t* out) {
  const YAML::Node node = Find(key);
  if (Missing(node)) return;
  if (!node.IsScalar())
    return Fail(node, key,
                absl::StrCat("expected bytes, such as 512MiB, got ", DescribeYaml(node)));
  const absl::StatusOr<int64_t> bytes = ParseBytes(node.Scalar());
  if (!bytes.ok()) return Fail(node, key, std::string(bytes.status().message()));
  *out = *bytes;
}

void YamlSection::IntList(const std::string& key, const IntRange& range,
                          std::vector<int64_t>* out) {
  const YAML::Node node = Find(key);
  if (Missing(node)) return;
  if (!node.IsSequence())
    return Fail(node, key, absl::StrCat("expected a list of numbers, got ", DescribeYaml(node)));
  out->clear();
  for (size_t i = 0; i < node.size(); ++i) {
    int64_t value = 0;
    if (ReadInt(node[i], absl::StrCat(key, "[", i, "]"), range, &value)) out->push_back(value);
  }
}

void YamlSection::IntMap(const std::string& key, const IntRange& range,
                         std::map<std::string, int64_t>* out) {
  Map(key, [&](YamlSection& section) {
    out->clear();
    section.Each([&](const std::string& name, const YAML::Node& value) {
      int64_t number = 0;
      if (name.empty())
        section.Fail("a number has no name; expected NAME: NUMBER");
      else if (section.ReadInt(value, name, range, &number))
        (*out)[name] = number;
    });
  });
}

void YamlSection::NumberMap(const std::string& key, std::map<std::string, double>* out) {
  Map(key, [&](YamlSection& section) {
    out->clear();
    section.Each([&](const std::string& name, const YAML::Node& value) {
      double number = 0;
      if (value.IsScalar() && !IsQuoted(value) && absl::SimpleAtod(value.Scalar(), &number) &&
          !std::isnan(number))
        (*out)[name] = number;
      else
        section.Fail(value, name, absl::StrCat("expected a number, got ", DescribeYaml(value)));
    });
  });
}

void YamlSection::String(const std::string& key, std::string* out) {
  const YAML::Node node = Find(key);
  if (Missing(node)) return;
  if (!node.IsScalar())
    return Fail(node, key, absl::StrCat("expected text, got ", DescribeYaml(node)));
  *out = node.Scalar();
}

void YamlSection::Choice(const std::string& key, const std::vector<std::string>& names, int* out) {
  const YAML::Node node = Find(key);
  if (Missing(node)) return;
  if (node.IsScalar()) {
    const auto found = std::find(names.begin(), names.end(), node.Scalar());
    if (found != names.end()) {
      *out = static_cast<int>(found - names.begin());
      return;
    }
  }
  Fail(node, key,
       absl::StrCat("expected one of ", QuotedList(names), ", got ", DescribeYaml(node)));
}

void YamlSection::Map(const std::string& key, const std::function<void(YamlSection&)>& read) {
  const YAML::Node node = Find(key);
  if (Missing(node)) return;
  YamlSection section(node, PathOf(key), errors_);
  read(section);
  section.Finish();
}

void YamlSection::List(const std::string& key, const std::function<void(YamlSection&)>& read) {
  const YAML::Node node = Find(key);
  if (Missing(node) || node.IsNull()) return;
  if (!node.IsSequence())
    return Fail(node, key, absl::StrCat("expected a list, got ", DescribeYaml(node)));
  if (node.size() > kMaxModels)
    return Fail(node, key, absl::StrCat(node.size(), " entries; expected at most ", kMaxModels));
  for (size_t i = 0; i < node.size(); ++i) {
    YamlSection section(node[i], absl::StrCat(PathOf(key), "[", i, "]"), errors_);
    read(section);
    section.Finish();
  }
}

void YamlSection::Each(const std::function<void(const std::string&, const YAML::Node&)>& read) {
  for (Entry& entry : entries_) {
    entry.used = true;
    read(entry.key, entry.value);
  }
}

void YamlSection::StringMap(const std::string& key, std::map<std::string, std::string>* out) {
  Map(key, [&](YamlSection& section) {
    section.Each([&](const std::string& name, const YAML::Node& value) {
      if (value.IsScalar() && !value.Scalar().empty())
        (*out)[name] = value.Scalar();
      else
        section.Fail(value, name,
                     absl::StrCat("expected a tensor's name, got ", DescribeYaml(value)));
    });
  });
}

void YamlSection::Finish() {
  for (const Entry& entry : entries_) {
    if (entry.used) continue;
    if (const char* const instead = InsteadOf(entry.key); instead != nullptr) {
      errors_.Add(entry.key_node.Mark(), PathOf(entry.key), absl::StrCat("is gone: ", instead));
      continue;
    }
    std::string hint;
    if (const auto near = NearestNames(entry.key, known_, 1); !near.empty())
      hint = absl::StrCat("; nearest: '", near[0], "'");
    errors_.Add(
        entry.key_node.Mark(), PathOf(entry.key),
        absl::StrCat("unknown key", hint, "; expected one of ", absl::StrJoin(known_, ", ")));
  }
}

}  // namespace floe
