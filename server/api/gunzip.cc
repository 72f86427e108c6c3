// zlib's deflate, and inflate with a bound on the result.
#include "server/api/gunzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace floe::server {
namespace {

constexpr size_t kFirstBytes = size_t{64} << 10;
constexpr int kByHeader = 32 + MAX_WBITS;  // gzip's or zlib's

// Ends what zlib began.
struct Stream : z_stream {
  Stream() : z_stream() {}
  ~Stream() { inflateEnd(this); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
};

}  // namespace

bool IsGzip(std::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

absl::StatusOr<std::string> Gunzip(std::string_view packed, int64_t max_bytes) {
  Stream stream;
  if (inflateInit2(&stream, kByHeader) != Z_OK)
    return absl::ResourceExhaustedError("no memory to unpack the request");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  // One byte more tells a message of the limit from a larger one.
  const size_t most = static_cast<size_t>(max_bytes) + 1;
  std::string out;
  size_t size = 0;
  int result = Z_OK;
  while (result == Z_OK && size < most) {
    out.resize(std::min(most, std::max({2 * size, 3 * packed.size(), kFirstBytes})));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + size);
    stream.avail_out = static_cast<uInt>(std::min<size_t>(out.size() - size, UINT32_MAX));
    const uInt room = stream.avail_out;
    result = inflate(&stream, Z_NO_FLUSH);
    size += room - stream.avail_out;
  }
  if (size == most)
    return absl::ResourceExhaustedError(
        absl::StrCat("the request unpacks to more than the ", max_bytes,
                     " bytes that the server accepts; raise --grpc_max_message_bytes there"));
  if (result != Z_STREAM_END)
    return absl::InvalidArgumentError("the request's compressed data is damaged or cut short");
  out.resize(size);
  return out;
}

std::string Deflated(std::string_view bytes, bool gzip) {
  if (bytes.size() >= std::numeric_limits<uInt>::max()) return "";
  z_stream stream = {};
  const int window = gzip ? 16 + MAX_WBITS : MAX_WBITS;
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return "";
  std::string out(bytes.size(), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const bool fits = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  out.resize(fits ? out.size() - stream.avail_out : 0);
  deflateEnd(&stream);
  return out;
}

}  // namespace floe::server
