// Lists of numbers, where the time goes, are read in a loop of their own; messages are made only
// where something is wrong.
#include "server/api/rest/json_tensor.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "server/api/rest/json_number.h"

namespace floe::server {
namespace {

using simdjson::SUCCESS;
using simdjson::ondemand::json_type;

constexpr int64_t kFirstElements = 32;
constexpr int64_t kPayFrom = int64_t{64} << 10;  // smaller sums are not asked for
constexpr char kBase64Key[] = "b64";

// NaN, Infinity and -Infinity, which TensorFlow Serving reads and writes, are no JSON.
bool ReadNonFinite(std::string_view token, double* out) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (token == "NaN")
    *out = std::numeric_limits<double>::quiet_NaN();
  else if (token == "Infinity")
    *out = kInfinity;
  else if (token == "-Infinity")
    *out = -kInfinity;
  else
    return false;
  return true;
}

// Whether rounding the double, which was rounded from decimals, may give another float than
// rounding the decimals: it lies in the middle of two floats, or where floats are spaced wider.
bool RoundsTwice(double value) {
  constexpr uint64_t kBelowFloat = (uint64_t{1} << 29) - 1, kMiddle = uint64_t{1} << 28;
  return (std::bit_cast<uint64_t>(value) & kBelowFloat) == kMiddle ||
         std::abs(value) < std::numeric_limits<float>::min();
}

// False: it is none, or out of range.
template <typename T>
bool ReadNumber(JsonValue value, T* out) {
  if constexpr (std::is_same_v<T, bool>) {
    return value.get_bool().get(*out) == SUCCESS;
  } else if constexpr (std::is_same_v<T, double>) {
    return value.get_double().get(*out) == SUCCESS || ReadNonFinite(JsonToken(value), out);
  } else if constexpr (std::is_same_v<T, float>) {
    return ReadJsonFloat(value, out);
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    return value.get_uint64().get(*out) == SUCCESS;
  } else if constexpr (std::is_integral_v<T>) {
    int64_t number;
    if (value.get_int64().get(number) != SUCCESS || !std::in_range<T>(number)) return false;
    *out = static_cast<T>(number);
    return true;
  } else {
    float number;
    if (!ReadJsonFloat(value, &number)) return false;
    *out = T(number);
    return !std::isinf(static_cast<float>(*out)) || std::isinf(number);
  }
}

std::string Article(DType dtype) {
  const std::string name = DTypeName(dtype);
  return absl::StrCat(name[0] == 'i' || name[0] == 'u' ? "an " : "a ", name);
}

}  // namespace

bool ReadJsonFloat(JsonValue value, float* out) {
  double number;
  if (value.get_double().get(number) != SUCCESS) {
    if (!ReadNonFinite(JsonToken(value), &number)) return false;
    *out = static_cast<float>(number);
    return true;
  }
  *out = static_cast<float>(number);
  if (RoundsTwice(number) && number != 0) {
    const std::string_view token = JsonToken(value);
    // Too small for a float, it stays what it was rounded to.
    (void)std::from_chars(token.data(), token.data() + token.size(), *out);
  }
  return !std::isinf(*out);
}

JsonTensor::JsonTensor(DType dtype, JsonBody* body, InputStorage* storage)
    : dtype_(dtype),
      element_bytes_(dtype == DType::kString ? sizeof(std::string) : DTypeSize(dtype)),
      body_(*body),
      storage_(*storage) {}

absl::Status JsonTensor::ReadRow(JsonValue value, JsonPath* path) {
  FLOE_RETURN_IF_ERROR(ReadValue(value, 1, path));
  ++dims_[0];
  return absl::OkStatus();
}

absl::Status JsonTensor::ReadValue(JsonValue value, size_t depth, JsonPath* path) {
  json_type type = json_type::number;
  if (value.type().get(type) == SUCCESS && type == json_type::array)
    return ReadList(value, depth, path);
  if (rank_ < 0 && dims_.size() == depth) rank_ = static_cast<int>(depth);
  if (rank_ != static_cast<int>(depth)) return Misplaced(value, "a list", *path);
  return ReadOne(value, path);
}

