#include "base/tf_record.h"

#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/status.h"

namespace floe {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are read as they lie");

template <typename T>
T Load(std::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

template <typename T>
void Store(T value, std::string* to) {
  to->append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

uint32_t MaskCrc32c(uint32_t crc32c) { return ((crc32c >> 15) | (crc32c << 17)) + 0xa282ead8u; }

uint32_t MaskedCrc32c(const void* data, size_t size) { return MaskCrc32c(Crc32c(data, size)); }

absl::Status TfRecordReader::Damaged(const std::string& what) const {
  return absl::DataLossError(absl::StrCat("record ", count_ + 1, ": ", what));
}

// So many bytes and the checksum behind them.
absl::StatusOr<std::string_view> TfRecordReader::Take(size_t size, const char* what) {
  if (left_.size() < sizeof(uint32_t) || left_.size() - sizeof(uint32_t) < size)
    return Damaged(absl::StrCat("the file ends within its ", what));
  const std::string_view bytes = left_.substr(0, size);
  const auto stored = Load<uint32_t>(left_.substr(size));
  const uint32_t found = MaskedCrc32c(bytes.data(), bytes.size());
  if (stored != found)
    return Damaged(absl::StrCat("the checksum of its ", what, " is ", absl::Hex(stored),
                                " and should be ", absl::Hex(found),
                                "; the file is damaged or no TFRecord file"));
  left_.remove_prefix(size + sizeof(uint32_t));
  return bytes;
}

absl::StatusOr<bool> TfRecordReader::Next(std::string_view* record) {
  if (left_.empty()) return false;
  const std::string_view before = left_;
  const auto read = [&]() -> absl::StatusOr<bool> {
    FLOE_ASSIGN_OR_RETURN(const std::string_view length, Take(sizeof(uint64_t), "length"));
    FLOE_ASSIGN_OR_RETURN(*record, Take(Load<uint64_t>(length), "data"));
    return true;
  };
  absl::StatusOr<bool> next = read();
  if (next.ok()) {
    ++count_;
  } else {
    left_ = before;
  }
  return next;
}

void AppendTfRecord(std::string_view record, std::string* file) {
  const auto length = static_cast<uint64_t>(record.size());
  Store(length, file);
  Store(MaskedCrc32c(&length, sizeof length), file);
  file->append(record);
  Store(MaskedCrc32c(record.data(), record.size()), file);
}

}  // namespace floe
