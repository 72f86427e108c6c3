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

std::string FieldOf(int number, const std::string& bytes) {
  std::string text(1, static_cast<char>(number << 3 | 2));
  size_t size = bytes.size();
  for (; size >= 128; size >>= 7) text += static_cast<char>(size % 128 + 128);
  return text + static_cast<char>(size) + bytes;
}

TEST(GrpcWire, TheLargestFieldOfAMessageIsFound) {
  const std::string data(100'000, '\x3f');
  // A map's entry with a tensor, as PredictRequest has.
  const std::string tensor = std::string("\x08\x01\x12\x03\x12\x01\x08", 7) + FieldOf(4, data);
  const std::string message =
      FieldOf(1, FieldOf(1, "model")) + FieldOf(2, FieldOf(1, "key") + FieldOf(2, tensor));
  const size_t at = message.find(data);
  EXPECT_EQ(PayloadOffset(message, message.size()), at);
  EXPECT_EQ(PayloadOffset(message.substr(0, at), message.size()), at) << "what has come so far";
  EXPECT_LT(PayloadOffset(message.substr(0, at - 2), message.size()), at);
  // Half of it each, nothing, and what is no message.
  const std::string half = FieldOf(3, std::string(500, 'a'));
  EXPECT_EQ(PayloadOffset(half + half, 2 * half.size()), 0u);
  EXPECT_EQ(PayloadOffset("", 10), 0u);
  EXPECT_EQ(PayloadOffset(std::string(30, '\xff'), 30), 0u);
  EXPECT_EQ(PayloadOffset(FieldOf(3, data), 1000), 0u) << "longer than the message";
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
