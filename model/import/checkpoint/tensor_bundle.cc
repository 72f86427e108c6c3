#include "model/import/checkpoint/tensor_bundle.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/budget.h"
#include "base/crc32c.h"
#include "base/memory_budget.h"
#include "base/nearest.h"
#include "base/quoted.h"
#include "base/read_file.h"
#include "base/status.h"
#include "base/tf_record.h"
#include "model/import/checkpoint/bundle_strings.h"
#include "model/import/checkpoint/copy_region.h"
#include "model/import/checkpoint/sorted_table.h"
#include "tensorflow/core/protobuf/tensor_bundle.pb.h"

namespace floe {

// As the index has it; dtypes and shapes are looked at when a tensor is read.
struct TensorBundle::Entry {
  int dtype = 0;
  absl::InlinedVector<int64_t, 4> dims;
  int shard = 0;
  int64_t offset = 0, size = 0;
  uint32_t crc32c = 0;
  std::vector<std::vector<SliceRange>> slices;
};

namespace {

constexpr int kMostShards = 99999;
constexpr int64_t kEntryBytes = 256;  // of an entry in memory, beside its name
constexpr int64_t kSliceBytes = 64;
// Two bytes of an index may stand for many in memory.
constexpr int64_t kFreeEntryBytes = 32 << 20, kMostEntryUnfolding = 64;
constexpr size_t kMostEntryProto = 1 << 20;
constexpr int kMostDims = 254;  // TensorFlow's

bool IsFile(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

std::string ShardName(const std::string& prefix, int number, int shards) {
  return absl::StrFormat("%s.data-%05d-of-%05d", prefix, number, shards);
}

bool EndsLikeTable(const std::string& path) {
  const auto file = InputFile::Open(path, INT64_MAX);
  if (!file.ok()) return false;
  std::string tail(std::min<size_t>(file->size(), 64), '\0');
  return file->ReadAt(file->size() - tail.size(), tail.data(), tail.size()).ok() &&
         IsSortedTable(tail);
}

absl::Status NoIndex(const std::string& prefix) {
  const std::string how =
      "; a checkpoint is named by its prefix, such as variables/variables or model.ckpt-100";
  if (absl::EndsWith(prefix, ".index") && IsFile(prefix))
    return absl::InvalidArgumentError(absl::StrCat(prefix, " is a checkpoint's index", how));
  if (EndsLikeTable(prefix))
    return absl::InvalidArgumentError(absl::StrCat(
        prefix,
        " is a checkpoint of version 1, which floe does not read: restore it in TensorFlow "
        "and save it again (tf.compat.v1.train.Saver writes version 2)"));
  return absl::UnavailableError(absl::StrCat(prefix, ".index does not exist", how));
}

absl::StatusOr<std::vector<SliceRange>> ParseRegion(const std::string& spec, const Shape& shape) {
  const std::vector<std::string> parts = absl::StrSplit(spec, ' ', absl::SkipEmpty());
  absl::Status bad =
      absl::InvalidArgumentError(absl::StrCat(Quoted(spec), " is no slice of ", shape.ToString()));
  if (parts.size() != static_cast<size_t>(shape.rank()) + 1) return bad;
  const std::vector<std::string> ranges = absl::StrSplit(parts.back(), ':');
  if (ranges.size() != static_cast<size_t>(shape.rank())) return bad;
  std::vector<SliceRange> region;
  for (int d = 0; d < shape.rank(); ++d) {
    SliceRange range{0, shape.dim(d)};
    const std::vector<std::string> numbers = absl::StrSplit(ranges[d], ',');
    if (ranges[d] != "-" &&
        (numbers.size() != 2 || !absl::SimpleAtoi(numbers[0], &range.start) ||
         !absl::SimpleAtoi(numbers[1], &range.length) || range.start < 0 || range.length < 0 ||
         range.start > shape.dim(d) || range.length > shape.dim(d) - range.start))
      return bad;
    region.push_back(range);
  }
  return region;
}

bool IsWhole(const std::vector<SliceRange>& region, const Shape& shape) {
  for (int d = 0; d < shape.rank(); ++d) {
    if (region[d].start != 0 || region[d].length != shape.dim(d)) return false;
  }
  return true;
}

}  // namespace

TensorBundle::TensorBundle(std::string prefix, size_t index_bytes)
    : prefix_(std::move(prefix)),
      most_entry_bytes_(kFreeEntryBytes + kMostEntryUnfolding * static_cast<int64_t>(index_bytes)) {
}
TensorBundle::~TensorBundle() = default;

absl::StatusOr<std::unique_ptr<TensorBundle>> TensorBundle::Open(const std::string& prefix,
                                                                 int64_t max_index_bytes) {
  const std::string path = prefix + ".index";
  if (!IsFile(path)) return NoIndex(prefix);
  FLOE_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(path, max_index_bytes));
  if (!IsSortedTable(file.view()))  // by its end
    return absl::UnavailableError(absl::StrCat(
        path, " is no table of a checkpoint, or cut short, or not all of it has been copied"));
  std::unique_ptr<TensorBundle> bundle(new TensorBundle(prefix, file.size));
  const absl::Status read =
      ReadSortedTable(file.view(), [&bundle](std::string_view key, std::string_view value) {
        return bundle->AddEntry(key, value);
      });
  if (!read.ok()) return Annotate(read, path);
  if (bundle->shards_ == 0)
    return absl::DataLossError(absl::StrCat(path,
                                            ": it has no header; the file is damaged or no "
                                            "checkpoint index of version 2"));
  return bundle;
}

absl::Status TensorBundle::ReadHeader(std::string_view value) {
  tensorflow::BundleHeaderProto header;
  if (!header.ParseFromArray(value.data(), static_cast<int>(value.size())) ||
      header.num_shards() < 1 || header.num_shards() > kMostShards)
    return absl::InvalidArgumentError(
        "its header is not that of a checkpoint of version 2; one of version 1 is to be restored "
        "in TensorFlow and saved again");
  if (header.endianness() != tensorflow::BundleHeaderProto::LITTLE)
    return absl::InvalidArgumentError(
        "the checkpoint was written on a big-endian machine; save it again on a little-endian one");
  constexpr int kVersion = 1;
  if (header.version().min_consumer() > kVersion)
    return absl::InvalidArgumentError(absl::StrCat("the checkpoint needs readers of version ",
                                                   header.version().min_consumer(), ", this is ",
                                                   kVersion));
  shards_ = header.num_shards();
  return absl::OkStatus();
}

absl::Status TensorBundle::AddEntry(std::string_view key, std::string_view value) {
  if (key.empty()) return ReadHeader(value);
  if (shards_ == 0) return absl::DataLossError("its first entry is no header");
  tensorflow::BundleEntryProto proto;
  if (value.size() > kMostEntryProto ||
      !proto.ParseFromArray(value.data(), static_cast<int>(value.size())) ||
      proto.shape().dim_size() > kMostDims)
    return absl::DataLossError(
        absl::StrCat("the entry of ", Quoted(key), " cannot be read; the file is damaged"));
  int64_t bytes = kEntryBytes + static_cast<int64_t>(key.size());
  for (const auto& slice : proto.slices())
    bytes += slice.extent_size() * static_cast<int64_t>(sizeof(SliceRange)) + kSliceBytes;
  entry_bytes_ += bytes;
  if (entry_bytes_ > most_entry_bytes_)
    return absl::ResourceExhaustedError("its entries unfold to far more than the file has");
  FLOE_ASSIGN_OR_RETURN(MemoryShare share, TakeMemory(bytes));
  share_.Add(std::move(share));
  Entry entry;
  entry.dtype = proto.dtype();
  for (const auto& dim : proto.shape().dim()) entry.dims.push_back(dim.size());
  if (proto.shape().unknown_rank()) entry.dims.assign(1, -1);  // refused when it is read
  entry.shard = proto.shard_id();
  entry.offset = proto.offset();
  entry.size = proto.size();
  entry.crc32c = proto.crc32c();
  for (const auto& slice : proto.slices()) {
    std::vector<SliceRange> ranges;
    for (const auto& extent : slice.extent())
      ranges.push_back(
          {extent.start(), extent.has_length_hack_case() ==
                                   tensorflow::TensorSliceProto::Extent::HAS_LENGTH_HACK_NOT_SET
                               ? -1
                               : extent.length()});
    entry.slices.push_back(std::move(ranges));
  }
  entries_.insert_or_assign(std::string(key), std::move(entry));
  return absl::OkStatus();
}

bool TensorBundle::Has(const std::string& name) const { return entries_.count(name) != 0; }

std::vector<std::string> TensorBundle::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) {
    if (name[0] != '\0') names.push_back(name);  // keys of slices begin with zero
  }
  return names;
}

