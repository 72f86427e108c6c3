// How the values of keys look in floe.yaml, and as text in flags and messages. For key_table.cc.
//
// A scalar's form has Parse (whether a text is a value; `quoted` as in YAML, where quoted numbers
// are text) and Expected (what would be one). It has Text (the reverse of Parse) and kQuoted (with
// quotes). Other forms have Read and Write. is_set is false for values that are not written.
#pragma once

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/byte_size.h"
#include "base/nearest.h"
#include "config/key_table.h"
#include "config/limits.h"
#include "config/token_file.h"
#include "config/yaml_reader.h"

namespace floe {

struct Whole {
  static constexpr bool kQuoted = false;
  IntRange range;
  bool zero_is_auto = false;

  bool Parse(const std::string& text, bool quoted, int64_t* out) const {
    int64_t value = 0;
    const bool is_auto = zero_is_auto && text == "auto";
    if (!is_auto && (quoted || !absl::SimpleAtoi(text, &value) || !range.Has(value))) return false;
    *out = value;
    return true;
  }
  std::string Expected(const std::string& /*text*/) const {
    if (range.high == std::numeric_limits<int64_t>::max())
      return absl::StrCat("a whole number, at least ", range.low);
    return absl::StrCat("a whole number from ", range.low, " to ", range.high);
  }
  std::string Text(int64_t value) const { return is_auto(value) ? "auto" : absl::StrCat(value); }
  bool is_set(int64_t value) const { return is_auto(value) || range.Has(value); }

 private:
  bool is_auto(int64_t value) const { return zero_is_auto && value == 0; }
};

struct YesNo {
  static constexpr bool kQuoted = false;
  static bool Parse(const std::string& text, bool quoted, bool* out) {
    const bool yes = text == "true" || text == "True" || text == "yes" || text == "on";
    const bool no = text == "false" || text == "False" || text == "no" || text == "off";
    if (quoted || (!yes && !no)) return false;
    *out = yes;
    return true;
  }
  static std::string Expected(const std::string& /*text*/) { return "true or false"; }
  static std::string Text(bool value) { return value ? "true" : "false"; }
};

struct Real {
  static constexpr bool kQuoted = false;
  static bool Parse(const std::string& text, bool quoted, double* out) {
    double value = 0;
    // What is not equal to itself would be a change at every reload.
    if (quoted || !absl::SimpleAtod(text, &value) || std::isnan(value)) return false;
    *out = value;
    return true;
  }
  static std::string Expected(const std::string& /*text*/) { return "a number"; }
  // The shortest text of this number, and never that of a whole one.
  static std::string Text(double value) {
    char text[40];
    std::string shortest(text, std::to_chars(text, text + sizeof(text), value).ptr);
    if (shortest.find_first_not_of("-0123456789") == std::string::npos) shortest += ".0";
    return shortest;
  }
};

struct AnyText {
  static constexpr bool kQuoted = true;
  const char* expected = "text";
  bool (*accepts)(const std::string& text) = nullptr;  // null: every text

  bool Parse(const std::string& text, bool /*quoted*/, std::string* out) const {
    if (accepts != nullptr && !accepts(text)) return false;
    *out = text;
    return true;
  }
  std::string Expected(const std::string& /*text*/) const { return expected; }
  static std::string Text(const std::string& value) { return value; }
};

// As ParseByteSize reads them.
struct Bytes {
  static constexpr bool kQuoted = false;
  IntRange bounds{0, kMostByteSize};

