// JSON as TensorFlow Serving writes it: strings and tensors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/tensor.h"

namespace floe::server {

// Who reads a JSON body may look at so many bytes behind it.
inline constexpr size_t kJsonPadding = 64;

// In quotes, with escapes. The text is UTF-8.
void AppendJsonString(std::string_view text, std::string* out);

// Whether tensors of this dtype can be written and read as JSON: numbers, bools and strings.
bool HasJson(DType dtype);

// The elements from number `first` on as lists of the dims from `axis` on; a value where there are
// none. Numbers are the shortest that are read back as the same, floats have a point or an
// exponent, and NaN, Infinity and -Infinity are written so, which is not JSON's standard. Strings
// that are no UTF-8 are {"b64": "..."}, and all are where `base64`. Needs HasJson.
void AppendJsonTensor(const TensorView& view, int axis, int64_t first, bool base64,
                      std::string* out);

// About what AppendJsonTensor writes, in bytes; strings are not counted.
int64_t JsonBytes(const TensorView& view);

}  // namespace floe::server
