// A unit is a letter, which is a power, and what follows it, which is the base.
#include "base/byte_size.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

namespace floe {
namespace {

constexpr std::string_view kPowers = "kmgtp";

// The bytes of a unit in lower case, or 0.
int64_t UnitBytes(std::string_view unit) {
  if (unit.empty() || unit == "b") return 1;
  const size_t power = kPowers.find(unit[0]);
  const std::string_view rest = unit.substr(1);
  const bool binary = rest.empty() || rest == "i" || rest == "ib";
  if (power == std::string_view::npos || (!binary && rest != "b")) return 0;
  int64_t bytes = 1;
  for (size_t i = 0; i <= power; ++i) bytes *= binary ? 1024 : 1000;
  return bytes;
}

}  // namespace

bool ParseByteSize(const std::string& text, int64_t* bytes) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const size_t unit = std::min(text.find_first_not_of(' ', digits), text.size());
  const int64_t one = UnitBytes(absl::AsciiStrToLower(text.substr(unit)));
  const bool parsed = absl::SimpleAtoi(text.substr(0, digits), bytes);
  if (!parsed || one == 0 || (unit > digits && unit == text.size())) return false;
  if (*bytes > kMostByteSize / one) return false;
  *bytes *= one;
  return true;
}

std::string HumanBytes(double bytes) {
  constexpr double kNextUnit = 999.5;  // "1000 KiB" has four digits
  size_t power = 0;
  while (bytes >= kNextUnit && power < kPowers.size()) {
    bytes /= 1024;
    ++power;
  }
  const bool whole = power == 0 && bytes == static_cast<double>(static_cast<int64_t>(bytes));
  const int decimals = whole || bytes >= 99.95 ? 0 : bytes >= 9.995 ? 1 : 2;
  const std::string unit =
      power == 0 ? "B" : std::string(1, absl::ascii_toupper(kPowers[power - 1])) + "iB";
  return absl::StrFormat("%.*f %s", decimals, bytes, unit);
}

}  // namespace floe
