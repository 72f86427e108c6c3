#include "base/tf_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace floe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Written by tf.io.TFRecordWriter: "hello" and an empty record.
const std::string kFile(
    "\x05\x00\x00\x00\x00\x00\x00\x00\xea\xb2\x04\x3e\x68\x65\x6c\x6c\x6f\xbb\x1f\x1c\x19"
    "\x00\x00\x00\x00\x00\x00\x00\x00\x29\x03\x98\x07\xd8\xea\x82\xa2",
    37);

absl::StatusOr<std::vector<std::string>> ReadAll(const std::string& file) {
  TfRecordReader reader(file);
  std::vector<std::string> records;
  for (std::string_view record;;) {
    const auto more = reader.Next(&record);
    if (!more.ok()) {
      EXPECT_FALSE(reader.Next(&record).ok()) << "for good";
      return more.status();
    }
    if (!*more) return records;
    records.emplace_back(record);
    EXPECT_EQ(reader.count(), static_cast<int64_t>(records.size()));
  }
}

TEST(TfRecord, ReadsWhatTensorFlowWrites) {
  const auto records = ReadAll(kFile);
  ASSERT_TRUE(records.ok()) << records.status();
  EXPECT_THAT(*records, ElementsAre("hello", ""));
  EXPECT_TRUE(ReadAll("")->empty());
}

TEST(TfRecord, WritesWhatTensorFlowWrites) {
  std::string file;
  AppendTfRecord("hello", &file);
  AppendTfRecord("", &file);
  EXPECT_EQ(file, kFile);
}

TEST(TfRecord, EveryDamagedByteAndEveryCutIsFound) {
  for (size_t i = 0; i < kFile.size(); ++i) {
    std::string damaged = kFile;
    damaged[i] ^= 1;
    EXPECT_EQ(ReadAll(damaged).status().code(), absl::StatusCode::kDataLoss) << i;
    if (i == 0 || i == 21) continue;  // whole records
    EXPECT_EQ(ReadAll(kFile.substr(0, i)).status().code(), absl::StatusCode::kDataLoss) << i;
  }
  std::string second = kFile;
  second[35] ^= 1;
  EXPECT_THAT(std::string(ReadAll(second).status().message()), HasSubstr("record 2: the checksum"));
  std::string huge;
  const uint64_t length = UINT64_MAX - 2;
  huge.append(reinterpret_cast<const char*>(&length), 8);
  const uint32_t crc = MaskedCrc32c(&length, 8);
  huge.append(reinterpret_cast<const char*>(&crc), 4);
  EXPECT_THAT(std::string(ReadAll(huge).status().message()), HasSubstr("ends within its data"));
}

}  // namespace
}  // namespace floe