absl::Status JsonTensor::ReadList(JsonValue value, size_t depth, JsonPath* path) {
  if (rank_ >= 0 && static_cast<int>(depth) >= rank_)
    return Misplaced(value, Article(dtype_), *path);
  if (depth >= kMostDims)
    return absl::InvalidArgumentError(
        absl::StrCat(path->Text(), ": lists are nested more than ", kMostDims, " deep"));
  if (depth == dims_.size()) dims_.push_back(kOpen);
  simdjson::ondemand::array array;
  if (const auto error = value.get_array().get(array)) return body_.Malformed(error, path);
  int64_t count = 0;
  path->EnterList();
  if (rank_ == static_cast<int>(depth) + 1 && dtype_ != DType::kString) {
    absl::Status status;
    VisitNumbers(dtype_, [&]<typename T>(T) { status = ReadNumbers<T>(array, path, &count); });
    FLOE_RETURN_IF_ERROR(status);
  } else {
    for (auto item : array) {
      JsonValue one;
      if (const auto error = item.get(one)) return body_.Malformed(error, path);
      path->SetIndex(count);
      FLOE_RETURN_IF_ERROR(ReadValue(one, depth + 1, path));
      ++count;
    }
  }
  path->Leave();
  return CloseDim(depth, count, *path);
}

template <typename T>
absl::Status JsonTensor::ReadNumbers(simdjson::ondemand::array array, JsonPath* path,
                                     int64_t* count) {
  const int64_t before = size_;
  for (auto item : array) {
    JsonValue one;
    path->SetIndex(size_ - before);
    if (const auto error = item.get(one)) return body_.Malformed(error, path);
    if (size_ == capacity_) FLOE_RETURN_IF_ERROR(Grow());
    if (!ReadNumber(one, reinterpret_cast<T*>(numbers_.get()) + size_))
      return WrongNumber(one, *path);
    ++size_;
  }
  *count = size_ - before;
  return absl::OkStatus();
}

absl::Status JsonTensor::ReadOne(JsonValue value, JsonPath* path) {
  if (size_ == capacity_) FLOE_RETURN_IF_ERROR(Grow());
  if (dtype_ == DType::kString) {
    FLOE_RETURN_IF_ERROR(ReadString(value, path));
  } else {
    bool read = false;
    VisitNumbers(dtype_, [&]<typename T>(T) {
      read = ReadNumber(value, reinterpret_cast<T*>(numbers_.get()) + size_);
    });
    if (!read) return WrongNumber(value, *path);
  }
  ++size_;
  return absl::OkStatus();
}

absl::Status JsonTensor::ReadString(JsonValue value, JsonPath* path) {
  std::string& out = strings_[static_cast<size_t>(size_)];
  json_type type = json_type::number;
  if (value.type().get(type) != SUCCESS) type = json_type::number;
  if (type == json_type::object) {
    FLOE_RETURN_IF_ERROR(ReadBase64(value, &body_, path, &out));
  } else if (type == json_type::string) {
    std::string_view text;
    if (const auto error = value.get_string().get(text)) return body_.Malformed(error, path);
    FLOE_RETURN_IF_ERROR(Charge(static_cast<int64_t>(text.size())));
    out = std::string(text);
    return absl::OkStatus();
  } else {
    return Misplaced(value, Article(dtype_), *path);
  }
  return Charge(static_cast<int64_t>(out.size()));
}

absl::Status JsonTensor::ReadBase64(JsonValue value, JsonBody* body, JsonPath* path,
                                    std::string* out) {
  simdjson::ondemand::object object;
  if (const auto error = value.get_object().get(object)) return body->Malformed(error, path);
  int fields = 0;
  for (auto item : object) {
    simdjson::ondemand::field field;
    std::string_view key, text;
    if (const auto error = std::move(item).get(field)) return body->Malformed(error, path);
    if (const auto error = field.unescaped_key().get(key)) return body->Malformed(error, path);
    if (++fields > 1 || key != kBase64Key || field.value().get_string().get(text) != SUCCESS)
      return absl::InvalidArgumentError(
          absl::StrCat(path->Text(), ": an object where a string belongs; bytes are sent as ",
                       R"({"b64": "base64 of them"})"));
    FLOE_RETURN_IF_ERROR(FromBase64(text, *path, out));
  }
  if (fields == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path->Text(), ": an empty object where a string belongs"));
}