absl::StatusOr<const TensorBundle::Entry*> TensorBundle::Find(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found != entries_.end()) return &found->second;
  return absl::NotFoundError(absl::StrCat("checkpoint ", prefix_, " has no tensor ", Quoted(name),
                                          "; nearest: ", QuotedList(NearestNames(name, Names()))));
}

absl::StatusOr<std::vector<std::vector<SliceRange>>> TensorBundle::Slices(
    const std::string& name) const {
  FLOE_ASSIGN_OR_RETURN(const Entry* entry, Find(name));
  return entry->slices;
}

absl::StatusOr<const InputFile*> TensorBundle::ShardWith(const Entry& entry) {
  if (entry.shard < 0 || entry.shard >= shards_)
    return absl::DataLossError(
        absl::StrCat("it is in shard ", entry.shard, ", and there are ", shards_));
  auto shard = open_.find(entry.shard);
  if (shard == open_.end()) {
    absl::StatusOr<InputFile> opened =
        InputFile::Open(ShardName(prefix_, entry.shard, shards_), INT64_MAX);
    if (absl::IsNotFound(opened.status()))  // unlike a tensor, it may come later
      return absl::UnavailableError(opened.status().message());
    FLOE_RETURN_IF_ERROR(opened.status());
    shard = open_.emplace(entry.shard, *std::move(opened)).first;
  }
  const auto have = static_cast<int64_t>(shard->second.size());
  if (entry.offset < 0 || entry.size < 0)
    return absl::DataLossError(absl::StrCat("the index says that it is the ", entry.size,
                                            " bytes at ", entry.offset, " of ",
                                            shard->second.path()));
  if (entry.offset > have || entry.size > have - entry.offset)
    return absl::UnavailableError(
        absl::StrCat("the file ", shard->second.path(),
                     " is cut short, or not all of it has been copied yet: it has ", have,
                     " bytes, and the values are the ", entry.size, " at byte ", entry.offset,
                     "; copy it again"));
  return &shard->second;
}

