#include "base/content_hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace floe {
namespace {

TEST(ContentHash, EveryBitAndTheLengthCount) {
  std::set<absl::uint128> seen;
  size_t hashed = 0;
  for (const size_t size : {0, 1, 16, 17, 128, 240, 241, 5000}) {
    std::string bytes(size, 'x');
    seen.insert(ContentHash(bytes.data(), size));
    ++hashed;
    for (size_t i = 0; i < size; i += 1 + size / 50) {
      bytes[i] ^= 4;
      seen.insert(ContentHash(bytes.data(), size));
      ++hashed;
      bytes[i] ^= 4;
    }
    EXPECT_EQ(ContentHash(bytes.data(), size), ContentHash(std::string(bytes).data(), size));
  }
  EXPECT_EQ(seen.size(), hashed);
}

}  // namespace
}  // namespace floe
