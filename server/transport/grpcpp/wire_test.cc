#include "server/transport/grpcpp/wire.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace floe::server {
namespace {

TEST(TakeMessage, JoinsTheParts) {
  for (const size_t count : {1u, 2u, 5u}) {
    std::vector<grpc::Slice> parts;
    std::string expected;
    for (size_t i = 0; i < count; ++i) {
      const std::string text(10'000 + i, static_cast<char>('a' + i));
      parts.emplace_back(text);
      expected += text;
    }
    grpc::ByteBuffer buffer(parts.data(), parts.size());
    Received received;
    const absl::Status status = TakeMessage(&buffer, {int64_t{1} << 20, false}, &received);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(BytesOf(received.slice), expected);
  }
}

TEST(TakeMessage, LargerMessagesAreRefused) {
  const grpc::Slice parts[] = {grpc::Slice("1234"), grpc::Slice("5678")};
  grpc::ByteBuffer buffer(parts, 2);
  Received received;
  const absl::Status status = TakeMessage(&buffer, {7, false}, &received);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
}

}  // namespace
}  // namespace floe::server
