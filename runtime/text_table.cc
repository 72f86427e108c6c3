#include "runtime/text_table.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/parse_number.h"
#include "base/status.h"

namespace floe {
namespace {

// Key or value of the lines read so far.
class Column {
 public:
  Column(const char* what, DType dtype, int64_t index, const TextTableFormat& format)
      : what_(what), dtype_(dtype), index_(index), format_(format) {}

  absl::Status Check() const {
    const bool integer = dtype_ == DType::kInt32 || dtype_ == DType::kInt64;
    bool fits = integer || dtype_ == DType::kString || dtype_ == DType::kFloat32 ||
                dtype_ == DType::kFloat64;
    if (index_ == TextTableFormat::kLineNumber) fits = dtype_ == DType::kInt64;
    if (index_ == TextTableFormat::kWholeLine) fits = integer || dtype_ == DType::kString;
    if (fits && index_ >= TextTableFormat::kWholeLine) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        what_, "_index ", index_, " for a table whose ", what_, "s are ", DTypeName(dtype_),
        "; -1 is the line's number (int64), -2 the whole line (string or integer), "
        "others are columns of strings or numbers"));
  }

  absl::Status Append(std::string_view line, int64_t number) {
    if (index_ == TextTableFormat::kLineNumber) {
      Push(static_cast<int64_t>(static_cast<uint64_t>(number) +
                                static_cast<uint64_t>(format_.offset)));
      return absl::OkStatus();
    }
    std::string field;
    if (!Field(line, &field)) {
      return absl::InvalidArgumentError(
          absl::StrCat("has too few columns for its ", what_, " in column ", index_));
    }
    if (dtype_ == DType::kString) {
      strings_.push_back(std::move(field));
      return absl::OkStatus();
    }
    if (Parse(field)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("'", field.substr(0, 64), "' is no ", DTypeName(dtype_)));
  }

  TensorView view() {
    const bool string = dtype_ == DType::kString;
    const size_t count = string ? strings_.size() : numbers_.size() / DTypeSize(dtype_);
    void* data = string ? static_cast<void*>(strings_.data()) : numbers_.data();
    return {dtype_, Shape({static_cast<int64_t>(count)}), data};
  }
  void Clear() {
    strings_.clear();
    numbers_.clear();
  }

 private:
  bool Field(std::string_view line, std::string* field) const {
    if (index_ == TextTableFormat::kWholeLine) {
      *field = line;
      return true;
    }
    for (int64_t k = 0; k < index_; ++k) {
      const size_t end = line.find(format_.delimiter[0]);
      if (end == std::string_view::npos) return false;
      line.remove_prefix(end + 1);
    }
    *field = line.substr(0, line.find(format_.delimiter[0]));
    return true;
  }

  template <class T>
  void Push(T value) {
    const char* bytes = reinterpret_cast<const char*>(&value);
    numbers_.insert(numbers_.end(), bytes, bytes + sizeof value);
  }
  template <class T>
  bool ParseAs(const std::string& field, T offset) {
    T value;
    if (!ParseNumber(field, &value)) return false;
    if constexpr (std::is_integral_v<T>) {
      Push(static_cast<T>(static_cast<uint64_t>(value) + static_cast<uint64_t>(offset)));
    } else {
      Push(value);
    }
    return true;
  }
  bool Parse(const std::string& field) {
    if (dtype_ == DType::kInt32) return ParseAs(field, static_cast<int32_t>(format_.offset));
    if (dtype_ == DType::kInt64) return ParseAs(field, int64_t{0});
    if (dtype_ == DType::kFloat32) return ParseAs(field, 0.0f);
    return ParseAs(field, 0.0);
  }

  const char* const what_;
  const DType dtype_;
  const int64_t index_;
  const TextTableFormat& format_;
  std::vector<std::string> strings_;
  std::vector<char> numbers_;
};

// Takes the first line off `rest`.
std::string_view NextLine(std::string_view* rest) {
  const size_t end = rest->find('\n');
  std::string_view line = rest->substr(0, end);
  rest->remove_prefix(end == std::string_view::npos ? rest->size() : end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

}  // namespace

TextTableFormat TextTableFormat::FromAttrs(const Attrs& attrs) {
  TextTableFormat format;
  format.key_index = attrs.Int("key_index", kWholeLine);
  format.value_index = attrs.Int("value_index", kLineNumber);
  format.vocab_size = attrs.Int("vocab_size", -1);
  format.offset = attrs.Int("offset", 0);
  format.delimiter = attrs.String("delimiter", "\t");
  return format;
}

absl::Status FillFromText(const std::string& text, const TextTableFormat& format,
                          TableObject* table) {
  if (format.delimiter.size() != 1 || format.delimiter == "\n") {
    return absl::InvalidArgumentError(
        absl::StrCat("delimiter '", format.delimiter, "' is not one character within a line"));
  }
  if (format.vocab_size < -1 || format.vocab_size == 0)
    return absl::InvalidArgumentError(
        absl::StrCat("vocab_size ", format.vocab_size, ", expected -1 or a number of lines"));
  Column keys("key", table->key_dtype(), format.key_index, format);
  Column values("value", table->value_dtype(), format.value_index, format);
  FLOE_RETURN_IF_ERROR(keys.Check());
  FLOE_RETURN_IF_ERROR(values.Check());
  if (table->value_shape().rank() != 0)
    return absl::InvalidArgumentError("a text file holds single values");

  constexpr int64_t kChunk = 1024;
  std::string_view rest = text;
  int64_t number = 0;
  for (; !rest.empty() && number != format.vocab_size; ++number) {
    const std::string_view line = NextLine(&rest);
    absl::Status read =
        line.empty() ? absl::InvalidArgumentError("is empty") : keys.Append(line, number);
    if (read.ok()) read = values.Append(line, number);
    if (!read.ok()) return Annotate(read, absl::StrCat("line ", number + 1));
    if (number % kChunk == kChunk - 1) {
      FLOE_RETURN_IF_ERROR(table->Insert(keys.view(), values.view()));
      keys.Clear();
      values.Clear();
    }
  }
  if (number == 0) return absl::InvalidArgumentError("the file is empty");
  if (format.vocab_size > number) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", number, " lines, vocab_size is ", format.vocab_size));
  }
  return table->Insert(keys.view(), values.view());
}

}  // namespace floe
