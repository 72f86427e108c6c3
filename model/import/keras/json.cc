#include "model/import/keras/json.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/memory_budget.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/import/keras/read_log.h"

namespace floe::keras {
namespace {

constexpr int kMaxJsonDepth = 200;
constexpr size_t kMaxText = size_t{256} << 20;
// What two bytes of text ("0,") may become, at most.
constexpr int64_t kUnfolded = 24;

const Json kNull;

bool TooDeep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
      continue;
    }
    if (c == '"') in_string = true;
    if ((c == '[' || c == '{') && ++depth > kMaxJsonDepth) return true;
    if (c == ']' || c == '}') --depth;
  }
  return false;
}

// A double past the range of float has no meaning as one.
float ToFloat(double value) {
  constexpr double kMost = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(value, -kMost, kMost));
}

}  // namespace

absl::StatusOr<Json> ParseJson(std::string_view text) {
  if (text.size() > kMaxText)
    return absl::InvalidArgumentError(
        absl::StrCat("a configuration of ", text.size(), " bytes is past the limit of ", kMaxText));
  if (TooDeep(text))
    return absl::InvalidArgumentError(
        absl::StrCat("the configuration nests deeper than ", kMaxJsonDepth));
  FLOE_RETURN_IF_ERROR(CheckMemory(static_cast<int64_t>(text.size()) * kUnfolded));
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return absl::InvalidArgumentError("the configuration is not a JSON object");
  return json;
}

const Json& Member(const Json& object, const std::string& name) {
  if (!object.is_object()) return kNull;
  const auto found = object.find(name);
  return found == object.end() ? kNull : *found;
}

std::string Text(const Json& object, const std::string& name) {
  const Json& value = Member(object, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

const Json* Items(const Json& value) {
  if (value.is_array()) return &value;
  if (Text(value, "class_name") != "__tuple__") return nullptr;
  const Json& items = Member(value, "items");
  return items.is_array() ? &items : nullptr;
}

std::string Shown(const Json& value) {
  return Escaped(value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace));
}

bool ToInt(const Json& value, int64_t* out) {
  constexpr double kMost = 9e15;
  if (value.is_number_integer()) {
    *out = value.get<int64_t>();
    return !value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX;
  }
  if (!value.is_number_float()) return false;
  const double number = value.get<double>();
  if (!(std::abs(number) < kMost) || number != std::floor(number)) return false;
  *out = static_cast<int64_t>(number);
  return true;
}

const Json& Config::At(const std::string& name) const {
  if (log_ != nullptr) log_->Note(*object_, name);
  return Member(*object_, name);
}

void Config::Ignore(std::initializer_list<const char*> names) const {
  for (const char* name : names) At(name);
}

void Config::Fail(const std::string& message) {
  status_.Update(absl::InvalidArgumentError(message));
}

void Config::Wrong(const std::string& name, const char* expected) {
  Fail(absl::StrCat("option ", Quoted(name), " is ", Shown(At(name)), ", expected ", expected));
}

int64_t Config::Int(const std::string& name, int64_t otherwise) {
  if (!Has(name)) return otherwise;
  int64_t value = otherwise;
  if (!ToInt(At(name), &value)) Wrong(name, "a whole number");
  return value;
}

double Config::Number(const std::string& name, double otherwise) {
  if (!Has(name)) return otherwise;
  const Json& value = At(name);
  if (value.is_number()) return value.get<double>();
  Wrong(name, "a number");
  return otherwise;
}

bool Config::Bool(const std::string& name, bool otherwise) {
  if (!Has(name)) return otherwise;
  const Json& value = At(name);
  if (value.is_boolean()) return value.get<bool>();
  int64_t number = 0;
  if (ToInt(value, &number)) return number != 0;
  Wrong(name, "true or false");
  return otherwise;
}

std::string Config::String(const std::string& name, const std::string& otherwise) {
  if (!Has(name)) return otherwise;
  if (At(name).is_string()) return At(name).get<std::string>();
  Wrong(name, "a string");
  return otherwise;
}

std::vector<int64_t> Config::Ints(const std::string& name, int count,
                                  std::vector<int64_t> otherwise) {
  if (!Has(name)) return otherwise;
  int64_t number = 0;
  if (ToInt(At(name), &number)) return std::vector<int64_t>(std::max(count, 1), number);
  const Json* items = Items(At(name));
  std::vector<int64_t> values;
  for (const Json& item : items == nullptr ? kNull : *items) {
    if (!ToInt(item, &number)) items = nullptr;
    values.push_back(number);
  }
  if (items != nullptr && (count < 0 || static_cast<int>(values.size()) == count)) return values;
  Wrong(name, count < 0 ? "whole numbers" : "as many whole numbers as there are dimensions");
  return count < 0 ? otherwise : std::vector<int64_t>(count, 1);
}

std::vector<float> Config::Floats(const std::string& name) {
  std::vector<float> values;
  const Json* items = Items(At(name));
  if (At(name).is_number()) values.push_back(ToFloat(At(name).get<double>()));
  for (const Json& item : items == nullptr ? kNull : *items) {
    if (!item.is_number()) {
      Wrong(name, "numbers");
      return {};
    }
    values.push_back(ToFloat(item.get<double>()));
  }
  return values;
}

}  // namespace floe::keras
