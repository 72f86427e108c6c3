#include "model/import/keras/hdf5_file.h"

#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/budget.h"
#include "base/quoted.h"
#include "base/status.h"

namespace floe::keras {
namespace {

using hdf5::Dataset;
using hdf5::EntryKind;
using hdf5::Group;
using hdf5::Layout;
using hdf5::Reader;
using Parts = std::vector<std::string>;

constexpr size_t kMaxGroupDepth = 64;
constexpr int64_t kSmallBytes = int64_t{1} << 16;

absl::Status Wrong(const std::string& path, const absl::Status& why) {
  return Annotate(why, absl::StrCat("HDF5 object ", Quoted(path)));
}
absl::Status Wrong(const std::string& path, const std::string& why) {
  return Wrong(path, absl::InvalidArgumentError(why));
}

Parts PartsOf(const std::string& path) {
  Parts parts;
  for (const absl::string_view part : absl::StrSplit(path, '/', absl::SkipEmpty()))
    if (part != ".") parts.emplace_back(part);
  return parts;
}

EntryKind KindOf(std::string_view description) { return Reader(description).Take<EntryKind>(); }

// In memory of its own: a bool may be any byte in the file.
Tensor Copied(DType dtype, const Shape& shape, const void* from) {
  Tensor tensor = Tensor::Allocate(dtype, shape);
  std::memcpy(tensor.mutable_data(), from, tensor.bytes());
  if (dtype != DType::kBool) return tensor;
  auto* const bytes = static_cast<uint8_t*>(tensor.mutable_data());
  for (int64_t i = 0; i < tensor.elements(); ++i) bytes[i] = bytes[i] != 0 ? 1 : 0;
  return tensor;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Hdf5File>> Hdf5File::Open(std::string_view bytes,
                                                         std::shared_ptr<const void> owner) {
  static_assert(std::endian::native == std::endian::little);
  if (bytes.empty()) return absl::InvalidArgumentError("an HDF5 file without a byte");
  auto file = std::unique_ptr<Hdf5File>(new Hdf5File(bytes, std::move(owner)));
  absl::Status started = file->client_.Start();
  if (!started.ok()) return Annotate(started, "HDF5");
  return file;
}

absl::StatusOr<const Group*> Hdf5File::GroupAt(const std::string& path) const {
  std::string at;
  const Group* group = nullptr;
  Parts parts = PartsOf(path);
  if (parts.size() > kMaxGroupDepth) return Wrong(path, "nested too deep");
  // From the root, which has no entry of its own.
  for (size_t depth = 0; depth <= parts.size(); ++depth) {
    if (depth > 0) {
      const Group::Named* const entry = Group::Find(group->entries, parts[depth - 1]);
      if (entry == nullptr) return nullptr;
      const EntryKind kind = KindOf(entry->second);
      if (kind == EntryKind::kRefused)
        return Wrong(path, hdf5::ParseDataset(entry->second, bytes_.size()).status());
      if (kind != EntryKind::kGroup) return nullptr;
      absl::StrAppend(&at, depth > 1 ? "/" : "", parts[depth - 1]);
    }
    std::unique_ptr<Group>& known = groups_[at];
    if (known == nullptr) {
      absl::StatusOr<std::unique_ptr<Group>> listed = client_.List(at);
      if (!listed.ok()) return Wrong(at, listed.status());
      known = *std::move(listed);
    }
    group = known.get();
  }
  return group;
}

absl::StatusOr<std::string_view> Hdf5File::EntryAt(const Parts& parts) const {
  const std::string path = absl::StrJoin(parts, "/");
  FLOE_ASSIGN_OR_RETURN(const Group* group,
                        GroupAt(absl::StrJoin(parts.begin(), parts.end() - 1, "/")));
  const Group::Named* const entry =
      group == nullptr ? nullptr : Group::Find(group->entries, parts.back());
  if (entry == nullptr) return absl::NotFoundError(absl::StrCat("the file has no ", Quoted(path)));
  return entry->second;
}

bool Hdf5File::Has(const std::string& path) const {
  const Parts parts = PartsOf(path);
  if (parts.empty()) return true;
  if (parts.size() > kMaxGroupDepth) return false;
  const auto entry = EntryAt(parts);
  return entry.ok() && KindOf(*entry) != EntryKind::kRefused;
}

std::vector<std::string> Hdf5File::Names(const std::string& path) const {
  std::vector<std::string> names;
  const auto group = GroupAt(path);
  if (!group.ok() || *group == nullptr) return names;
  for (const auto& [name, description] : (*group)->entries) names.emplace_back(name);
  return names;
}

absl::StatusOr<Tensor> Hdf5File::Read(const std::string& path) const {
  const Parts parts = PartsOf(path);
  if (parts.size() > kMaxGroupDepth) return Wrong(path, "nested too deep");
  if (parts.empty()) return Wrong(path, "not an array");
  FLOE_ASSIGN_OR_RETURN(const std::string_view entry, EntryAt(parts));
  const absl::StatusOr<Dataset> data = hdf5::ParseDataset(entry, bytes_.size());
  if (!data.ok()) return Wrong(path, data.status());
  FLOE_RETURN_IF_ERROR(CheckValueBytes(data->bytes));
  if (data->bytes == 0) return Tensor::Allocate(data->dtype, data->shape);
  if (data->layout == Layout::kPlain) return InPlace(*data);
  absl::StatusOr<Tensor> filled = client_.Fill(absl::StrJoin(parts, "/"), *data);
  if (!filled.ok()) return Wrong(path, filled.status());
  if (data->dtype != DType::kBool && data->bytes > kSmallBytes) return filled;
  return Copied(data->dtype, data->shape, filled->data());
}

// The bytes of the file themselves, where they can be used as they are.
Tensor Hdf5File::InPlace(const Dataset& data) const {
  const char* const begin = bytes_.data() + data.at;
  if (data.dtype == DType::kBool || reinterpret_cast<uintptr_t>(begin) % DTypeSize(data.dtype) != 0)
    return Copied(data.dtype, data.shape, begin);
  return Tensor::Borrow(data.dtype, data.shape, owner_, begin);
}

absl::StatusOr<std::vector<std::string>> Hdf5File::Strings(const std::string& path,
                                                           const std::string& name) const {
  FLOE_ASSIGN_OR_RETURN(const Group* group, GroupAt(path));
  if (group == nullptr) return absl::NotFoundError(absl::StrCat("the file has no ", Quoted(path)));
  std::vector<std::string> all;
  const auto add = [&](const std::string& attribute) -> absl::StatusOr<bool> {
    const Group::Named* const found = Group::Find(group->attributes, attribute);
    if (found == nullptr) return false;
    auto strings = hdf5::ParseStrings(found->second);
    if (!strings.ok()) return Wrong(attribute, strings.status());
    for (std::string& text : *strings) all.push_back(std::move(text));
    return true;
  };
  FLOE_ASSIGN_OR_RETURN(const bool whole, add(name));
  for (int part = 0; !whole; ++part) {
    FLOE_ASSIGN_OR_RETURN(const bool more, add(absl::StrCat(name, part)));
    if (!more) break;
  }
  return all;
}

}  // namespace floe::keras
