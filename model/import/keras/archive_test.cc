#include "model/import/keras/archive.h"

#include <gmock/gmock.h>

#include <cstring>

namespace floe::keras {
namespace {

using ::testing::HasSubstr;

void Put(std::string* out, uint32_t value, int bytes) {
  for (int k = 0; k < bytes; ++k) *out += static_cast<char>(value >> (8 * k));
}

struct Entry {
  std::string name, bytes;
  int method = 0;  // 0: stored, 8: deflated
  uint32_t size = 0, crc = 0;
};

// A zip archive of one entry, with what its headers claim.
std::string ArchiveOf(const Entry& e) {
  const auto about = [&](std::string* out) {
    Put(out, 0x21, 4);  // date
    Put(out, e.crc, 4);
    Put(out, static_cast<uint32_t>(e.bytes.size()), 4);
    Put(out, e.size, 4);
    Put(out, static_cast<uint32_t>(e.name.size()), 2);
    Put(out, 0, 2);
  };
  std::string zip = "PK\x03\x04";
  Put(&zip, 20, 2);
  Put(&zip, 0, 2);
  Put(&zip, static_cast<uint32_t>(e.method), 2);
  about(&zip);
  zip += e.name + e.bytes;
  const auto directory = static_cast<uint32_t>(zip.size());
  zip += "PK\x01\x02";
  Put(&zip, 20, 2);
  Put(&zip, 20, 2);
  Put(&zip, 0, 2);
  Put(&zip, static_cast<uint32_t>(e.method), 2);
  about(&zip);
  for (const int bytes : {2, 2, 2, 4, 4}) Put(&zip, 0, bytes);
  zip += e.name;
  const auto size = static_cast<uint32_t>(zip.size()) - directory;
  zip += "PK\x05\x06";
  for (const uint32_t value : {0U, 0U, 1U, 1U}) Put(&zip, value, 2);
  Put(&zip, size, 4);
  Put(&zip, directory, 4);
  Put(&zip, 0, 2);
  return zip;
}

constexpr uint32_t kCrcOfHello = 0x3610a686;

TEST(Archive, ReadsAnEntry) {
  const std::string zip = ArchiveOf({"a", "hello", 0, 5, kCrcOfHello});
  const auto archive = Archive::Open(zip);
  ASSERT_TRUE(archive.ok()) << archive.status();
  EXPECT_TRUE(archive->Has("a"));
  EXPECT_FALSE(archive->Has("b"));
  const auto bytes = archive->Read("a");
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(std::memcmp(bytes->data(), "hello", 5), 0);
  EXPECT_EQ(archive->Read("b").status().code(), absl::StatusCode::kNotFound);
}

TEST(Archive, RefusesSizesThatCannotBeTrue) {
  for (const int method : {0, 8}) {
    const std::string zip = ArchiveOf({"a", "hello", method, 0x7fffffff, kCrcOfHello});
    const auto archive = Archive::Open(zip);
    ASSERT_TRUE(archive.ok()) << archive.status();
    EXPECT_THAT(archive->Read("a").status().message(),
                HasSubstr("it claims 2147483647 bytes in 5"));
  }
}

TEST(Archive, RefusesDamage) {
  const std::string wrong = ArchiveOf({"a", "hello", 0, 5, kCrcOfHello + 1});
  const auto archive = Archive::Open(wrong);
  ASSERT_TRUE(archive.ok()) << archive.status();
  EXPECT_FALSE(archive->Read("a").ok());
  EXPECT_FALSE(Archive::Open(wrong.substr(0, wrong.size() - 4)).ok());
  EXPECT_FALSE(Archive::Open("PK\x03\x04").ok());
}

}  // namespace
}  // namespace floe::keras