  bool Parse(const std::string& text, bool /*quoted*/, int64_t* out) const {
    int64_t value = 0;
    if (!ParseByteSize(text, &value) || !bounds.Has(value)) return false;
    *out = value;
    return true;
  }
  std::string Expected(const std::string& /*text*/) const {
    return absl::StrCat(
        kByteSizeForms, ", ",
        bounds.low > 0 ? absl::StrCat("from ", bounds.low, " to ") : std::string("up to "),
        bounds.high);
  }
  static std::string Text(int64_t value) { return absl::StrCat(value); }
};

// "90%", or bytes as above.
struct PercentOrBytes {
  static constexpr bool kQuoted = true;
  static bool Parse(const std::string& text, bool quoted, MemoryLimit* out) {
    MemoryLimit limit{0, 0};
    if (!absl::EndsWith(text, "%")
            ? !Bytes().Parse(text, quoted, &limit.bytes)
            : !absl::SimpleAtoi(text.substr(0, text.size() - 1), &limit.percent) ||
                  !IntRange{1, 100}.Has(limit.percent))
      return false;
    *out = limit;
    return true;
  }
  static std::string Expected(const std::string& text) {
    return absl::EndsWith(text, "%") ? "1% to 100%" : Bytes().Expected(text);
  }
  static std::string Text(const MemoryLimit& limit) {
    return limit.percent > 0 ? absl::StrCat(limit.percent, "%") : absl::StrCat(limit.bytes);
  }
};

// One of these names: an enumerator (by its place), perhaps an optional one, or the name itself.
struct OneOf {
  static constexpr bool kQuoted = true;
  std::vector<std::string> names;
  std::map<std::string, std::string> aliases = {};  // what a name may be written as: that name

  bool Parse(const std::string& text, bool /*quoted*/, auto* out) const {
    using T = std::remove_pointer_t<decltype(out)>;
    const auto alias = aliases.find(text);
    const auto found =
        std::find(names.begin(), names.end(), alias == aliases.end() ? text : alias->second);
    if (found == names.end()) return false;
    if constexpr (std::is_same_v<T, std::string>)
      *out = *found;
    else if constexpr (std::is_enum_v<T>)
      *out = static_cast<T>(found - names.begin());
    else
      *out = static_cast<typename T::value_type>(found - names.begin());
    return true;
  }
  std::string Expected(const std::string& /*text*/) const { return "one of " + QuotedList(names); }
  std::string Text(const std::string& value) const { return value; }
  std::string Text(const auto& value) const {
    if constexpr (requires { value.has_value(); })
      return value ? Text(*value) : "";
    else
      return names[static_cast<size_t>(value)];
  }
  bool is_set(const auto& value) const {
    if constexpr (requires { value.has_value(); }) return value.has_value();
    return true;
  }
};

// Reads a node; false: what is wrong with it was noted.
template <typename Form, typename T>
bool ReadValue(const Form& form, YamlReader& r, const std::string& path, const YAML::Node& node,
               T* out) {
  if constexpr (requires { Form::kQuoted; }) {
    if (node.IsScalar() && form.Parse(node.Scalar(), IsQuoted(node), out)) return true;
    return r.FailExpected(node, path, form.Expected(node.Scalar()));
  } else {
    return form.Read(r, path, node, out);
  }
}

template <typename Form, typename T>
void WriteValue(const Form& form, YAML::Emitter& out, const T& value) {
  if constexpr (requires { Form::kQuoted; }) {
    if (Form::kQuoted) out << YAML::DoubleQuoted;
    out << form.Text(value);
  } else {
    form.Write(out, value);
  }
}

// [1, 2]
struct WholeList {
  Whole each;
  IntRange range = each.range;

  bool Read(YamlReader& r, const std::string& path, const YAML::Node& node,
            std::vector<int64_t>* out) const {
    if (!node.IsSequence()) return r.FailExpected(node, path, "a list of numbers");
    out->clear();
    for (size_t i = 0; i < node.size(); ++i) {
      int64_t value = 0;
      if (ReadValue(each, r, absl::StrCat(path, "[", i, "]"), node[i], &value))
        out->push_back(value);
    }
    return true;
  }
  static void Write(YAML::Emitter& out, const std::vector<int64_t>& values) {
    out << YAML::Flow << values;
  }
  static bool is_set(const std::vector<int64_t>& values) { return !values.empty(); }
};

// [a, b], of these names.
struct NameList {
  std::vector<std::string> names;

  bool Read(YamlReader& r, const std::string& path, const YAML::Node& node,
            std::vector<std::string>* out) const {
    if (!node.IsSequence()) return r.FailExpected(node, path, "a list of " + QuotedList(names));
    out->clear();
    for (size_t i = 0; i < node.size(); ++i) {
      std::string name;
      if (ReadValue(OneOf{names}, r, absl::StrCat(path, "[", i, "]"), node[i], &name))
        out->push_back(name);
    }
    return true;
  }
  static void Write(YAML::Emitter& out, const std::vector<std::string>& values) {
    out << YAML::Flow << values;
  }
  static bool is_set(const std::vector<std::string>& values) { return !values.empty(); }

