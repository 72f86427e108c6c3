// Numbers by std::to_chars into a small buffer, and from there to the end of the text.
#include "server/api/rest/json_text.h"

#include <simdjson.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/api/rest/json_number.h"

namespace floe::server {
namespace {

constexpr size_t kMostNumberBytes = 32;

char* Put(std::string_view text, char* at) {
  std::memcpy(at, text.data(), text.size());
  return at + text.size();
}

// Writes the number to `at`, which has kMostNumberBytes; returns its end.
template <typename T>
char* PutNumber(T value, char* at) {
  if constexpr (std::is_same_v<T, bool>) {
    return Put(value ? "true" : "false", at);
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_chars(at, at + kMostNumberBytes, value).ptr;
  } else if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(value)) return Put("NaN", at);
    if (std::isinf(value)) return Put(value > 0 ? "Infinity" : "-Infinity", at);
    char* const end = std::to_chars(at, at + kMostNumberBytes, value).ptr;
    for (const char* c = at; c != end; ++c)
      if (*c == '.' || *c == 'e') return end;
    return Put(".0", end);
  } else {
    return PutNumber(static_cast<float>(value), at);
  }
}

// The part of a tensor that is still to be written, as lists in lists.
class TensorText {
 public:
  TensorText(const TensorView& view, int64_t first, bool base64, std::string* out)
      : view_(view), at_(first), base64_(base64), out_(*out) {}

  void Write(int axis) {
    if (axis == view_.shape.rank()) return WriteValues(1);
    const int64_t size = view_.shape.dim(axis);
    out_.push_back('[');
    if (axis + 1 == view_.shape.rank()) {
      WriteValues(size);
    } else {
      for (int64_t i = 0; i < size; ++i) {
        if (i > 0) out_.push_back(',');
        Write(axis + 1);
      }
    }
    out_.push_back(']');
  }

 private:
  void WriteValues(int64_t count) {
    if (view_.dtype == DType::kString) {
      for (int64_t i = 0; i < count; ++i) {
        if (i > 0) out_.push_back(',');
        WriteString(view_.as<std::string>()[at_ + i]);
      }
    } else {
      VisitNumbers(view_.dtype, [&]<typename T>(T) { WriteNumbers<T>(count); });
    }
    at_ += count;
  }

  template <typename T>
  void WriteNumbers(int64_t count) {
    const char* from = view_.as<char>() + static_cast<size_t>(at_) * sizeof(T);
    char text[kMostNumberBytes + 1];
    for (int64_t i = 0; i < count; ++i, from += sizeof(T)) {
      T value;
      std::memcpy(&value, from, sizeof value);
      text[0] = ',';
      const char* const end = PutNumber(value, text + 1);
      const char* const begin = i == 0 ? text + 1 : text;
      out_.append(begin, static_cast<size_t>(end - begin));
    }
  }

  void WriteString(const std::string& text) {
    if (!base64_ && simdjson::validate_utf8(text.data(), text.size()))
      return AppendJsonString(text, &out_);
    absl::StrAppend(&out_, R"({"b64":")", absl::Base64Escape(text), R"("})");
  }

  const TensorView& view_;
  int64_t at_;
  const bool base64_;
  std::string& out_;
};

}  // namespace

void AppendJsonString(std::string_view text, std::string* out) {
  out->push_back('"');
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (c == '\n') {
      *out += "\\n";
    } else if (c >= 0 && c < 0x20) {
      absl::StrAppend(out, "\\u", absl::Hex(static_cast<int>(c), absl::kZeroPad4));
    } else {
      out->push_back(c);
    }
  }
  out->push_back('"');
}

bool HasJson(DType dtype) {
  return dtype == DType::kString || VisitNumbers(dtype, [](auto) {});
}

void AppendJsonTensor(const TensorView& view, int axis, int64_t first, bool base64,
                      std::string* out) {
  TensorText(view, first, base64, out).Write(axis);
}

int64_t JsonBytes(const TensorView& view) {
  int64_t each = 24;  // float64 and 64-bit integers
  if (DTypeSize(view.dtype) < 8)
    each = IsInteger(view.dtype) || view.dtype == DType::kBool ? 6 : 14;
  return view.elements() * each;
}

}  // namespace floe::server
