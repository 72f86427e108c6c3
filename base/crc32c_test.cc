#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

namespace floe {
namespace {

// The examples of RFC 3720, appendix B.4, and the polynomial's usual check value.
TEST(Crc32c, PublishedValues) {
  EXPECT_EQ(Crc32c("123456789", 9), 0xe3069283u);
  EXPECT_EQ(Crc32c("", 0), 0u);
  std::vector<unsigned char> bytes(32, 0);
  EXPECT_EQ(Crc32c(bytes.data(), 32), 0x8a9136aau);
  bytes.assign(32, 0xff);
  EXPECT_EQ(Crc32c(bytes.data(), 32), 0x62a8ab43u);
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(0));
  EXPECT_EQ(Crc32c(bytes.data(), 32), 0x46dd794eu);
}

TEST(Crc32c, PiecesGiveTheWhole) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 37 + i / 7);
  const uint32_t whole = Crc32c(text.data(), text.size());
  for (size_t cut = 0; cut <= text.size(); cut += 13) {
    const uint32_t first = Crc32c(text.data(), cut);
    EXPECT_EQ(Crc32c(text.data() + cut, text.size() - cut, first), whole) << cut;
    EXPECT_EQ(Crc32cByTables(text.data() + cut, text.size() - cut, first), whole) << cut;
  }
}

}  // namespace
}  // namespace floe
