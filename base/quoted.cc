#include "base/quoted.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace floe {
namespace {

bool IsContinuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

// The bytes of the character of UTF-8 that begins the text, or 0 (RFC 3629).
size_t CharacterAt(std::string_view text) {
  const auto at = [text](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : static_cast<unsigned char>(0);
  };
  const unsigned char first = at(0), second = at(1);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4 || !IsContinuation(second)) return 0;
  if (first < 0xE0) return 2;
  if (!IsContinuation(at(2))) return 0;
  if (first < 0xF0)  // neither too long a form nor half of a pair
    return (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ? 0 : 3;
  if (!IsContinuation(at(3)) || (first == 0xF0 && second < 0x90) ||
      (first == 0xF4 && second > 0x8F))
    return 0;
  return 4;
}

// Of a character of two or three bytes in UTF-8.
unsigned CodePoint(std::string_view part) {
  const auto bits = [part](size_t i, unsigned mask) {
    return static_cast<unsigned char>(part[i]) & mask;
  };
  return part.size() == 2 ? bits(0, 0x1F) << 6 | bits(1, 0x3F)
                          : bits(0, 0x0F) << 12 | bits(1, 0x3F) << 6 | bits(2, 0x3F);
}

// Controls of 8 bits, marks that turn the direction of what follows, separators of lines.
bool IsHiddenMark(unsigned code) {
  return (code >= 0x80 && code < 0xA0) || code == 0x61C || code == 0x200E || code == 0x200F ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

// What stands for a character, or for a byte that is none (`size` 0); "": it stands for itself.
std::string EscapeOf(std::string_view part, size_t size) {
  const auto first = static_cast<unsigned char>(part[0]);
  if (size == 0 || first < 0x20) return first == '\n' ? "" : absl::CHexEscape(std::string(part));
  // In the form of JSON, where these may stand as they are.
  if (first == 0x7F) return "\\u007f";
  if ((size == 2 || size == 3) && IsHiddenMark(CodePoint(part)))
    return absl::StrFormat("\\u%04x", CodePoint(part));
  return "";
}

}  // namespace

std::string Printable(std::string_view text, size_t most) {
  std::string out;
  while (!text.empty()) {
    const size_t size = CharacterAt(text);
    const size_t taken = size == 0 ? 1 : size;
    const std::string_view part = text.substr(0, taken);
    const std::string escape = EscapeOf(part, size);
    const std::string_view shown = escape.empty() ? part : escape;
    if (out.size() + shown.size() > most) return out + "...";
    out += shown;
    text.remove_prefix(taken);
  }
  return out;
}

std::string Escaped(std::string_view name) {
  const std::string shown(name.substr(0, kMostQuotedBytes));
  return absl::StrCat(absl::StrReplaceAll(absl::CHexEscape(shown),
                                          {{"\\\\", "\\\\"}, {"\\'", "'"}, {"\\\"", "\""}}),
                      name.size() > kMostQuotedBytes ? "..." : "");
}

std::string Quoted(std::string_view name) {
  const std::string shown(name.substr(0, kMostQuotedBytes));
  return absl::StrCat("'", absl::CHexEscape(shown), name.size() > kMostQuotedBytes ? "...'" : "'");
}

}  // namespace floe