// A shard is read and not mapped: one that is cut short while a model is served would end the
// process.
absl::Status TensorBundle::ReadBytes(const Entry& entry, char* to, uint32_t* crc32c) {
  FLOE_ASSIGN_OR_RETURN(const InputFile* shard, ShardWith(entry));
  constexpr size_t kPiece = 256 << 10;  // is in a cache when its checksum is taken
  const auto size = static_cast<size_t>(entry.size);
  *crc32c = 0;
  for (size_t at = 0; at < size; at += kPiece) {
    const size_t piece = std::min(kPiece, size - at);
    FLOE_RETURN_IF_ERROR(shard->ReadAt(static_cast<size_t>(entry.offset) + at, to + at, piece));
    *crc32c = Crc32c(to + at, piece, *crc32c);
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> TensorBundle::ReadEntry(const Entry& entry) {
  FLOE_ASSIGN_OR_RETURN(const DType dtype, DTypeFromNumber(entry.dtype));
  if (IsHandle(dtype))
    return absl::InvalidArgumentError(
        absl::StrCat("a ", DTypeName(dtype), " in a checkpoint is not supported"));
  const size_t element = DTypeSize(dtype);
  const size_t element_bytes = element == 0 ? sizeof(std::string) : element;
  FLOE_ASSIGN_OR_RETURN(const int64_t elements,
                        CheckedElements(absl::Span<const int64_t>(entry.dims), element_bytes));
  FLOE_RETURN_IF_ERROR(CheckValueBytes(elements * static_cast<int64_t>(element_bytes)));
  FLOE_RETURN_IF_ERROR(ShardWith(entry).status());
  Shape shape;
  for (const int64_t dim : entry.dims) shape.push_back(dim);
  uint32_t crc = 0;
  if (dtype == DType::kString) {
    BudgetVector<char> bytes(static_cast<size_t>(entry.size));
    FLOE_RETURN_IF_ERROR(ReadBytes(entry, bytes.data(), &crc));
    return StringsFromBundle({bytes.data(), bytes.size()}, shape, entry.crc32c);
  }
  const int64_t expected = elements * static_cast<int64_t>(element);
  if (entry.size != expected)
    return absl::DataLossError(absl::StrCat("a ", DTypeName(dtype), shape.ToString(), " has ",
                                            expected, " bytes, the index says ", entry.size));
  Tensor tensor = Tensor::Allocate(dtype, shape);
  FLOE_RETURN_IF_ERROR(ReadBytes(entry, static_cast<char*>(tensor.mutable_data()), &crc));
  if (MaskCrc32c(crc) != entry.crc32c)
    return absl::DataLossError(absl::StrCat(
        "its checksum is wrong: ", ShardName(prefix_, entry.shard, shards_), " is damaged"));
  return tensor;
}

absl::StatusOr<Tensor> TensorBundle::ReadRegion(const std::string& name, const Entry& entry,
                                                const std::vector<SliceRange>& region) {
  FLOE_ASSIGN_OR_RETURN(const DType dtype, DTypeFromNumber(entry.dtype));
  Shape shape, whole;
  for (const SliceRange& range : region) shape.push_back(range.length);
  for (const int64_t dim : entry.dims) whole.push_back(dim);
  const size_t element = dtype == DType::kString ? sizeof(std::string) : DTypeSize(dtype);
  FLOE_ASSIGN_OR_RETURN(const int64_t elements, CheckedElements(shape.dims(), element));
  FLOE_RETURN_IF_ERROR(CheckValueBytes(elements * static_cast<int64_t>(element)));
  Tensor out = Tensor::Allocate(dtype, shape);
  if (dtype != DType::kString && out.bytes() != 0) std::memset(out.mutable_data(), 0, out.bytes());
  int64_t copied = 0;
  std::vector<std::vector<SliceRange>> slices = entry.slices;
  if (slices.empty()) slices.emplace_back(entry.dims.size());
  for (const std::vector<SliceRange>& ranges : slices) {
    FLOE_ASSIGN_OR_RETURN(const std::vector<SliceRange> place, PlaceOfSlice(ranges, whole));
    if (OverlapElements(place, region) == 0) continue;
    const Entry* part = &entry;
    if (!entry.slices.empty()) {
      FLOE_ASSIGN_OR_RETURN(part, Find(SliceKey(name, ranges)));
    }
    if (!part->slices.empty()) {
      if (part != &entry) return absl::DataLossError("a slice of it has slices");
    }
    FLOE_ASSIGN_OR_RETURN(const Tensor tensor, ReadEntry(*part));
    if (place == region)
      return tensor.dtype() == dtype && tensor.shape() == shape
                 ? absl::StatusOr<Tensor>(tensor)
                 : absl::DataLossError("a slice is of another type or shape");
    FLOE_RETURN_IF_ERROR(CopyRegion(tensor, place, region, &out));
    copied += OverlapElements(place, region);
    if (copied > elements) return absl::DataLossError("its slices overlap");
  }
  if (copied != elements)
    return absl::DataLossError(absl::StrCat("its slices hold ", copied, " of the ", elements,
                                            " elements of ", shape.ToString()));
  return out;
}

absl::StatusOr<Tensor> TensorBundle::ReadPlace(const std::string& name, const RegionOf& region_of) {
  FLOE_ASSIGN_OR_RETURN(const Entry* entry, Find(name));
  const auto read = [&]() -> absl::StatusOr<Tensor> {
    FLOE_RETURN_IF_ERROR(CheckedElements(absl::Span<const int64_t>(entry->dims), 1).status());
    Shape shape;
    for (const int64_t dim : entry->dims) shape.push_back(dim);
    FLOE_ASSIGN_OR_RETURN(const std::vector<SliceRange> region, region_of(shape));
    if (entry->slices.empty() && IsWhole(region, shape)) return ReadEntry(*entry);
    return ReadRegion(name, *entry, region);
  };
  absl::StatusOr<Tensor> tensor = read();
  if (tensor.ok()) return tensor;
  return Annotate(tensor.status(), absl::StrCat("checkpoint ", prefix_, ", tensor ", Quoted(name)));
}

absl::StatusOr<Tensor> TensorBundle::Read(const std::string& name) { return ReadPart(name, ""); }

absl::StatusOr<Tensor> TensorBundle::ReadPart(const std::string& name, const std::string& spec) {
  return ReadPlace(name, [&spec](const Shape& shape) -> absl::StatusOr<std::vector<SliceRange>> {
    if (!spec.empty()) return ParseRegion(spec, shape);
    return PlaceOfSlice(std::vector<SliceRange>(static_cast<size_t>(shape.rank())), shape);
  });
}

absl::StatusOr<Tensor> TensorBundle::ReadSlice(const std::string& name,
                                               const std::vector<SliceRange>& ranges) {
  return ReadPlace(name, [&ranges](const Shape& shape) { return PlaceOfSlice(ranges, shape); });
}

}  // namespace floe
