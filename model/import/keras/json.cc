#include "model/import/keras/json.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/import/keras/read_log.h"

namespace floe::keras {
namespace {

constexpr int kMaxJsonDepth = 200;
constexpr size_t kMaxText = size_t{256} << 20;
constexpr int64_t kMostMemory = int64_t{512} << 20;
// Memory is asked for in steps of this.
constexpr int64_t kStep = int64_t{1} << 20;

const Json kNull;

// Python writes numbers that are not finite as NaN, Infinity and -Infinity, which JSON lacks. They
// reach the parser as strings that begin with this.
constexpr char kMark = '\x01';

double NotFinite(const std::string& name) {
  if (name == "NaN") return std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  return name[0] == '-' ? -infinity : infinity;
}

// The text with such numbers as marked strings; "" where it has none.
std::string Marked(std::string_view text) {
  std::string marked;
  size_t copied = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      in_string = !in_string;
    } else if (!in_string && (text[i] == 'N' || text[i] == 'I' || text[i] == '-')) {
      for (const std::string_view name : {"NaN", "Infinity", "-Infinity"}) {
        if (text.substr(i, name.size()) != name) continue;
        marked.append(text.substr(copied, i - copied)).append("\"\\u0001").append(name);
        marked += '"';
        copied = i + name.size();
        i = copied - 1;
        break;
      }
    }
  }
  return copied == 0 ? marked : marked.append(text.substr(copied));
}

// Makes the values of a text as the parser meets them, each after memory was taken for it. The
// names are those that the parser of nlohmann::json calls.
class Maker {
 public:
  explicit Maker(MemoryShare* share) : share_(share) {}

  const absl::Status& status() const { return status_; }
  Json& root() { return root_; }

  bool null() { return Add(Json(), 0); }
  bool boolean(bool value) { return Add(value, 0); }
  bool number_integer(int64_t value) { return Add(value, 0); }
  bool number_unsigned(uint64_t value) { return Add(value, 0); }
  bool number_float(double value, const std::string&) { return Add(value, 0); }
  bool string(std::string& value) {  // NOLINT: the parser's own buffer, which may be taken
    if (!value.empty() && value[0] == kMark) return Add(NotFinite(value.substr(1)), 0);
    const int64_t bytes = OfString(value);
    return Add(std::move(value), bytes);
  }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(size_t) { return Open(Json::object()); }
  bool start_array(size_t) { return Open(Json::array()); }
  bool end_object() { return Close(); }
  bool end_array() { return Close(); }
  bool key(std::string& name) {  // NOLINT
    constexpr int64_t kEntry = 64;
    if (!Take(kEntry + OfString(name))) return false;
    key_ = std::move(name);
    return true;
  }
  bool parse_error(size_t, const std::string&, const Json::exception&) { return false; }

 private:
  static int64_t OfString(const std::string& text) {
    return 48 + (text.size() > 15 ? static_cast<int64_t>(text.size()) + 17 : 0);
  }

  bool Take(int64_t bytes) {
    taken_ += bytes;
    if (taken_ <= granted_) return true;
    if (taken_ > kMostMemory) {
      status_ = absl::ResourceExhaustedError(
          absl::StrCat("the values of a configuration take more than ", kMostMemory >> 20, " MiB"));
      return false;
    }
    const int64_t wanted = (taken_ + kStep - 1) / kStep * kStep;
    if (granted_ == 0) {
      absl::StatusOr<MemoryShare> share = TakeMemory(wanted);
      status_ = share.status();
      if (share.ok()) *share_ = *std::move(share);
    } else {
      status_ = share_->Resize(wanted);
    }
    granted_ = wanted;
    return status_.ok();
  }

  Json* Place(Json value, int64_t bytes) {
    constexpr int64_t kValue = 2 * sizeof(Json);  // lists grow by doubling
    if (!Take(kValue + bytes)) return nullptr;
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& into = *open_.back();
    if (into.is_object()) return &(into[key_] = std::move(value));
    into.push_back(std::move(value));
    return &into.back();
  }
  bool Add(Json value, int64_t bytes) { return Place(std::move(value), bytes) != nullptr; }

  bool Open(Json empty) {
    constexpr int64_t kContainer = 64;
    if (open_.size() >= kMaxJsonDepth) {
      status_ = absl::InvalidArgumentError(
          absl::StrCat("the configuration nests deeper than ", kMaxJsonDepth));
      return false;
    }
    Json* const made = Place(std::move(empty), kContainer);
    if (made != nullptr) open_.push_back(made);
    return made != nullptr;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  MemoryShare* const share_;
  int64_t taken_ = 0, granted_ = 0;
  absl::Status status_;
  Json root_;
  std::vector<Json*> open_;  // the list or object that values go to is the last; none moves
                             // while something in it is open
  std::string key_;
};

// A double past the range of float has no meaning as one.
float ToFloat(double value) {
  constexpr double kMost = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(value, -kMost, kMost));
}

}  // namespace

absl::StatusOr<Json> ParseJson(std::string_view text, MemoryShare* share) {
  if (text.size() > kMaxText)
    return absl::InvalidArgumentError(
        absl::StrCat("a configuration of ", text.size(), " bytes is past the limit of ", kMaxText));
  MemoryShare own;
  Maker maker(share == nullptr ? &own : share);
  const std::string marked = Marked(text);
  const bool parsed = Json::sax_parse(marked.empty() ? text : std::string_view(marked), &maker);
  FLOE_RETURN_IF_ERROR(maker.status());
  if (!parsed || !maker.root().is_object())
    return absl::InvalidArgumentError("the configuration is not a JSON object");
  return std::move(maker.root());
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

bool HasOnlyNulls(const Json& json) {
  if (json.is_null()) return true;
  return (json.is_array() || json.is_object()) &&
         std::all_of(json.begin(), json.end(), [](const Json& item) { return HasOnlyNulls(item); });
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
