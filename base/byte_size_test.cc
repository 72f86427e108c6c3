#include "base/byte_size.h"

#include <gtest/gtest.h>

namespace floe {
namespace {

int64_t Parsed(const std::string& text) {
  int64_t bytes = -1;
  return ParseByteSize(text, &bytes) ? bytes : -1;
}

TEST(ByteSize, UnitsOf1024And1000) {
  EXPECT_EQ(Parsed("0"), 0);
  EXPECT_EQ(Parsed("1048576"), 1048576);
  EXPECT_EQ(Parsed("640B"), 640);
  for (const char* text : {"4GiB", "4 GiB", "4gib", "4G", "4g", "4Gi", "4096MiB", "4194304K"})
    EXPECT_EQ(Parsed(text), int64_t{4} << 30) << text;
  for (const char* text : {"4GB", "4 GB", "4gb", "4000MB", "4000000KB"})
    EXPECT_EQ(Parsed(text), 4'000'000'000) << text;
  EXPECT_EQ(Parsed("10MB"), 10'000'000);
  EXPECT_EQ(Parsed("1TiB"), int64_t{1} << 40);
  EXPECT_EQ(Parsed("1TB"), 1'000'000'000'000);
  EXPECT_EQ(Parsed("1024TiB"), kMostByteSize);
  EXPECT_EQ(Parsed("1PiB"), kMostByteSize);
}

TEST(ByteSize, OtherTextIsNone) {
  for (const char* text : {"", "GiB", "-1", "1.5GiB", "4GBs", "4 ", "4Gib/s", "4X", "4iB",
                           "1025TiB", "2PB", "99999999999999999999", "4 0", " 4", "90%"})
    EXPECT_EQ(Parsed(text), -1) << text;
}

TEST(ByteSize, ForPeople) {
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(640), "640 B");
  EXPECT_EQ(HumanBytes(999), "999 B");
  EXPECT_EQ(HumanBytes(1024), "1.00 KiB");
  EXPECT_EQ(HumanBytes(1000), "0.98 KiB");
  EXPECT_EQ(HumanBytes(12.3 * 1024 * 1024), "12.3 MiB");
  EXPECT_EQ(HumanBytes(256.0 * 1024 * 1024), "256 MiB");
  EXPECT_EQ(HumanBytes(4.0 * 1024 * 1024 * 1024), "4.00 GiB");
}

}  // namespace
}  // namespace floe
