#include "kernels/cpu/parse/example_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace floe::kernels {
namespace {

using std::string_literals::operator""s;

// A length-delimited field.
std::string Part(int field, const std::string& bytes) {
  return std::string{static_cast<char>(field << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
std::string Example(const std::string& key, const std::string& feature) {
  return Part(1, Part(1, Part(1, key) + Part(2, feature)));
}

bool Reads(const std::string& example) {
  return ForEachFeature(example, [](std::string_view, std::string_view) {});
}

TEST(ExampleReader, FindsFeaturesAndTheirValues) {
  FeatureList list;
  std::string found;
  const std::string example = Example("n", Part(3, Part(1, "\x01\x96\x01"s)));
  ASSERT_TRUE(ForEachFeature(example, [&](std::string_view key, std::string_view feature) {
    found = std::string(key);
    EXPECT_TRUE(ReadFeature(feature, &list));
  }));
  EXPECT_EQ(found, "n");
  EXPECT_EQ(list.dtype, DType::kInt64);
  ASSERT_EQ(list.count, 2);
  int64_t values[2];
  WriteInts(list, values);
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(values[1], 150);
}

TEST(ExampleReader, PassesOverWhatItDoesNotKnow) {
  const std::string group = "\x1b\x08\x05\x1b\x1c\x1c"s;  // field 3: a group with a group in it
  EXPECT_TRUE(Reads(group + Example("n", "") + "\x20\x01\x29" + "12345678" + "\x35" + "1234"));
}

TEST(ExampleReader, RefusesBytesThatAreNoMessage) {
  for (const std::string& bytes : {
           "\x0a"s,                           // no length
           "\x0a\x05"s,                       // no content
           "\x0a\xff\xff\xff\xff\x7f"s,       // longer than memory
           "\x00\x01"s,                       // field 0
           "\x0f"s,                           // no wire type
           "\x1b\x08\x05"s,                   // a group without an end
           "\x1b\x24"s,                       // a group with another's end
           "\x08" + std::string(11, '\xff'),  // a number without an end
           std::string(1000, '\x1b'),         // groups without end
       })
    EXPECT_FALSE(Reads(bytes)) << bytes.size();
}

TEST(ExampleReader, RefusesListsThatAreCut) {
  FeatureList list;
  EXPECT_FALSE(ReadFeature(Part(2, Part(1, "123")), &list));    // three quarters of a float
  EXPECT_FALSE(ReadFeature(Part(3, Part(1, "\x80"s)), &list));  // a number without an end
  EXPECT_FALSE(ReadFeature(Part(3, Part(1, std::string(11, '\x80') + "\x01")), &list));
  EXPECT_FALSE(ReadFeature(Part(1, "\x08\x01"s), &list));           // a number among the bytes
  EXPECT_FALSE(ReadFeature(Part(2, "\x09" + "12345678"s), &list));  // a double among the floats
  EXPECT_TRUE(ReadFeature("", &list));
  EXPECT_EQ(list.dtype, DType::kInvalid);
}

}  // namespace
}  // namespace floe::kernels
