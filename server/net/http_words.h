// The words of HTTP's fields (RFC 9110, 5.6).
#pragma once

#include <algorithm>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace floe::server {

inline bool IsToken(std::string_view text) {
  static constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || kMarks.find(static_cast<char>(c)) != std::string_view::npos;
  });
}

inline bool IsControl(unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; }

// But for upper and lower case.
inline bool SameText(std::string_view a, std::string_view b) {
  return absl::EqualsIgnoreCase({a.data(), a.size()}, {b.data(), b.size()});
}

// Whether a list such as "a, b" has the word.
inline bool ListHas(std::string_view list, std::string_view word) {
  for (const absl::string_view part :
       absl::StrSplit(absl::string_view(list.data(), list.size()), ','))
    if (absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(part), {word.data(), word.size()}))
      return true;
  return false;
}

}  // namespace floe::server
