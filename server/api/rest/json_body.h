// A JSON body while it is read, front to back, with simdjson.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "base/memory_budget.h"
#include "base/status.h"
#include "server/api/rest/json_text.h"

namespace floe::server {

using JsonValue = simdjson::ondemand::value;

static_assert(kJsonPadding >= simdjson::SIMDJSON_PADDING);

// Where in a body a value stands, for messages: "instances[3].x[1]".
class JsonPath {
 public:
  explicit JsonPath(std::string_view root) { steps_.push_back({root, 0}); }
  void EnterList() { steps_.push_back({{}, 0}); }
  void EnterField(std::string_view name) { steps_.push_back({name, 0}); }
  void SetIndex(int64_t index) { steps_.back().index = index; }
  void Leave() { steps_.pop_back(); }
  std::string Text() const;

 private:
  struct Step {
    std::string_view name;  // null: an index
    int64_t index;
  };
  absl::InlinedVector<Step, 8> steps_;
};

// Threading: one thread at a time, and one body on a thread.
class JsonBody {
 public:
  // Lists and objects within each other, at most.
  static constexpr int kMostDepth = 64;

  // `bytes` stay, with kJsonPadding readable bytes behind them. `memory` pays for what simdjson
  // notes of a large body; null: nobody does. INVALID_ARGUMENT: the body is no object.
  absl::Status Open(std::string_view bytes, const MemoryBudget* memory);
  // The body's fields, from the first one on. Views of strings that were read before are gone.
  absl::Status Fields(simdjson::ondemand::object* object);
  // After all fields: that nothing follows, and nothing was wrong.
  absl::Status CheckEnd();

  // A value that nobody asked for is JSON, too.
  absl::Status Skip(JsonValue value, JsonPath* path) { return Skip(value, 0, path); }

  // INVALID_ARGUMENT, for what is no JSON.
  absl::Status Malformed(simdjson::error_code error, const JsonPath* path = nullptr);

 private:
  absl::Status Skip(JsonValue value, int depth, JsonPath* path);
  absl::Status SkipFields(JsonValue value, int depth, JsonPath* path);

  std::string_view bytes_;
  MemoryShare paid_;
  std::unique_ptr<simdjson::ondemand::parser> own_;  // of a large body
  simdjson::ondemand::document document_;
  bool is_open_ = false;
};

// Calls visit(key, value) for each field. After an error of simdjson's nothing more can be read.
template <typename Visit>
absl::Status ForEachJsonField(simdjson::ondemand::object& fields, JsonBody* body,
                              const JsonPath* path, Visit visit) {
  for (auto item : fields) {
    simdjson::ondemand::field field;
    std::string_view key;
    if (const auto error = std::move(item).get(field)) return body->Malformed(error, path);
    if (const auto error = field.unescaped_key().get(key)) return body->Malformed(error, path);
    FLOE_RETURN_IF_ERROR(visit(key, field.value()));
  }
  return absl::OkStatus();
}

// The string that a body's field `name` is to have.
absl::Status ReadJsonName(const char* name, JsonValue value, std::string* out);
// INVALID_ARGUMENT: the body's field `name` was seen before.
absl::Status OnceInJson(const char* name, bool* seen);

// "the string 'abc'", "the number 1.5", "a list": what is there instead of what was expected.
std::string DescribeJson(JsonValue value);

// The value as it stands there, without the space behind it.
std::string_view JsonToken(JsonValue value);

}  // namespace floe::server
