#include "server/api/gunzip.h"

#include <gtest/gtest.h>
#include <zlib.h>

namespace floe::server {
namespace {

std::string Gzip(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST(Gunzip, UnpacksUpToItsBound) {
  for (const size_t size : {0, 1, 1000, 1'000'000}) {
    const std::string text(size, 'a'), packed = Gzip(text);
    EXPECT_TRUE(IsGzip(packed));
    const auto unpacked = Gunzip(packed, static_cast<int64_t>(size));
    ASSERT_TRUE(unpacked.ok()) << unpacked.status();
    EXPECT_EQ(*unpacked, text);
    if (size == 0) continue;
    EXPECT_TRUE(absl::IsResourceExhausted(Gunzip(packed, static_cast<int64_t>(size) - 1).status()));
  }
}

TEST(Gunzip, DamageIsAnError) {
  const std::string packed = Gzip(std::string(1000, 'a'));
  EXPECT_TRUE(absl::IsInvalidArgument(Gunzip(packed.substr(0, 20), 1000).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Gunzip("\x1f\x8bno gzip at all", 1000).status()));
  EXPECT_FALSE(IsGzip("\x1f"));
  EXPECT_FALSE(IsGzip("\x0a\x05"));
}

}  // namespace
}  // namespace floe::server
