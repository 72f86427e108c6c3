#include "cli/npz.h"

#include <complex>
#include <fstream>
#include <iterator>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/half.h"

namespace floe::cli {
namespace {

using testing::HasSubstr;

const std::string kData = FLOE_SOURCE_DIR "/cli/testdata/";

std::string FileBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Expects the values 0 to 5 in a [2,3] array called `name`.
template <typename T>
void ExpectSix(const NamedTensors& arrays, const std::string& name, DType dtype) {
  SCOPED_TRACE(name);
  const Tensor* const tensor = FindTensor(arrays, name);
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->dtype(), dtype);
  EXPECT_EQ(tensor->shape(), Shape({2, 3}));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(tensor->as<T>()[i], static_cast<T>(i)) << i;
}

class NumPyArchive : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Npz, NumPyArchive, testing::Values("stored.npz", "deflated.npz"));

TEST_P(NumPyArchive, EveryDType) {
  const auto arrays = ReadNpz(kData + GetParam());
  ASSERT_TRUE(arrays.ok()) << arrays.status();
  EXPECT_EQ(arrays->size(), 19u);
  EXPECT_EQ(arrays->front().first, "f2");  // the archive's order
  ExpectSix<float>(*arrays, "f4", DType::kFloat32);
  ExpectSix<double>(*arrays, "f8", DType::kFloat64);
  ExpectSix<int8_t>(*arrays, "i1", DType::kInt8);
  ExpectSix<int16_t>(*arrays, "i2", DType::kInt16);
  ExpectSix<int32_t>(*arrays, "i4", DType::kInt32);
  ExpectSix<int64_t>(*arrays, "i8", DType::kInt64);
  ExpectSix<uint8_t>(*arrays, "u1", DType::kUInt8);
  ExpectSix<uint16_t>(*arrays, "u2", DType::kUInt16);
  ExpectSix<uint32_t>(*arrays, "u4", DType::kUInt32);
  ExpectSix<uint64_t>(*arrays, "u8", DType::kUInt64);
  ExpectSix<std::complex<float>>(*arrays, "c8", DType::kComplex64);
  ExpectSix<std::complex<double>>(*arrays, "c16", DType::kComplex128);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(FindTensor(*arrays, "f2")->as<Half>()[i], i);
    EXPECT_EQ(FindTensor(*arrays, "bf16")->as<BFloat16>()[i], i);
    EXPECT_EQ(FindTensor(*arrays, "b1")->as<bool>()[i], i % 2 == 1);
  }
}

TEST_P(NumPyArchive, ShapesAndNames) {
  const auto arrays = ReadNpz(kData + GetParam());
  ASSERT_TRUE(arrays.ok()) << arrays.status();
  const Tensor& fortran = *FindTensor(*arrays, "fortran");
  EXPECT_EQ(fortran.shape(), Shape({2, 3, 4}));
  for (int i = 0; i < 24; ++i) EXPECT_EQ(fortran.as<int32_t>()[i], i);
  EXPECT_EQ(FindTensor(*arrays, "scalar")->shape(), Shape());
  EXPECT_EQ(*FindTensor(*arrays, "scalar")->as<float>(), 2.5f);
  EXPECT_EQ(FindTensor(*arrays, "empty")->shape(), Shape({0, 3}));
  EXPECT_EQ(*FindTensor(*arrays, "scope/name__1")->as<int64_t>(), 7);
  EXPECT_EQ(FindTensor(*arrays, "scope"), nullptr);
}

TEST(Npz, WhatIsWrittenReadsBack) {
  const auto arrays = ReadNpz(kData + "stored.npz");
  ASSERT_TRUE(arrays.ok());
  for (const Compression compression : {Compression::kStored, Compression::kDeflated}) {
    const std::string path = testing::TempDir() + "roundtrip.npz";
    ASSERT_TRUE(WriteNpz(path, *arrays, compression).ok());
    const auto again = ReadNpz(path);
    ASSERT_TRUE(again.ok()) << again.status();
    ASSERT_EQ(again->size(), arrays->size());
    for (size_t i = 0; i < arrays->size(); ++i) {
      const Tensor &a = (*arrays)[i].second, &b = (*again)[i].second;
      EXPECT_EQ((*arrays)[i].first, (*again)[i].first);
      ASSERT_EQ(a.dtype(), b.dtype());
      ASSERT_EQ(a.shape(), b.shape());
      EXPECT_EQ(std::string(a.as<char>(), a.bytes()), std::string(b.as<char>(), b.bytes()));
    }
  }
}