absl::Status JsonTensor::FromBase64(std::string_view text, const JsonPath& path, std::string* out) {
  if (absl::Base64Unescape({text.data(), text.size()}, out)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path.Text(), ": b64 holds no base64"));
}

absl::Status JsonTensor::CloseDim(size_t depth, int64_t count, const JsonPath& path) {
  if (dims_[depth] == kOpen) dims_[depth] = count;
#ifdef FLOE_FUZZ_PLANTED_BUG  // a check left out, for scripts/fuzz --self-test
  return absl::OkStatus();
#endif
  if (dims_[depth] == count) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path.Text(), ": a list of ", count,
                                                 " where those before have ", dims_[depth],
                                                 "; lists of one depth are of one length"));
}

absl::Status JsonTensor::Charge(int64_t bytes) {
  FLOE_RETURN_IF_ERROR(storage_.Charge(bytes));
  charged_ += bytes;
  unpaid_ += bytes;
  if (unpaid_ < kPayFrom) return absl::OkStatus();
  return storage_.Pay(std::exchange(unpaid_, 0));
}

absl::Status JsonTensor::Grow() {
  const int64_t more = std::max(kFirstElements, capacity_);
  FLOE_RETURN_IF_ERROR(Charge(more * static_cast<int64_t>(element_bytes_)));
  const auto capacity = static_cast<size_t>(capacity_ + more), size = static_cast<size_t>(size_);
  if (dtype_ == DType::kString) {
    std::unique_ptr<std::string[]> grown(new std::string[capacity]);
    std::move(strings_.get(), strings_.get() + size, grown.get());
    strings_ = std::move(grown);
  } else {
    std::unique_ptr<std::byte[]> grown(new std::byte[capacity * element_bytes_]);
    if (size > 0) std::memcpy(grown.get(), numbers_.get(), size * element_bytes_);
    numbers_ = std::move(grown);
  }
  capacity_ += more;
  return absl::OkStatus();
}

void JsonTensor::Finish(const SymShape& taken, TensorView* view) {
  if (rank_ < 0 && taken.rank_known()) {
    for (int axis = static_cast<int>(dims_.size()); axis < taken.rank(); ++axis)
      dims_.push_back(taken.dim(axis).concrete() ? taken.dim(axis).size() : 0);
  }
  if (capacity_ == 0) numbers_.reset(new std::byte[1]);  // data of no elements is not null
  *view = {dtype_, Shape(dims_), strings_ ? static_cast<void*>(strings_.get()) : numbers_.get()};
  if (strings_) storage_.Keep(std::move(strings_));
  if (numbers_) storage_.Keep(std::move(numbers_));
}

absl::Status JsonTensor::Misplaced(JsonValue value, const std::string& belongs,
                                   const JsonPath& path) {
  return absl::InvalidArgumentError(
      absl::StrCat(path.Text(), ": ", DescribeJson(value), " where ", belongs, " belongs"));
}

absl::Status JsonTensor::WrongNumber(JsonValue value, const JsonPath& path) const {
  double number = 0;
  const std::string_view token = JsonToken(value);
  const bool is_number = value.get_double().get(number) == SUCCESS;
  const bool whole = token.find_first_of(".eE") == std::string_view::npos;
  if (is_number && dtype_ != DType::kBool && (whole || !IsInteger(dtype_)))
    return absl::InvalidArgumentError(absl::StrCat(path.Text(), ": ", Escaped(token),
                                                   " is out of the range of ", DTypeName(dtype_)));
  const bool float_for_integer = is_number && IsInteger(dtype_);
  return absl::InvalidArgumentError(absl::StrCat(
      path.Text(), ": ", DescribeJson(value), " where ", Article(dtype_), " belongs",
      float_for_integer ? "; write whole numbers without a point or an exponent" : ""));
}

}  // namespace floe::server
