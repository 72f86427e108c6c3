#include "base/quoted.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
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

}  // namespace

std::string Printable(std::string_view text, size_t most) {
  std::string out;
  while (!text.empty()) {
    const size_t size = CharacterAt(text);
    const auto first = static_cast<unsigned char>(text[0]);
    const bool control = first < 0x20 || first == 0x7F ||
                         (size == 2 && first == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0);
    const size_t taken = size == 0 ? 1 : size;
    const std::string part(text.substr(0, taken));
    const bool plain = size > 0 && (!control || first == '\n');
    const std::string shown = plain ? part : absl::CHexEscape(part);
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
