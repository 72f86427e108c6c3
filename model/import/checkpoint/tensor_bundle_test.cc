// Checkpoints that TensorFlow wrote (testdata/make.py), whole and damaged, and tables of our own.
#include "model/import/checkpoint/tensor_bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <snappy.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/tf_record.h"
#include "model/import/checkpoint/sorted_table.h"
#include "model/import/import.h"

namespace floe {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kMaxBytes = 1 << 20;
const std::string kBundle = FLOE_SOURCE_DIR "/model/import/testdata/bundle";

std::string Bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<float> Floats(const absl::StatusOr<Tensor>& tensor) {
  EXPECT_TRUE(tensor.ok()) << tensor.status();
  if (!tensor.ok()) return {};
  return {tensor->as<float>(), tensor->as<float>() + tensor->elements()};
}

TEST(TensorBundle, ReadsWhatTensorFlowWrote) {
  const auto bundle = TensorBundle::Open(kBundle, kMaxBytes);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_THAT((*bundle)->Names(), ElementsAre("empty", "flags", "half", "part", "scalar", "words"));
  const auto half = (*bundle)->Read("half");
  ASSERT_TRUE(half.ok()) << half.status();
  EXPECT_EQ(half->dtype(), DType::kFloat16);
  EXPECT_EQ(half->as<uint16_t>()[1], 0xc100);  // -2.5
  const auto words = (*bundle)->Read("words");
  ASSERT_TRUE(words.ok()) << words.status();
  EXPECT_EQ(words->shape(), Shape({2, 2}));
  EXPECT_EQ(words->as<std::string>()[0], "alpha");
  EXPECT_EQ(words->as<std::string>()[1], "");
  EXPECT_EQ(words->as<std::string>()[3], std::string(300, 'd'));
  EXPECT_EQ(*(*bundle)->Read("scalar")->as<int64_t>(), 7);
  EXPECT_EQ((*bundle)->Read("empty")->shape(), Shape({0, 3}));
  EXPECT_EQ((*bundle)->Read("flags")->as<bool>()[2], true);
}

TEST(TensorBundle, IsNoModel) {
  const std::string folder = FLOE_SOURCE_DIR "/model/import/testdata";
  const struct {
    std::string path, what;
  } cases[] = {
      {kBundle + ".index", "this is a part of a checkpoint"},
      {kBundle + ".data-00000-of-00002", "this is a part of a checkpoint"},
      {kBundle, "is the prefix of a checkpoint"},
      {folder, "it holds a checkpoint"},
      {folder + "/version_1.ckpt", "this is a checkpoint of version 1"},
  };
  for (const auto& c : cases) {
    const std::string error(ImportFile(c.path, {}).status().message());
    EXPECT_THAT(error, HasSubstr(c.what)) << c.path;
  }
  const auto old = TensorBundle::Open(folder + "/version_1.ckpt", kMaxBytes);
  EXPECT_THAT(std::string(old.status().message()), HasSubstr("is a checkpoint of version 1"));
}

TEST(TensorBundle, PutsPartsTogether) {
  const auto bundle = TensorBundle::Open(kBundle, kMaxBytes);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_THAT(Floats((*bundle)->Read("part")), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_THAT(Floats((*bundle)->ReadPart("part", "3 4 0,2:-")),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(Floats((*bundle)->ReadPart("part", "3 4 1,2:1,2")), ElementsAre(5, 6, 9, 10));
  const auto slices = (*bundle)->Slices("part");
  ASSERT_EQ(slices->size(), 2u);
  EXPECT_THAT(Floats((*bundle)->ReadSlice("part", (*slices)[1])), ElementsAre(8, 9, 10, 11));
  for (const char* spec : {"3 4 0,9:-", "3 4 -", "4 0,2:-", "3 4 -1,2:-", "x"}) {
    EXPECT_EQ((*bundle)->ReadPart("part", spec).status().code(), absl::StatusCode::kInvalidArgument)
        << spec;
  }
}

TEST(TensorBundle, ErrorsNameWhatIsMissing) {
  EXPECT_THAT(std::string(TensorBundle::Open("/nowhere/x", kMaxBytes).status().message()),
              HasSubstr("/nowhere/x.index does not exist"));
  EXPECT_THAT(std::string(TensorBundle::Open(kBundle + ".index", kMaxBytes).status().message()),
              HasSubstr("is a checkpoint's index; a checkpoint is named by its prefix"));
  const auto bundle = TensorBundle::Open(kBundle, kMaxBytes);
  const absl::Status missing = (*bundle)->Read("par").status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("nearest: 'part'"));
}

class Damaged : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / "floe_bundle";
    fs::remove_all(folder_);
    fs::create_directory(folder_);
    for (const char* file : {".index", ".data-00000-of-00002", ".data-00001-of-00002"})
      fs::copy_file(kBundle + file, Prefix() + file);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string Prefix() const { return (folder_ / "bundle").string(); }
  void Write(const std::string& file, const std::string& bytes) const {
    std::ofstream(Prefix() + file, std::ios::binary) << bytes;
  }
  // What reading everything comes to.
  absl::Status ReadAll() const {
    auto bundle = TensorBundle::Open(Prefix(), kMaxBytes);
    if (!bundle.ok()) return bundle.status();
    absl::Status status;
    for (const std::string& name : (*bundle)->Names())
      status.Update((*bundle)->Read(name).status());
    return status;
  }

  fs::path folder_;
};

TEST_F(Damaged, EveryByteOfTheIndexCounts) {
  const std::string index = Bytes(Prefix() + ".index");
  ASSERT_TRUE(ReadAll().ok()) << ReadAll();
  int unseen = 0;
  for (size_t i = 0; i < index.size(); ++i) {
    std::string changed = index;
    changed[i] = static_cast<char>(changed[i] ^ 0x40);
    Write(".index", changed);
    unseen += ReadAll().ok() ? 1 : 0;
  }
  EXPECT_LT(unseen, 60) << "the metaindex block and the footer's padding are not read";
  Write(".index", index.substr(0, index.size() / 2));
  EXPECT_EQ(ReadAll().code(), absl::StatusCode::kUnavailable);
}

TEST_F(Damaged, EveryByteOfTheShardsCounts) {
  for (const char* file : {".data-00000-of-00002", ".data-00001-of-00002"}) {
    const std::string shard = Bytes(Prefix() + file);
    for (size_t i = 0; i < shard.size(); ++i) {
      std::string changed = shard;
      changed[i] = static_cast<char>(changed[i] ^ 1);
      Write(file, changed);
      EXPECT_EQ(ReadAll().code(), absl::StatusCode::kDataLoss) << file << " " << i;
    }
    Write(file, shard.substr(0, shard.size() - 1));
    EXPECT_EQ(ReadAll().code(), absl::StatusCode::kUnavailable);
    Write(file, shard);
  }
  fs::remove(Prefix() + ".data-00001-of-00002");
  EXPECT_EQ(ReadAll().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(ReadAll().message()), HasSubstr("bundle.data-00001-of-00002"));
}

// A mapping of the file would end the process here.
TEST_F(Damaged, ATensorOutlivesItsShard) {
  const auto bundle = TensorBundle::Open(Prefix(), kMaxBytes);
  const auto part = (*bundle)->Read("part");
  for (const char* file : {".data-00000-of-00002", ".data-00001-of-00002"})
    fs::resize_file(Prefix() + file, 0);
  EXPECT_THAT(Floats(part), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_EQ((*bundle)->Read("part").status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(Damaged, ACheckpointOfVersion1IsCalledThat) {
  fs::rename(Prefix() + ".index", Prefix());  // as much a table as one of those is
  EXPECT_THAT(std::string(ReadAll().message()), HasSubstr("is a checkpoint of version 1"));
}

// ---- tables of our own ----

std::string Fixed(uint64_t value, size_t size) {
  return {reinterpret_cast<const char*>(&value), size};
}

std::string Block(const std::string& contents, bool compressed) {
  std::string block = contents;
  if (compressed) snappy::Compress(contents.data(), contents.size(), &block);
  block.push_back(compressed ? 1 : 0);
  return block + Fixed(MaskedCrc32c(block.data(), block.size()), 4);
}

std::string Entries(const std::string& entries) { return entries + Fixed(0, 4) + Fixed(1, 4); }

// One data block, an index block of one entry, a footer.
std::string Table(const std::string& entries, bool compressed) {
  const std::string data = Block(Entries(entries), compressed);
  const std::string handle = std::string(1, '\0') + static_cast<char>(data.size() - 5);
  const std::string index =
      Block(Entries(std::string({'\0', '\1', '\2'}) + "z" + handle), compressed);
  std::string footer =
      std::string(2, '\0') + static_cast<char>(data.size()) + static_cast<char>(index.size() - 5);
  footer.resize(40, '\0');
  return data + index + footer + Fixed(0xdb4775248b80fb57u, 8);
}

std::vector<std::string> Read(const std::string& table, absl::Status* status) {
  std::vector<std::string> entries;
  *status = ReadSortedTable(table, [&](std::string_view key, std::string_view value) {
    entries.push_back(std::string(key) + "=" + std::string(value));
    return absl::OkStatus();
  });
  return entries;
}

TEST(SortedTable, SharesPrefixesAndUnfoldsSnappy) {
  const std::string entries = std::string({'\0', '\3', '\1'}) + "abc1" +
                              std::string({'\2', '\1', '\2'}) + "d22" +
                              std::string({'\3', '\0', '\0'});
  for (const bool compressed : {false, true}) {
    absl::Status status;
    EXPECT_THAT(Read(Table(entries, compressed), &status), ElementsAre("abc=1", "abd=22", "abd="));
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST(SortedTable, RefusesEntriesThatCannotBe) {
  for (const std::string& entries :
       {std::string({'\1', '\1', '\0'}) + "a",    // shares what is not there
        std::string({'\0', '\x7f', '\0'}) + "a",  // a key past the end
        std::string({'\0', '\1', '\x7f'}) + "a",  // a value past the end
        std::string({'\0', '\xff', '\xff'})}) {   // no number
    absl::Status status;
    Read(Table(entries, false), &status);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  }
  absl::Status status;
  Read("", &status);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace floe
