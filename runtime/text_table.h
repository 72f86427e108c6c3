// Vocabulary files: text with one table entry a line, as TensorFlow's InitializeTableFromTextFile
// reads them.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "model/attrs.h"
#include "model/tables.h"

namespace floe {

// Where a line holds key and value: column n >= 0 counted from 0, or one of these.
struct TextTableFormat {
  static constexpr int64_t kWholeLine = -2;   // strings and integers
  static constexpr int64_t kLineNumber = -1;  // int64, from 0, plus `offset`

  int64_t key_index = kWholeLine, value_index = kLineNumber;
  int64_t vocab_size = -1;       // lines read; -1: all
  int64_t offset = 0;            // also added to int32 columns, as TensorFlow does
  std::string delimiter = "\t";  // one character, not the end of a line

  static TextTableFormat FromAttrs(const Attrs& attrs);
};

// Adds an entry for every line of `text` to `table`. Lines end with "\n" or "\r\n".
// INVALID_ARGUMENT names line and reason: an empty one, one with too few columns or without the
// number it should hold. Also for fewer lines than vocab_size, or none, and for columns that do not
// go with the table's dtypes. Other errors as of TableObject::Insert.
absl::Status FillFromText(const std::string& text, const TextTableFormat& format,
                          TableObject* table);

}  // namespace floe
