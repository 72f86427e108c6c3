// Vocabulary files. Every expectation is what TensorFlow 2.21 makes of the same bytes.
#include "runtime/text_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"

namespace floe {
namespace {

using testing::HasSubstr;

struct Result {
  absl::Status status;
  std::shared_ptr<TableObject> table;

  template <class K, class V>
  V At(const K& key, const V& otherwise) const {
    K k = key;
    V fallback = otherwise, value = otherwise;
    const TensorView keys{table->key_dtype(), Shape(), &k};
    const TensorView out{table->value_dtype(), Shape(), &value};
    const absl::Status found = table->Find(keys, {table->value_dtype(), Shape(), &fallback}, out);
    EXPECT_TRUE(found.ok()) << found;
    return value;
  }
  int64_t Word(const std::string& word) const { return At<std::string, int64_t>(word, -99); }
  std::string message() const { return std::string(status.message()); }
};

Result Read(const std::string& text, DType key, DType value, TextTableFormat format) {
  Result result;
  result.table = *TableObject::Create(TableKind::kFilledOnce, key, value, Shape());
  result.status = FillFromText(text, format, result.table.get());
  return result;
}
TextTableFormat Columns(int64_t key, int64_t value) {
  TextTableFormat format;
  format.key_index = key;
  format.value_index = value;
  return format;
}
constexpr DType kS = DType::kString, kL = DType::kInt64, kI = DType::kInt32, kF = DType::kFloat32,
                kD = DType::kFloat64;
constexpr int64_t kWhole = TextTableFormat::kWholeLine, kNumber = TextTableFormat::kLineNumber;

TEST(TextTable, LinesEndWithOrWithoutCarriageReturn) {
  for (const char* text : {"a\nb\nc\n", "a\nb\nc", "a\r\nb\r\nc\r\n", "a\nb\r\nc\r"}) {
    const Result r = Read(text, kS, kL, {});
    ASSERT_TRUE(r.status.ok()) << r.status;
    EXPECT_EQ(r.table->size(), 3);
    EXPECT_EQ(r.Word("c"), 2);
  }
  EXPECT_EQ(Read("a\r\r\nb\rx\n", kS, kL, {}).Word("a\r"), 0);
  EXPECT_EQ(Read("a\r\r\nb\rx\n", kS, kL, {}).Word("b\rx"), 1);
  EXPECT_EQ(Read(std::string("a\0b\nc", 5), kS, kL, {}).Word(std::string("a\0b", 3)), 0);
}

TEST(TextTable, EmptyLinesAndFilesAreErrors) {
  EXPECT_THAT(Read("a\n\nb\n", kS, kL, {}).message(), HasSubstr("line 2: is empty"));
  EXPECT_THAT(Read("a\nb\n\n", kS, kL, {}).message(), HasSubstr("line 3: is empty"));
  EXPECT_THAT(Read("\r\n", kS, kL, {}).message(), HasSubstr("line 1: is empty"));
  EXPECT_THAT(Read("", kS, kL, {}).message(), HasSubstr("the file is empty"));
}

TEST(TextTable, VocabSizeCutsAndChecks) {
  TextTableFormat format;
  format.vocab_size = 2;
  EXPECT_EQ(Read("a\nb\nc\n", kS, kL, format).table->size(), 2);
  EXPECT_TRUE(Read("a\nb\n\n", kS, kL, format).status.ok());
  format.vocab_size = 4;
  EXPECT_THAT(Read("a\nb\nc\n", kS, kL, format).message(),
              HasSubstr("has 3 lines, vocab_size is 4"));
  for (const int64_t wrong : {0, -2}) {
    format.vocab_size = wrong;
    EXPECT_THAT(Read("a\n", kS, kL, format).message(), HasSubstr("vocab_size"));
  }
}

TEST(TextTable, TheOffsetIsForLineNumbersAndInt32Columns) {
  TextTableFormat format;
  format.offset = 5;
  EXPECT_EQ(Read("a\nb\n", kS, kL, format).Word("b"), 6);
  format.key_index = 0;
  format.value_index = 1;
  EXPECT_EQ(Read("a\t7\nb\t8\n", kS, kL, format).Word("b"), 8);
  EXPECT_EQ((Read("a\t7\nb\t8\n", kS, kI, format).At<std::string, int32_t>("b", 0)), 13);
  format.key_index = kNumber;
  format.value_index = kWhole;
  EXPECT_EQ((Read("7\n8\n", kL, kL, format).At<int64_t, int64_t>(6, 0)), 8);
  format.offset = -5;
  EXPECT_EQ((Read("x\ny\n", kL, kS, format).At<int64_t, std::string>(-4, "")), "y");
}

TEST(TextTable, ColumnsHoldStringsAndNumbers) {
  EXPECT_EQ(Read("a\t 1 \nb\t+2\n", kS, kL, Columns(0, 1)).Word("a"), 1);
  EXPECT_EQ(Read("a\t1\na\t1\n", kS, kL, Columns(0, 1)).table->size(), 1);
  EXPECT_EQ((Read("\ta\n", kS, kS, Columns(0, 1)).At<std::string, std::string>("", "?")), "a");
  EXPECT_EQ((Read("a\tb\tc\n", kS, kS, Columns(1, 2)).At<std::string, std::string>("b", "?")), "c");
  EXPECT_EQ((Read("1\n2\n", kI, kS, Columns(kWhole, 0)).At<int32_t, std::string>(2, "?")), "2");
  const Result floats = Read("a\t1.5\nb\t-inf\nc\t1e400\nd\t0x10\n", kS, kF, Columns(0, 1));
  EXPECT_EQ((floats.At<std::string, float>("a", 0)), 1.5f);
  EXPECT_EQ((floats.At<std::string, float>("b", 0)), -INFINITY);
  EXPECT_EQ((floats.At<std::string, float>("c", 0)), INFINITY);
  EXPECT_EQ((floats.At<std::string, float>("d", 0)), 16.f);
  EXPECT_EQ((Read("1\n2\n", kL, kD, Columns(kNumber, 0)).At<int64_t, double>(1, 0)), 2.0);
  TextTableFormat comma = Columns(0, 1);
  comma.delimiter = ",";
  EXPECT_EQ(Read("a,1\nb,2\n", kS, kL, comma).Word("b"), 2);
}

TEST(TextTable, WhatDoesNotFitIsRefused) {
  EXPECT_THAT(Read("a\t1\nb\n", kS, kL, Columns(0, 1)).message(), HasSubstr("line 2: has too few"));
  EXPECT_THAT(Read("a\t1x\n", kS, kL, Columns(0, 1)).message(), HasSubstr("'1x' is no int64"));
  EXPECT_FALSE(Read("a\t\n", kS, kL, Columns(0, 1)).status.ok());
  EXPECT_FALSE(Read("a\t9223372036854775808", kS, kL, Columns(0, 1)).status.ok());
  EXPECT_FALSE(Read("a\t2147483648", kS, kI, Columns(0, 1)).status.ok());
  EXPECT_FALSE(Read("a\ttrue\n", kS, DType::kBool, Columns(0, 1)).status.ok());
  EXPECT_FALSE(Read("a\nb\n", kI, kS, Columns(kNumber, kWhole)).status.ok());
  EXPECT_FALSE(Read("1.5\n", kL, kF, Columns(kNumber, kWhole)).status.ok());
  EXPECT_FALSE(Read("a\tb\n", kS, kS, Columns(-3, 0)).status.ok());
  EXPECT_EQ(Read("a\t1\na\t2\n", kS, kL, Columns(0, 1)).status.code(),
            absl::StatusCode::kFailedPrecondition);
  for (const char* wrong : {"", ",,", "\n"}) {
    TextTableFormat format;
    format.delimiter = wrong;
    EXPECT_THAT(Read("a\n", kS, kL, format).message(), HasSubstr("delimiter"));
  }
}

TEST(TextTable, LongFilesAreReadInPieces) {
  std::string text;
  for (int i = 0; i < 5000; ++i) absl::StrAppend(&text, "word", i, "\n");
  const Result r = Read(text, kS, kL, {});
  ASSERT_TRUE(r.status.ok()) << r.status;
  EXPECT_EQ(r.table->size(), 5000);
  for (const int i : {0, 1023, 1024, 2047, 4999}) EXPECT_EQ(r.Word(absl::StrCat("word", i)), i);
}

}  // namespace
}  // namespace floe
