// Any bytes as a checkpoint: as the file of its index, as a block of it, or as entries that an
// index is made of; what is left is the shard. Checksums are right but in the first case. Every
// tensor is read, and a part of it.
#include <snappy.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "base/status.h"
#include "base/tf_record.h"
#include "model/import/checkpoint/tensor_bundle.h"
#include "tensorflow/core/protobuf/tensor_bundle.pb.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/random.h"

namespace floe::fuzz {
namespace {

constexpr int64_t kMaxBytes = 1 << 20;

// Where this process has its checkpoint.
const std::string& Prefix() {
  static const std::string prefix = [] {
    const auto folder = std::filesystem::temp_directory_path() /
                        ("floe_bundle_fuzzer_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
    return (folder / "bundle").string();
  }();
  return prefix;
}

void Write(const std::string& file, std::string_view bytes) {
  std::ofstream(Prefix() + file, std::ios::binary) << bytes;
}

std::string Fixed(uint64_t value, size_t size) {
  return {reinterpret_cast<const char*>(&value), size};
}

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7) bytes.push_back(static_cast<char>(value | 128));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

// Without shared prefixes.
std::string Entry(std::string_view key, std::string_view value) {
  return Varint(0) + Varint(key.size()) + Varint(value.size()) + std::string(key) +
         std::string(value);
}

std::string Block(const std::string& entries, bool compressed) {
  const std::string contents = entries + Fixed(0, 4) + Fixed(1, 4);
  std::string block = contents;
  if (compressed) snappy::Compress(contents.data(), contents.size(), &block);
  block.push_back(compressed ? 1 : 0);
  return block + Fixed(MaskedCrc32c(block.data(), block.size()), 4);
}

std::string Table(const std::string& entries, bool compressed) {
  const std::string data = Block(entries, compressed);
  const std::string index = Block(Entry("z", Varint(0) + Varint(data.size() - 5)), compressed);
  std::string footer = Varint(0) + Varint(0) + Varint(data.size()) + Varint(index.size() - 5);
  footer.resize(40, '\0');
  return data + index + footer + Fixed(0xdb4775248b80fb57u, 8);
}

// So many bytes as the next one says.
std::string_view Take(std::string_view* bytes) {
  if (bytes->empty()) return {};
  const auto size = static_cast<unsigned char>(bytes->front());
  const std::string_view part = bytes->substr(1, size);
  bytes->remove_prefix(1 + part.size());
  return part;
}

// The checksum that the entry's bytes have, where they are there.
void Correct(tensorflow::BundleEntryProto* entry, std::string_view shard) {
  const auto have = static_cast<int64_t>(shard.size());
  if (entry->offset() < 0 || entry->size() < 0 || entry->offset() > have ||
      entry->size() > have - entry->offset())
    return;
  entry->set_crc32c(
      MaskedCrc32c(shard.data() + entry->offset(), static_cast<size_t>(entry->size())));
}

// Pairs of a key and an entry, an empty pair, the shard.
std::string MadeIndex(std::string_view bytes, std::string_view* shard, bool compressed) {
  std::vector<std::pair<std::string_view, std::string_view>> pairs;
  for (;;) {
    const std::string_view key = Take(&bytes), value = Take(&bytes);
    if (key.empty() && value.empty()) break;
    pairs.emplace_back(key, value);
  }
  *shard = bytes;
  tensorflow::BundleHeaderProto header;
  header.set_num_shards(1);
  std::string entries = Entry("", header.SerializeAsString());
  for (const auto& [key, value] : pairs) {
    tensorflow::BundleEntryProto entry;
    const bool parsed = entry.ParseFromArray(value.data(), static_cast<int>(value.size()));
    if (parsed) Correct(&entry, *shard);
    entries += Entry(key, parsed ? entry.SerializeAsString() : std::string(value));
  }
  return Table(entries, compressed);
}

absl::Status ReadAll() {
  auto bundle = TensorBundle::Open(Prefix(), kMaxBytes);
  FLOE_RETURN_IF_ERROR(bundle.status());
  absl::Status status;
  for (const std::string& name : (*bundle)->Names()) {
    for (const char* part : {"", "4 0,2", "3 4 0,2:-"}) {
      const auto tensor = (*bundle)->ReadPart(name, part);
      if (part[0] == '\0') status.Update(tensor.status());
      if (!tensor.ok()) continue;
      if (tensor->dtype() != DType::kString) Touch(tensor->data(), tensor->bytes());
      for (int64_t i = 0; tensor->dtype() == DType::kString && i < tensor->elements(); ++i)
        Touch(tensor->as<std::string>()[i].data(), tensor->as<std::string>()[i].size());
    }
  }
  return status;
}

}  // namespace

absl::Status RunUnit(const std::string& unit) {
  std::string_view bytes = unit, shard;
  if (bytes.empty()) return absl::OkStatus();
  const char kind = bytes.front();
  bytes.remove_prefix(1);
  std::string index(bytes);
  if (kind == 'b') index = Table(index, false);
  if (kind != 'i' && kind != 'b') index = MadeIndex(bytes, &shard, kind == 'c');
  Write(".index", index);
  Write(".data-00000-of-00001", shard);
  Budget budget({.max_value_bytes = int64_t{16} << 20, .max_bytes = int64_t{64} << 20});
  const BudgetScope scope(&budget);
  return CatchOutOfMemory(ReadAll);
}

std::string MutateUnit(const std::string& bytes, size_t max_size, Random&) {
  return MutateBytes(bytes, max_size);
}

std::string CrossUnits(const std::string& one, const std::string& other, Random& random) {
  return SpliceBytes(one, other, random);
}

}  // namespace floe::fuzz
