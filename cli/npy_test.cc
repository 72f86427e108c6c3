#include "cli/npy.h"

#include <fstream>
#include <iterator>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace floe::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kNpyData = FLOE_SOURCE_DIR "/cli/testdata/";

std::string NpyBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

// A version-1 file with this header text, unpadded, and `data`.
std::string Npy(const std::string& dict, const std::string& data) {
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(dict.size() & 0xff);
  bytes += static_cast<char>(dict.size() >> 8);
  return bytes + dict + data;
}

template <typename T>
std::vector<T> Values(const Tensor& tensor) {
  return std::vector<T>(tensor.as<T>(), tensor.as<T>() + tensor.elements());
}

TEST(Npy, ReadsWhatNumPyWrote) {
  const auto tensor = ReadNpyFile(kNpyData + "f4_2x3.npy");
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->dtype(), DType::kFloat32);
  EXPECT_EQ(tensor->shape(), Shape({2, 3}));
  EXPECT_THAT(Values<float>(*tensor), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(Npy, ReadsFormatVersion2) {
  const auto tensor = ReadNpyFile(kNpyData + "version2.npy");
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_THAT(Values<int16_t>(*tensor), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(Npy, WritesTheBytesNumPyWrites) {
  const Tensor tensor = Tensor::Vector<float>(DType::kFloat32, {0, 1, 2, 3, 4, 5}).Reshaped({2, 3});
  const auto bytes = SerializeNpy(tensor.view());
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(*bytes, NpyBytes(kNpyData + "f4_2x3.npy"));
}

TEST(Npy, HeaderNeedsNoParticularSpacingOrOrder) {
  const auto tensor = ParseNpy(Npy("{ \"shape\":(2L,),'fortran_order':False,'descr':'|u1'}", "ab"));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_THAT(Values<uint8_t>(*tensor), ElementsAre('a', 'b'));
}

TEST(Npy, BoolsAreZeroOrOne) {
  const auto tensor = ParseNpy(Npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }",
                                   std::string("\x00\x02\xff", 3)));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_THAT(Values<uint8_t>(*tensor), ElementsAre(0, 1, 1));
}

struct Hostile {
  const char* dict;
  const char* message;
};

TEST(Npy, RefusesHostileHeaders) {
  const Hostile cases[] = {
      {"", "'{' expected"},
      {"{'descr': '<f4', 'fortran_order': False}", "are all needed"},
      {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", "given twice"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (), 'x': 1}", "unknown key 'x'"},
      {"{'descr': '<f4', 'fortran_order': 0, 'shape': ()}", "True or False"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "integer >= 0"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}", "',' or ')'"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,", "integer >= 0"},
      {"{'descr': '<f4, 'fortran_order': False, 'shape': ()}", "',' or '}' expected"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", "text after '}'"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000,)}",
       "needs 4000000000 bytes"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
       "not a valid .npy"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
       "integer >= 0"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': ()}",
       "needs 4 bytes of data, the file holds 3"},
      {"{'descr': '>f4', 'fortran_order': False, 'shape': ()}", "big-endian"},
      {"{'descr': '|O', 'fortran_order': False, 'shape': ()}", "pickled"},
      {"{'descr': '<U5', 'fortran_order': False, 'shape': ()}", "uint8 array"},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", "structured"},
      {"{'descr': '<f44', 'fortran_order': False, 'shape': ()}", "dtype '<f44' is not read"},
      {"{'descr': '', 'fortran_order': False, 'shape': ()}", "dtype '' is not read"},
  };
  for (const Hostile& hostile : cases) {
    const auto tensor = ParseNpy(Npy(hostile.dict, "abc"));
    ASSERT_FALSE(tensor.ok()) << hostile.dict;
    EXPECT_THAT(std::string(tensor.status().message()), HasSubstr(hostile.message)) << hostile.dict;
  }
}

TEST(Npy, RefusesWhatIsCutAnywhere) {
  const std::string whole = NpyBytes(kNpyData + "f4_2x3.npy");
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(ParseNpy(whole.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(ParseNpy(whole + "x").ok());
}

TEST(Npy, RefusesForeignFilesAndVersions) {
  EXPECT_THAT(std::string(ParseNpy("PK\x03\x04 and something").status().message()),
              HasSubstr("begin with"));
  std::string version9 = NpyBytes(kNpyData + "f4_2x3.npy");
  version9[6] = 9;
  EXPECT_THAT(std::string(ParseNpy(version9).status().message()), HasSubstr("version 9"));
  std::string long_header("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12);
  EXPECT_THAT(std::string(ParseNpy(long_header).status().message()),
              HasSubstr("header of 4294967295"));
}

TEST(Npy, MissingFileIsNotFound) {
  const auto tensor = ReadNpyFile(kNpyData + "nothing.npy");
  EXPECT_EQ(tensor.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(tensor.status().message()), HasSubstr("nothing.npy"));
}

TEST(Npy, StringsHaveNoForm) {
  EXPECT_FALSE(SerializeNpy(Tensor::Allocate(DType::kString, {1}).view()).ok());
}

}  // namespace
}  // namespace floe::cli
