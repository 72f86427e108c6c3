// JSON of Keras' configurations, read without exceptions and within limits.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/memory_budget.h"
#include "model/dtype.h"

namespace floe::keras {

using Json = nlohmann::json;

// INVALID_ARGUMENT for text that is no JSON object, nests deeper than 200 or is past 256 MiB;
// RESOURCE_EXHAUSTED, before the values are made, where they take more than 512 MiB or the thread's
// memory budget has no room for them. `share` holds what they take, null: nothing holds it.
absl::StatusOr<Json> ParseJson(std::string_view text, MemoryShare* share = nullptr);

// The member `name` of an object; null (a JSON null) when there is none.
const Json& Member(const Json& object, const std::string& name);
// The string member `name`, or "".
std::string Text(const Json& object, const std::string& name);
// The items of a list, or of what Keras 3 writes for a tuple; null when it is neither.
const Json* Items(const Json& value);
// Whether it is null, or a list or dict of nulls, as the masks of several inputs are.
bool HasOnlyNulls(const Json& json);
// For a message: the value on one line, cut where it is long.
std::string Shown(const Json& value);
// A whole number that fits, also when it is written as 3.0.
bool ToInt(const Json& value, int64_t* out);

class ReadLog;

// The options of one layer. A value of another type than the one asked for is remembered as an
// error, which status() gives; the default is returned then, so that readers need not check. What
// is read is noted in a log, where there is one.
class Config {
 public:
  explicit Config(const Json& object, ReadLog* log = nullptr) : object_(&object), log_(log) {}

  const Json& At(const std::string& name) const;
  bool Has(const std::string& name) const { return !At(name).is_null(); }

  int64_t Int(const std::string& name, int64_t otherwise);
  double Number(const std::string& name, double otherwise);
  bool Bool(const std::string& name, bool otherwise);
  std::string String(const std::string& name, const std::string& otherwise);
  // A list; a number alone stands for `count` of it (count < 0: for a list of one).
  std::vector<int64_t> Ints(const std::string& name, int count, std::vector<int64_t> otherwise);
  std::vector<float> Floats(const std::string& name);
  // Options that say nothing of the answer, or not as the others stand.
  void Ignore(std::initializer_list<const char*> names) const;

  void Fail(const std::string& message);
  const absl::Status& status() const { return status_; }

 private:
  void Wrong(const std::string& name, const char* expected);

  const Json* object_;
  ReadLog* log_;
  absl::Status status_;
};

}  // namespace floe::keras