  // Where an empty list is not the same as none.
  using Optional = std::optional<std::vector<std::string>>;
  bool Read(YamlReader& r, const std::string& path, const YAML::Node& node, Optional* out) const {
    return Read(r, path, node, &out->emplace());
  }
  static void Write(YAML::Emitter& out, const Optional& values) { Write(out, *values); }
  static bool is_set(const Optional& values) { return values.has_value(); }
};

// [{uid: 1000, roles: [admin]}, ...]
struct Principals {
  static bool Read(YamlReader& r, const std::string& path, const YAML::Node& node,
                   std::vector<PrincipalConfig>* out) {
    if (!node.IsSequence())
      return r.FailExpected(node, path, "a list such as [{uid: 1000, roles: [admin]}]");
    out->clear();
    for (size_t i = 0; i < node.size(); ++i)
      ReadOne(r, absl::StrCat(path, "[", i, "]"), node[i], &out->emplace_back());
    return true;
  }
  static void Write(YAML::Emitter& out, const std::vector<PrincipalConfig>& values) {
    out << YAML::Flow << YAML::BeginSeq;
    for (const PrincipalConfig& one : values) {
      out << YAML::Flow << YAML::BeginMap;
      for (const auto& [key, value] : {std::pair("certificate", one.certificate),
                                       std::pair("token", one.token), std::pair("uid", one.uid)})
        if (!value.empty()) out << YAML::Key << key << YAML::Value << YAML::DoubleQuoted << value;
      out << YAML::Key << "roles" << YAML::Value << YAML::Flow << one.roles.Names();
      if (!one.models.empty()) {
        out << YAML::Key << "models" << YAML::Value << YAML::Flow << YAML::BeginSeq;
        for (const std::string& model : one.models) out << YAML::DoubleQuoted << model;
        out << YAML::EndSeq;
      }
      out << YAML::EndMap;
    }
    out << YAML::EndSeq;
  }
  static bool is_set(const std::vector<PrincipalConfig>& values) { return !values.empty(); }

 private:
  static void ReadOne(YamlReader& r, const std::string& path, const YAML::Node& node,
                      PrincipalConfig* out) {
    int names = 0;
    if (!node.IsMap())
      return void(r.FailExpected(node, path, "a mapping such as {uid: 1000, roles: [admin]}"));
    r.Entries(node, path, {"certificate", "token", "uid", "roles", "models"},
              [&](const std::string& key, const std::string& at, const YAML::Node& value) {
                if (key == "roles") return ReadRoles(r, at, value, &out->roles);
                if (key == "models") return ReadModels(r, at, value, &out->models);
                std::string* const name = key == "certificate" ? &out->certificate
                                          : key == "token"     ? &out->token
                                                               : &out->uid;
                ReadValue(AnyText{"a name", [](const std::string& text) { return !text.empty(); }},
                          r, at, value, name);
                ++names;
              });
    if (names != 1) r.Fail(node, path, "expected one of certificate, token and uid");
    if (!node["roles"].IsDefined()) r.Fail(node, path, "expected 'roles: [ROLE, ...]'");
  }
  static void ReadRoles(YamlReader& r, const std::string& path, const YAML::Node& node,
                        Roles* out) {
    std::vector<std::string> names;
    NameList{{std::begin(kRoleNames), std::end(kRoleNames)}}.Read(r, path, node, &names);
    for (const std::string& name : names) out->AddNamed(name);
  }
  static void ReadModels(YamlReader& r, const std::string& path, const YAML::Node& node,
                         std::vector<std::string>* out) {
    const AnyText glob{"a model's name, in which '*' stands for anything",
                       [](const std::string& text) { return IsModelGlob(text); }};
    if (!node.IsSequence() || node.size() == 0)
      return void(r.FailExpected(node, path, "a list of models, such as [mnist_*]"));
    for (size_t i = 0; i < node.size(); ++i)
      ReadValue(glob, r, absl::StrCat(path, "[", i, "]"), node[i], &out->emplace_back());
  }
};

// [a, b], each of a form.
template <typename Form>
struct ListOf {
  Form each;
  const char* expected;  // "a list of sites, such as [https://app.example]"