TEST(Npz, EqualArraysMakeEqualFiles) {
  const NamedTensors arrays = {{"a", Tensor::Vector<float>(DType::kFloat32, {1, 2})}};
  const std::string first = testing::TempDir() + "first.npz",
                    second = testing::TempDir() + "second.npz";
  ASSERT_TRUE(WriteNpz(first, arrays).ok());
  ASSERT_TRUE(WriteNpz(second, arrays).ok());
  EXPECT_EQ(FileBytes(first), FileBytes(second));
}

TEST(Npz, RefusesToWriteNothingOrANameTwice) {
  const std::string path = testing::TempDir() + "refused.npz";
  const Tensor tensor = Tensor::Vector<float>(DType::kFloat32, {1});
  EXPECT_THAT(std::string(WriteNpz(path, {}).message()), HasSubstr("no arrays"));
  EXPECT_THAT(std::string(WriteNpz(path, {{"a", tensor}, {"a", tensor}}).message()),
              HasSubstr("called 'a'"));
  EXPECT_FALSE(std::ifstream(path).good());
}

TEST(Npz, FailedWriteLeavesTheOldFile) {
  const std::string path = testing::TempDir() + "kept.npz";
  const NamedTensors arrays = {{"a", Tensor::Vector<float>(DType::kFloat32, {1})}};
  ASSERT_TRUE(WriteNpz(path, arrays).ok());
  EXPECT_FALSE(
      WriteNpz(path, {{"b", arrays[0].second}, {"s", Tensor::Allocate(DType::kString, {1})}}).ok());
  const auto kept = ReadNpz(path);
  ASSERT_TRUE(kept.ok());
  EXPECT_NE(FindTensor(*kept, "a"), nullptr);
}

TEST(Npz, MissingAndForeignFiles) {
  EXPECT_EQ(ReadNpz(kData + "nothing.npz").status().code(), absl::StatusCode::kNotFound);
  const auto foreign = ReadNpz(kData + "f4_2x3.npy");
  EXPECT_EQ(foreign.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(foreign.status().message()), HasSubstr("f4_2x3.npy"));
}

TEST(Npz, RefusesWhatIsCut) {
  const std::string whole = FileBytes(kData + "deflated.npz");
  const std::string path = testing::TempDir() + "cut.npz";
  for (size_t size = 0; size < whole.size(); size += 97) {
    WriteFile(path, whole.substr(0, size));
    EXPECT_FALSE(ReadNpz(path).ok()) << size;
  }
}

TEST(Npz, RefusesADamagedArray) {
  const std::string path = testing::TempDir() + "damaged.npz";
  const NamedTensors arrays = {{"a", Tensor::Vector<float>(DType::kFloat32, {1, 2, 3})}};
  ASSERT_TRUE(WriteNpz(path, arrays, Compression::kStored).ok());
  std::string bytes = FileBytes(path);
  const float two = 2;
  const size_t at = bytes.find(std::string(reinterpret_cast<const char*>(&two), sizeof two));
  ASSERT_NE(at, std::string::npos);
  bytes[at] ^= 1;
  WriteFile(path, bytes);
  const auto read = ReadNpz(path);
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(std::string(read.status().message()), HasSubstr("array 'a.npy'"));
}

// A directory entry that claims 2 GB in a few hundred bytes must fail before 2 GB are allocated.
TEST(Npz, RefusesAClaimBeyondWhatDeflateCanHold) {
  const std::string path = testing::TempDir() + "bomb.npz";
  const NamedTensors arrays = {
      {"a", Tensor::Vector<float>(DType::kFloat32, std::vector<float>(1000))}};
  ASSERT_TRUE(WriteNpz(path, arrays).ok());
  std::string bytes = FileBytes(path);
  const size_t directory = bytes.rfind("PK\x01\x02");
  ASSERT_NE(directory, std::string::npos);
  constexpr size_t kSizeField = 24;
  bytes.replace(directory + kSizeField, 4, std::string("\x00\x00\x00\x7f", 4));
  WriteFile(path, bytes);
  const auto read = ReadNpz(path);
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(std::string(read.status().message()), HasSubstr("claims 2130706432 bytes"));
}

TEST(Npz, HoldsToTheCallersLimit) {
  const auto read = ReadNpz(kData + "stored.npz", 130);
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(std::string(read.status().message()), HasSubstr("limit of 130"));
}

}  // namespace
}  // namespace floe::cli
