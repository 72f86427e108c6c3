#include "model/import/checkpoint/sorted_table.h"

#include <snappy.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/memory_budget.h"
#include "base/status.h"
#include "base/tf_record.h"
#include "base/varint.h"

namespace floe {
namespace {

constexpr size_t kFooter = 48;
constexpr size_t kTrailer = 5;  // a block's compression and checksum
constexpr uint64_t kMagic = 0xdb4775248b80fb57u;
// Snappy's longest copy is 64 bytes for three.
constexpr uint64_t kMostUnfolding = 64;
constexpr int64_t kFreeKeyBytes = 16 << 20;

absl::Status Damaged(const std::string& what) {
  return absl::DataLossError(absl::StrCat(what, "; the file is damaged or no checkpoint index"));
}

template <typename T>
T Fixed(std::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

struct BlockHandle {
  uint64_t offset = 0, size = 0;
};

bool TakeHandle(std::string_view* bytes, BlockHandle* handle) {
  return TakeVarint(bytes, &handle->offset) && TakeVarint(bytes, &handle->size);
}

// A block's bytes: a view into the file, or `storage` when they were compressed.
struct Block {
  std::string_view bytes;
  std::string storage;
  MemoryShare memory;
};

class Reader {
 public:
  Reader(std::string_view file, const TableEntry& entry) : file_(file), entry_(entry) {}

  absl::Status Run() {
    if (!IsSortedTable(file_)) return Damaged("its last bytes are not those of a table");
    std::string_view footer = file_.substr(file_.size() - kFooter);
    BlockHandle meta, index;
    if (!TakeHandle(&footer, &meta) || !TakeHandle(&footer, &index))
      return Damaged("its footer cannot be read");
    return ForEach(index, [this](std::string_view, std::string_view value) {
      BlockHandle block;
      if (!TakeHandle(&value, &block)) return Damaged("its index cannot be read");
      return ForEach(block, entry_);
    });
  }

 private:
  absl::Status Open(const BlockHandle& handle, Block* block) {
    if (handle.offset > file_.size() || handle.size > file_.size() - handle.offset ||
        file_.size() - handle.offset - handle.size < kTrailer)
      return Damaged(absl::StrCat("the block of ", handle.size, " bytes at ", handle.offset,
                                  " is past its end"));
    // Every block is read once; a file whose index repeats itself would never end.
    read_ += handle.size + kTrailer;
    if (read_ > file_.size()) return Damaged("its blocks overlap");
    const std::string_view stored = file_.substr(handle.offset, handle.size + kTrailer);
    const auto crc = Fixed<uint32_t>(stored.substr(handle.size + 1));
    if (crc != MaskedCrc32c(stored.data(), handle.size + 1))
      return Damaged(absl::StrCat("the checksum of the block at ", handle.offset, " is wrong"));
    block->bytes = stored.substr(0, handle.size);
    const char compression = stored[handle.size];
    if (compression == 0) return absl::OkStatus();
    if (compression != 1)
      return Damaged(absl::StrCat("the block at ", handle.offset, " has compression ",
                                  static_cast<int>(compression), ", which nobody knows"));
    return Unfold(handle.offset, block);
  }

  static absl::Status Unfold(uint64_t offset, Block* block) {
    size_t size = 0;
    if (!snappy::GetUncompressedLength(block->bytes.data(), block->bytes.size(), &size) ||
        size > block->bytes.size() * kMostUnfolding)
      return Damaged(absl::StrCat("the Snappy block at ", offset, " has no length that can be"));
    FLOE_ASSIGN_OR_RETURN(block->memory, TakeMemory(static_cast<int64_t>(size)));
    if (!snappy::Uncompress(block->bytes.data(), block->bytes.size(), &block->storage))
      return Damaged(absl::StrCat("the Snappy block at ", offset, " cannot be unfolded"));
    block->bytes = block->storage;
    return absl::OkStatus();
  }

  absl::Status ForEach(const BlockHandle& handle, const TableEntry& entry) {
    Block block;
    FLOE_RETURN_IF_ERROR(Open(handle, &block));
    std::string_view rest = block.bytes;
    absl::Status bad = Damaged(absl::StrCat("the block at ", handle.offset, " is malformed"));
    if (rest.size() < sizeof(uint32_t)) return bad;
    const uint64_t restarts = Fixed<uint32_t>(rest.substr(rest.size() - sizeof(uint32_t)));
    const uint64_t tail = (restarts + 1) * sizeof(uint32_t);
    if (tail > rest.size()) return bad;
    rest.remove_suffix(tail);
    std::string key;
    while (!rest.empty()) {
      uint64_t shared = 0, own = 0, size = 0;
      if (!TakeVarint(&rest, &shared) || !TakeVarint(&rest, &own) || !TakeVarint(&rest, &size) ||
          shared > key.size())
        return bad;
#ifndef FLOE_FUZZ_PLANTED_BUG  // a check left out, for scripts/fuzz --self-test
      if (own > rest.size() || size > rest.size() - own) return bad;
#endif
      key.resize(shared);
      key.append(rest.substr(0, own));
      key_bytes_ += static_cast<int64_t>(key.size());
      if (key_bytes_ > kFreeKeyBytes + static_cast<int64_t>(file_.size() * kMostUnfolding))
        return absl::ResourceExhaustedError("its keys unfold to far more than the file has");
      FLOE_RETURN_IF_ERROR(entry(key, rest.substr(own, size)));
      rest.remove_prefix(own + size);
    }
    return absl::OkStatus();
  }

  const std::string_view file_;
  const TableEntry& entry_;
  uint64_t read_ = 0;
  int64_t key_bytes_ = 0;
};

}  // namespace

bool IsSortedTable(std::string_view file) {
  return file.size() >= kFooter &&
         Fixed<uint64_t>(file.substr(file.size() - sizeof(uint64_t))) == kMagic;
}

absl::Status ReadSortedTable(std::string_view file, const TableEntry& entry) {
  return Reader(file, entry).Run();
}

}  // namespace floe
