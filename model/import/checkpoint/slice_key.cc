#include "model/import/checkpoint/slice_key.h"

#include <bit>

namespace floe {
namespace {

// A byte with the count of what follows, then the number's bytes, the highest first.
void AppendUnsigned(uint64_t number, std::string* key) {
  const int bytes = (std::bit_width(number) + 7) / 8;
  key->push_back(static_cast<char>(bytes));
  for (int i = bytes - 1; i >= 0; --i) key->push_back(static_cast<char>(number >> (8 * i)));
}

// As many leading ones as there are bytes, a zero, and the number; negative ones all inverted.
void AppendSigned(int64_t number, std::string* key) {
  const uint64_t magnitude = number < 0 ? ~static_cast<uint64_t>(number) : number;
  const int bytes = std::bit_width(magnitude) / 7 + 1;  // each adds seven bits
  constexpr int kMost = 10;
  unsigned char text[kMost];
  for (int i = 0; i < kMost; ++i) {
    const int shift = 8 * (bytes - 1 - i);
    text[i] = shift >= 64 ? 0 : static_cast<unsigned char>(magnitude >> (shift < 0 ? 0 : shift));
  }
  for (int bit = 0; bit < bytes; ++bit) text[bit / 8] |= 0x80 >> (bit % 8);
  for (int i = 0; i < bytes; ++i)
    key->push_back(static_cast<char>(number < 0 ? ~text[i] : text[i]));
}

// Zero and 255 are escaped, so that the end stands out.
void AppendString(const std::string& text, std::string* key) {
  for (const char c : text) {
    key->push_back(c);
    if (c == '\0') key->push_back('\xff');
    if (c == '\xff') key->push_back('\0');
  }
  key->push_back('\0');
  key->push_back('\1');
}

}  // namespace

std::string SliceKey(const std::string& tensor, const std::vector<SliceRange>& ranges) {
  std::string key;
  AppendUnsigned(0, &key);
  AppendString(tensor, &key);
  AppendUnsigned(ranges.size(), &key);
  for (const SliceRange& range : ranges) {
    AppendSigned(range.start, &key);
    AppendSigned(range.length, &key);
  }
  return key;
}

}  // namespace floe
