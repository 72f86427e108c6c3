// One parser for each thread serves small bodies: its memory stays.
#include "server/api/rest/json_body.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"

namespace floe::server {
namespace {

using simdjson::SUCCESS;
using simdjson::ondemand::json_type;

constexpr size_t kSmallBody = size_t{64} << 10;
// Of a parser, for each byte of the body: where values begin, and strings without escapes.
constexpr int64_t kParserBytes = 6;

bool IsNonFinite(std::string_view token) {
  return token == "NaN" || token == "Infinity" || token == "-Infinity";
}

}  // namespace

std::string JsonPath::Text() const {
  std::string text;
  for (const Step& step : steps_) {
    if (step.name.data() == nullptr)
      absl::StrAppend(&text, "[", step.index, "]");
    else
      absl::StrAppend(&text, text.empty() ? "" : ".", Escaped(step.name));
  }
  return text;
}

absl::Status JsonBody::Open(std::string_view bytes, const MemoryBudget* memory) {
  thread_local simdjson::ondemand::parser small;
  simdjson::ondemand::parser* parser = &small;
  bytes_ = bytes;
  if (bytes.size() > kSmallBody) {
    if (memory != nullptr) {
      FLOE_ASSIGN_OR_RETURN(paid_, memory->Take(kParserBytes * static_cast<int64_t>(bytes.size())));
    }
    own_ = std::make_unique<simdjson::ondemand::parser>();
    parser = own_.get();
  }
  const simdjson::padded_string_view padded(bytes.data(), bytes.size(),
                                            bytes.size() + kJsonPadding);
  if (const auto error = parser->iterate(padded).get(document_)) return Malformed(error);
  is_open_ = true;
  return absl::OkStatus();
}

absl::Status JsonBody::Fields(simdjson::ondemand::object* object) {
  document_.rewind();
  const auto error = document_.get_object().get(*object);
  if (error == simdjson::INCORRECT_TYPE)
    return absl::InvalidArgumentError("the body is no JSON object: it begins with no {");
  return error == SUCCESS ? absl::OkStatus() : Malformed(error);
}

absl::Status JsonBody::CheckEnd() {
  const char* at = nullptr;
  if (document_.current_location().get(at) == simdjson::OUT_OF_BOUNDS) return absl::OkStatus();
  return absl::InvalidArgumentError("JSON Parse error: something follows the body's object");
}

absl::Status JsonBody::Malformed(simdjson::error_code error, const JsonPath* path) {
  const std::string where = path == nullptr ? "" : absl::StrCat(", at or behind ", path->Text());
  const char* at = nullptr;
  std::string offset;
  if (is_open_ && document_.current_location().get(at) == SUCCESS && at >= bytes_.data() &&
      at <= bytes_.data() + bytes_.size())
    offset = absl::StrCat(" near byte ", at - bytes_.data());
  const std::string what = error == simdjson::EMPTY        ? "the body is empty"
                           : error == simdjson::UTF8_ERROR ? "the body is no UTF-8"
                                                           : "the body is no JSON";
  return absl::InvalidArgumentError(absl::StrCat("JSON Parse error: ", what, offset, where));
}

absl::Status JsonBody::SkipFields(JsonValue value, int depth, JsonPath* path) {
  simdjson::ondemand::object object;
  if (const auto error = value.get_object().get(object)) return Malformed(error, path);
  for (auto item : object) {
    simdjson::ondemand::field field;
    std::string_view key;
    if (const auto error = std::move(item).get(field)) return Malformed(error, path);
    if (const auto error = field.unescaped_key().get(key)) return Malformed(error, path);
    FLOE_RETURN_IF_ERROR(Skip(field.value(), depth + 1, path));
  }
  return absl::OkStatus();
}

absl::Status JsonBody::Skip(JsonValue value, int depth, JsonPath* path) {
  if (depth >= kMostDepth)
    return absl::InvalidArgumentError(absl::StrCat(
        path->Text(), ": lists and objects are nested more than ", kMostDepth, " deep"));
  json_type type = json_type::number;
  simdjson::error_code error = SUCCESS;
  if (value.type().get(type) != SUCCESS) type = json_type::number;  // NaN
  if (type == json_type::object) return SkipFields(value, depth, path);
  if (type == json_type::array) {
    simdjson::ondemand::array array;
    if ((error = value.get_array().get(array)) != SUCCESS) return Malformed(error, path);
    for (auto item : array) {
      JsonValue one;
      if ((error = item.get(one)) != SUCCESS) return Malformed(error, path);
      FLOE_RETURN_IF_ERROR(Skip(one, depth + 1, path));
    }
    return absl::OkStatus();
  }
  if (type == json_type::string) {
    error = value.get_string().error();
  } else if (type == json_type::boolean) {
    error = value.get_bool().error();
  } else if (type == json_type::null) {
    bool is_null = false;
    error = value.is_null().get(is_null);
    if (!is_null) error = simdjson::N_ATOM_ERROR;
  } else if (!IsNonFinite(JsonToken(value))) {
    error = value.get_double().error();
  }
  return error == SUCCESS ? absl::OkStatus() : Malformed(error, path);
}

absl::Status ReadJsonName(const char* name, JsonValue value, std::string* out) {
  std::string_view text;
  if (value.get_string().get(text) == SUCCESS) return *out = std::string(text), absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": ", DescribeJson(value), " where a string belongs"));
}

absl::Status OnceInJson(const char* name, bool* seen) {
  if (!std::exchange(*seen, true)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the body has '", name, "' twice"));
}

std::string_view JsonToken(JsonValue value) {
  const std::string_view raw = value.raw_json_token();
  return raw.substr(0, raw.find_last_not_of(" \t\r\n") + 1);
}

std::string DescribeJson(JsonValue value) {
  json_type type = json_type::null;
  const bool known = value.type().get(type) == SUCCESS;
  const std::string_view token = JsonToken(value);
  if (!known) return absl::StrCat("the token ", Quoted(token));
  switch (type) {
    case json_type::array:
      return "a list";
    case json_type::object:
      return "an object";
    case json_type::string:
      return absl::StrCat("the string ",
                          Quoted(token.substr(1, token.size() < 2 ? 0 : token.size() - 2)));
    case json_type::number:
      return absl::StrCat("the number ", Escaped(token));
    default:
      return Escaped(token);
  }
}

}  // namespace floe::server
