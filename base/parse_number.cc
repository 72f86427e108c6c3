#include "base/parse_number.h"

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <limits>

namespace floe {
namespace {

const char* Skip(const char* at) {
  while (std::isspace(static_cast<unsigned char>(*at)) != 0) ++at;
  return at;
}

// `parse` is one of the strto... functions. Text after a NUL byte is not white space.
template <class T, class F>
bool ParseWhole(const std::string& text, T* value, F parse) {
  const char* begin = Skip(text.c_str());
  char* end = nullptr;
  errno = 0;
  *value = parse(begin, &end);
  return end != begin && Skip(end) == text.c_str() + text.size();
}

}  // namespace

bool ParseNumber(const std::string& text, int64_t* value) {
  static_assert(sizeof(long long) == sizeof(int64_t));
  return ParseWhole(text, value, [](const char* s, char** e) { return std::strtoll(s, e, 10); }) &&
         errno != ERANGE;
}
bool ParseNumber(const std::string& text, int32_t* value) {
  int64_t wide = 0;
  if (!ParseNumber(text, &wide)) return false;
  *value = static_cast<int32_t>(wide);
  return wide >= std::numeric_limits<int32_t>::min() && wide <= std::numeric_limits<int32_t>::max();
}
bool ParseNumber(const std::string& text, uint64_t* value) {
  static_assert(sizeof(unsigned long long) == sizeof(uint64_t));
  const auto parse = [](const char* s, char** e) { return std::strtoull(s, e, 10); };
  return text.find('-') == std::string::npos && ParseWhole(text, value, parse) && errno != ERANGE;
}
bool ParseNumber(const std::string& text, uint32_t* value) {
  uint64_t wide = 0;
  if (!ParseNumber(text, &wide)) return false;
  *value = static_cast<uint32_t>(wide);
  return wide <= std::numeric_limits<uint32_t>::max();
}
bool ParseNumber(const std::string& text, float* value) {
  return ParseWhole(text, value, std::strtof);
}
bool ParseNumber(const std::string& text, double* value) {
  return ParseWhole(text, value, std::strtod);
}

}  // namespace floe
