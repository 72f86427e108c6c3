// TFRecord files: records of bytes, each with its length and checksums
// (tensorflow.org/tutorials/load_data/tfrecord, "TFRecords format details").
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace floe {

// CRC-32C as these files store it: rotated and offset, so that data that holds checksums keeps them
// apart from its own.
uint32_t MaskedCrc32c(const void* data, size_t size);
uint32_t MaskCrc32c(uint32_t crc32c);

// Reads the records of an uncompressed file that is in memory. Threading: one thread at a time.
class TfRecordReader {
 public:
  explicit TfRecordReader(std::string_view file) : left_(file) {}

  // True: `*record` is the next one, a view into the file; false: there are no more. DATA_LOSS, for
  // good, when the file is cut short or damaged; the message names the record, counted from 1.
  absl::StatusOr<bool> Next(std::string_view* record);
  int64_t count() const { return count_; }  // of records read

 private:
  absl::Status Damaged(const std::string& what) const;
  absl::StatusOr<std::string_view> Take(size_t size, const char* what);

  std::string_view left_;
  int64_t count_ = 0;
};

// Appends a record.
void AppendTfRecord(std::string_view record, std::string* file);

}  // namespace floe
