#include "server/net/grpc_wire.h"

#include <gtest/gtest.h>

#include <string>

#include "server/api/gunzip.h"

namespace floe::server {
namespace {

TEST(GrpcWire, Timeouts) {
  EXPECT_EQ(ParseTimeout("250m"), std::chrono::milliseconds(250));
  EXPECT_EQ(ParseTimeout("1H"), std::chrono::hours(1));
  EXPECT_EQ(ParseTimeout("7n"), std::chrono::nanoseconds(7));
  EXPECT_EQ(ParseTimeout("99999999H"), Duration::max());
  for (const char* wrong : {"", "m", "5", "5x", "-5m", "123456789m", "5 m"})
    EXPECT_FALSE(ParseTimeout(wrong).has_value()) << wrong;
}

TEST(GrpcWire, StatusMessagesAreEscaped) {
  EXPECT_EQ(PercentEncoded("a b~"), "a b~");
  EXPECT_EQ(PercentEncoded("100%\n\xc3\xa4"), "100%25%0A%C3%A4");
}

TEST(GrpcWire, BinaryMetadata) {
  const std::string bytes("\x00\xff\x10", 3);
  EXPECT_EQ(Base64(bytes), "AP8Q");
  EXPECT_EQ(Base64("a"), "YQ");
  EXPECT_EQ(FromBase64("YQ"), "a");
  EXPECT_EQ(FromBase64("YQ=="), "a");
  EXPECT_FALSE(FromBase64("Y*").has_value());
}

TEST(GrpcWire, Compression) {
  EXPECT_EQ(PackingOf("snappy"), Packing::kUnknown);
  EXPECT_TRUE(Accepts("identity, gzip", Packing::kGzip));
  EXPECT_FALSE(Accepts("identity,gzipped", Packing::kGzip));
  const std::string zeros(5000, '\0');
  for (const Packing packing : {Packing::kGzip, Packing::kDeflate}) {
    const std::string packed = Pack(zeros, packing);
    ASSERT_FALSE(packed.empty());
    EXPECT_LT(packed.size(), 100u);
    const auto unpacked = Gunzip(packed, 5000);
    ASSERT_TRUE(unpacked.ok()) << unpacked.status();
    EXPECT_EQ(*unpacked, zeros);
  }
  EXPECT_EQ(Pack("\x01\xf3\x7f", Packing::kGzip), "") << "it would grow";
}

}  // namespace
}  // namespace floe::server
