// Numbers from text as TensorFlow reads them, in string tensors and in vocabulary files.
#pragma once

#include <cstdint>
#include <string>

namespace floe {

// The whole text, white space around it ignored, as a number: an optional sign, for floats also
// "inf", "infinity", "nan", exponents and hexadecimal form. Floats past the range become infinite
// or zero; integers past it are an error. False leaves `value` unspecified.
bool ParseNumber(const std::string& text, int32_t* value);
bool ParseNumber(const std::string& text, int64_t* value);
bool ParseNumber(const std::string& text, uint32_t* value);  // no sign "-"
bool ParseNumber(const std::string& text, uint64_t* value);
bool ParseNumber(const std::string& text, float* value);
bool ParseNumber(const std::string& text, double* value);

}  // namespace floe
