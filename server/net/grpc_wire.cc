// As in gRPC's "PROTOCOL-HTTP2.md".
#include "server/net/grpc_wire.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "server/api/gunzip.h"
#include "server/net/http_words.h"

namespace floe::server {

namespace {

// False: it does not end in `bytes`.
bool ReadVarint(std::string_view bytes, size_t* at, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && *at < bytes.size(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes[(*at)++]);
    *value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

}  // namespace

size_t PayloadOffset(std::string_view first, size_t whole) {
  constexpr int kMostFields = 64;
  enum : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  size_t payload = 0, at = 0;
  for (int n = 0; n < kMostFields; ++n) {
    uint64_t tag, size;
    if (!ReadVarint(first, &at, &tag) || tag >> 3 == 0) break;
    const uint64_t type = tag & 7;
    if (type == kFixed64 || type == kFixed32) {
      at += type == kFixed64 ? 8 : 4;
      continue;
    }
    if ((type != kVarint && type != kBytes) || !ReadVarint(first, &at, &size)) break;
    if (type == kVarint) continue;
    if (size > whole - std::min(at, whole)) break;
    if (size > whole / 2)
      payload = at;  // what comes next is in it
    else
      at += size;
  }
  return payload;
}

std::optional<Duration> ParseTimeout(std::string_view text) {
  constexpr size_t kMostDigits = 8;
  constexpr int64_t kCenturyHours = int64_t{100} * 366 * 24;
  if (text.size() < 2 || text.size() > kMostDigits + 1) return std::nullopt;
  int64_t value = 0;
  for (const char c : text.substr(0, text.size() - 1)) {
    if (c < '0' || c > '9') return std::nullopt;
    value = 10 * value + (c - '0');
  }
  switch (text.back()) {
    case 'n':
      return std::chrono::nanoseconds(value);
    case 'u':
      return std::chrono::microseconds(value);
    case 'm':
      return std::chrono::milliseconds(value);
    case 'S':
      return std::chrono::seconds(value);
    case 'M':
      return std::chrono::minutes(value);
    case 'H':
      return value > kCenturyHours ? Duration::max() : std::chrono::hours(value);
    default:
      return std::nullopt;
  }
}

std::string PercentEncoded(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c >= ' ' && c <= '~' && c != '%') {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out;
}

std::string Base64(std::string_view bytes) {
  std::string text = absl::Base64Escape({bytes.data(), bytes.size()});
  while (text.ends_with('=')) text.pop_back();
  return text;
}

std::optional<std::string> FromBase64(std::string_view text) {
  std::string bytes;
  if (!absl::Base64Unescape({text.data(), text.size()}, &bytes)) return std::nullopt;
  return bytes;
}

Packing PackingOf(std::string_view name) {
  if (name.empty() || name == "identity") return Packing::kNone;
  if (name == "gzip") return Packing::kGzip;
  return name == "deflate" ? Packing::kDeflate : Packing::kUnknown;
}

std::string_view NameOf(Packing packing) {
  return packing == Packing::kGzip ? "gzip" : packing == Packing::kDeflate ? "deflate" : "identity";
}

bool Accepts(std::string_view list, Packing packing) { return ListHas(list, NameOf(packing)); }

std::string Pack(std::string_view message, Packing packing) {
  return Deflated(message, packing == Packing::kGzip);
}

}  // namespace floe::server