  bool Read(YamlReader& r, const std::string& path, const YAML::Node& node,
            std::vector<std::string>* out) const {
    if (!node.IsSequence()) return r.FailExpected(node, path, expected);
    out->clear();
    for (size_t i = 0; i < node.size(); ++i)
      ReadValue(each, r, absl::StrCat(path, "[", i, "]"), node[i], &out->emplace_back());
    return true;
  }
  static void Write(YAML::Emitter& out, const std::vector<std::string>& values) {
    out << YAML::Flow << YAML::BeginSeq;
    for (const std::string& value : values) out << YAML::DoubleQuoted << value;
    out << YAML::EndSeq;
  }
  static bool is_set(const std::vector<std::string>& values) { return !values.empty(); }
};

// {NAME: VALUE}, with names that are free.
template <typename Form>
struct MapOf {
  Form each;

  template <typename T>
  bool Read(YamlReader& r, const std::string& path, const YAML::Node& node,
            std::map<std::string, T>* out) const {
    out->clear();
    r.Entries(node, path, {}, [&](const std::string& name, const std::string& at, auto& value) {
      if (std::is_same_v<T, int64_t> && name.empty())
        r.Fail(node, path, "a number has no name; expected NAME: NUMBER");
      else if (T read = {}; ReadValue(each, r, at, value, &read))
        (*out)[name] = std::move(read);
    });
    return true;
  }
  template <typename T>
  void Write(YAML::Emitter& out, const std::map<std::string, T>& values) const {
    out << YAML::Flow << YAML::BeginMap;
    for (const auto& [name, value] : values) {
      out << YAML::Key << YAML::DoubleQuoted << name << YAML::Value;
      WriteValue(each, out, value);
    }
    out << YAML::EndMap;
  }
  static bool is_set(const auto& values) { return !values.empty(); }
};

// `latest`, `all`, `{latest: 2}` or `{specific: [3, 5]}`.
struct Versions {
  using Kind = VersionPolicy::Kind;
  static bool Read(YamlReader& r, const std::string& path, const YAML::Node& node,
                   VersionPolicy* out) {
    *out = {};
    if (node.IsScalar() && node.Scalar() == "all") out->kind = Kind::kAll;
    if (node.IsScalar() && (node.Scalar() == "latest" || node.Scalar() == "all")) return true;
    if (!node.IsMap() || node.size() != 1)
      return r.FailExpected(node, path,
                            "latest, all, {latest: NUMBER} or {specific: [VERSION, ...]}");
    r.Entries(node, path, {"latest", "specific"}, [&](auto& key, auto& at, auto& value) {
      if (key == "latest") return void(ReadValue(Whole{kLatestRange}, r, at, value, &out->latest));
      out->kind = Kind::kSpecific;
      WholeList{{kVersionRange}}.Read(r, at, value, &out->specific);
      SortUnique(&out->specific);
      if (value.IsSequence() && value.size() == 0)
        r.Fail(node, path, "specific names no version; expected specific: [VERSION, ...]");
    });
    return true;
  }
  static void Write(YAML::Emitter& out, const VersionPolicy& policy) {
    if (policy.kind == Kind::kAll) return void(out << "all");
    out << YAML::Flow << YAML::BeginMap << YAML::Key;
    if (policy.kind == Kind::kSpecific)
      out << "specific" << YAML::Value << policy.specific << YAML::EndMap;
    else
      out << "latest" << YAML::Value << policy.latest << YAML::EndMap;
  }
};

// `"0-3,8"`, `2` or `[0, 2]`.
struct CpuSet {
  static bool Read(YamlReader& r, const std::string& path, const YAML::Node& node,
                   std::vector<int>* out) {
    if (node.IsSequence()) {
      std::vector<int64_t> cpus;
      WholeList{{{0, kMaxCpus - 1}}}.Read(r, path, node, &cpus);
      out->assign(cpus.begin(), cpus.end());
      SortUnique(out);
      return true;
    }
    if (!node.IsScalar()) return r.FailExpected(node, path, "CPUs such as \"0-3,8\"");
    auto cpus = ParseCpuSet(node.Scalar());
    if (!cpus.ok()) return r.Fail(node, path, std::string(cpus.status().message()));
    *out = *std::move(cpus);
    return true;
  }
  static void Write(YAML::Emitter& out, const std::vector<int>& cpus) {
    out << YAML::DoubleQuoted << CpuSetText(cpus);
  }
  static bool is_set(const std::vector<int>& cpus) { return !cpus.empty(); }
};

// `false`, or `{value: 3, dtype: int64}`. An unquoted scalar is what it looks like.
struct DefaultValue {
  static auto ScalarOf(const YAML::Node& node) -> decltype(PlaceholderDefault::value) {
    const std::string& text = node.Scalar();
    int64_t integer = 0;
    double real = 0;
    if (IsQuoted(node)) return text;
    if (text == "true" || text == "True") return true;
    if (text == "false" || text == "False") return false;
    if (absl::SimpleAtoi(text, &integer)) return integer;
    if (Real::Parse(text, false, &real)) return real;
    return text;
  }
  static bool Read(YamlReader& r, const std::string& path, const YAML::Node& node,
                   PlaceholderDefault* out) {
    if (node.IsScalar()) return *out = {ScalarOf(node), ""}, true;
    if (!node.IsMap() || !node["value"].IsDefined() || !node["value"].IsScalar())
      return r.FailExpected(node, path,
                            "a value such as false or 0.5, or {value: 3, dtype: int64}");
    r.Entries(node, path, {"value", "dtype"}, [&](auto& key, auto& at, auto& value) {
      if (key == "value")
        out->value = ScalarOf(value);
      else
        ReadValue(AnyText(), r, at, value, &out->dtype);
    });
    return true;
  }
  static void Write(YAML::Emitter& out, const PlaceholderDefault& from) {
    const bool typed = !from.dtype.empty();
    if (typed) out << YAML::Flow << YAML::BeginMap << YAML::Key << "value" << YAML::Value;
    if (const auto* text = std::get_if<std::string>(&from.value))
      out << YAML::DoubleQuoted << *text;
    else if (const auto* real = std::get_if<double>(&from.value))
      out << Real::Text(*real);
    else if (const auto* integer = std::get_if<int64_t>(&from.value))
      out << *integer;
    else
      out << std::get<bool>(from.value);
    if (typed)
      out << YAML::Key << "dtype" << YAML::Value << YAML::DoubleQuoted << from.dtype
          << YAML::EndMap;
  }
};

template <typename S>
template <typename At, typename Form>
Key<S>::Key(const std::string& path_in, At at, Form form, const char* help_in)
    : path(path_in), help(help_in), is_switch(std::is_same_v<Form, YesNo>) {
  const size_t dot = path.find('.');
  section = path.substr(0, dot == std::string::npos ? 0 : dot);
  name = path.substr(dot == std::string::npos ? 0 : dot + 1);
  Init<std::remove_reference_t<decltype(at(std::declval<S&>()))>>(at, std::move(form));
}

template <typename S>
template <typename T, typename Form>
void Key<S>::Init(T& (*at)(S&), Form form) {
  const auto value_of = [at](const S& from) -> const T& { return at(const_cast<S&>(from)); };
  if constexpr (requires { form.range; }) range = form.range;
  if constexpr (requires { form.names; }) choices = form.names;
  read = [=](YamlReader& r, const std::string& at_path, const YAML::Node& node, S* out) {
    ReadValue(form, r, at_path, node, &at(*out));
  };
  write = [=](YAML::Emitter& out, const S& from) { WriteValue(form, out, value_of(from)); };
  is_set = [=](const S& from) {
    if constexpr (requires { form.is_set(value_of(from)); }) return form.is_set(value_of(from));
    return true;
  };
  same = [=](const S& a, const S& b) { return value_of(a) == value_of(b); };
  if constexpr (requires { Form::kQuoted; }) {
    text = [=](const S& from) { return form.Text(value_of(from)); };
    parse = [=](const std::string& value, S* out) {
      if (form.Parse(value, false, &at(*out))) return std::string();
      return absl::StrCat("expected ", form.Expected(value), ", got '", value, "'");
    };
  } else {
    text = [=](const S& from) {
      YAML::Emitter out;
      form.Write(out, value_of(from));
      return std::string(out.c_str());
    };
  }
}

}  // namespace floe
