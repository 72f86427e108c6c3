// A checkpoint of TensorFlow, version 2: PREFIX.index, a table of names, and the shards
// PREFIX.data-00000-of-00001 and so on with the bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/memory_budget.h"
#include "base/read_file.h"
#include "model/import/checkpoint/slice_key.h"
#include "model/tensor.h"

namespace tensorflow {
class BundleEntryProto;
}

namespace floe {

// Threading: one thread; the tensors that were read may go to any.
class TensorBundle {
 public:
  // UNAVAILABLE: there is no PREFIX.index, or its end is missing. INVALID_ARGUMENT: a checkpoint of
  // another version or byte order, by that name. DATA_LOSS: a damaged index.
  static absl::StatusOr<std::unique_ptr<TensorBundle>> Open(const std::string& prefix,
                                                            int64_t max_index_bytes);
  ~TensorBundle();

  bool Has(const std::string& name) const;
  // Of whole tensors, sorted.
  std::vector<std::string> Names() const;
  // Ranges of a partitioned tensor's slices, in the order of the file; empty for any other.
  absl::StatusOr<std::vector<std::vector<SliceRange>>> Slices(const std::string& name) const;

  // A tensor in memory of its own, put together where it was partitioned. The checksum has been
  // looked at. Errors name tensor and shard: NOT_FOUND with the nearest names; DATA_LOSS;
  // UNAVAILABLE for a shard that is not there or too short; INVALID_ARGUMENT for dtypes that floe
  // does not have.
  absl::StatusOr<Tensor> Read(const std::string& name);
  // The part of a tensor that `spec` means, as RestoreV2 takes it: "" for all of it, else the whole
  // shape and a range for each dim, "3 4 0,2:-".
  absl::StatusOr<Tensor> ReadPart(const std::string& name, const std::string& spec);
  // The same with ranges as Slices has them.
  absl::StatusOr<Tensor> ReadSlice(const std::string& name, const std::vector<SliceRange>& ranges);

 private:
  struct Entry;
  TensorBundle(std::string prefix, size_t index_bytes);
  absl::Status AddEntry(std::string_view key, std::string_view value);
  absl::Status ReadHeader(std::string_view value);
  absl::StatusOr<const Entry*> Find(const std::string& name) const;
  using RegionOf = std::function<absl::StatusOr<std::vector<SliceRange>>(const Shape& whole)>;
  absl::StatusOr<Tensor> ReadPlace(const std::string& name, const RegionOf& region_of);
  absl::StatusOr<Tensor> ReadEntry(const Entry& entry);
  absl::StatusOr<Tensor> ReadRegion(const std::string& name, const Entry& entry,
                                    const std::vector<SliceRange>& region);
  absl::Status ReadBytes(const Entry& entry, char* to, uint32_t* crc32c);
  absl::StatusOr<const InputFile*> ShardWith(const Entry& entry);

  const std::string prefix_;
  const int64_t most_entry_bytes_;
  int64_t entry_bytes_ = 0;
  MemoryShare share_;  // of the entries
  int shards_ = 0;
  std::map<std::string, Entry> entries_;
  std::map<int, InputFile> open_;  // shards
};

}  // namespace floe
