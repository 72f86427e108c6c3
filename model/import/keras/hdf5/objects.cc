#include "model/import/keras/hdf5/objects.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/import/keras/hdf5/element_type.h"

namespace floe::keras::hdf5 {
namespace {

absl::Status Refuse(const std::string& why) { return absl::InvalidArgumentError(why); }

// Whether memory was what libhdf5's last call lacked.
bool OutOfMemory() {
  bool found = false;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_DOWNWARD,
      [](unsigned, const H5E_error2_t* error, void* to) -> herr_t {
        if (error->min_num == H5E_NOSPACE || error->min_num == H5E_CANTALLOC)
          *static_cast<bool*>(to) = true;
        return 0;
      },
      &found);
  return found;
}

absl::Status Damaged(const std::string& what) {
  if (OutOfMemory())
    return absl::ResourceExhaustedError(what + " needs more memory than it may take");
  return Refuse(what + " is damaged or cut off");
}

// ---- attributes ----

using Strings = std::vector<std::string>;

absl::StatusOr<Strings> FixedStrings(hid_t attribute, hid_t type, size_t count, size_t element) {
  std::vector<char> text(count * element);
  if (H5Aread(attribute, type, text.data()) < 0) return Damaged("the attribute");
  Strings all;
  for (size_t k = 0; k < count; ++k) {
    const char* const begin = text.data() + k * element;
    all.emplace_back(begin, strnlen(begin, element));
  }
  return all;
}

absl::StatusOr<Strings> VariableStrings(hid_t attribute, hid_t type, hid_t space, size_t count,
                                        size_t most_bytes) {
  std::vector<char*> texts(count, nullptr);
  const Id memory(H5Tcopy(type), H5Tclose);
  if (H5Aread(attribute, memory.get(), texts.data()) < 0) return Damaged("the attribute");
  const absl::Cleanup free = [&] {
    H5Dvlen_reclaim(memory.get(), space, H5P_DEFAULT, texts.data());
  };
  // Many may be one and the same in the file.
  size_t bytes = 0;
  for (const char* text : texts) bytes += text == nullptr ? 0 : std::strlen(text);
  if (bytes > most_bytes) return Refuse("an attribute whose strings are longer than the file");
  Strings all;
  for (const char* text : texts) all.emplace_back(text == nullptr ? "" : text);
  return all;
}

absl::StatusOr<Strings> ReadStrings(hid_t object, const char* name, uint64_t file_size) {
  const Id attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose);
  if (!attribute.ok()) return Damaged("the attribute");
  const Id type(H5Aget_type(attribute.get()), H5Tclose);
  const Id space(H5Aget_space(attribute.get()), H5Sclose);
  if (!type.ok() || !space.ok()) return Damaged("the attribute");
  const hssize_t count = H5Sget_simple_extent_npoints(space.get());
  if (count <= 0) return Strings();  // an empty list is written as one of numbers
  if (H5Tget_class(type.get()) != H5T_STRING) return Refuse("an attribute without strings");
  const size_t element = H5Tget_size(type.get());
  if (element == 0 || static_cast<uint64_t>(count) > file_size / element)
    return Refuse("an attribute larger than the file");
  return H5Tis_variable_str(type.get()) > 0
             ? VariableStrings(attribute.get(), type.get(), space.get(), count, file_size)
             : FixedStrings(attribute.get(), type.get(), count, element);
}

// ---- lists of names ----

// Names that libhdf5 hands to a function in C, one after another.
struct Names {
  std::vector<std::pair<std::string, H5L_type_t>> all;
  size_t bytes = 0, most_bytes = 0;

  herr_t Add(const char* name, H5L_type_t type) {
    constexpr size_t kOfEach = 64;  // what a name takes beside its letters
    const size_t length = std::strlen(name);
    if (most_bytes - bytes < length + kOfEach) return -1;
    bytes += length + kOfEach;
    try {
      all.emplace_back(name, type);
    } catch (const std::bad_alloc&) {
      return -1;
    }
    return 0;
  }
};

herr_t AddAttribute(hid_t, const char* name, const H5A_info_t*, void* names) {
  return static_cast<Names*>(names)->Add(name, H5L_TYPE_HARD);
}
herr_t AddLink(hid_t, const char* name, const H5L_info_t* info, void* names) {
  return static_cast<Names*>(names)->Add(name, info->type);
}

absl::Status WriteAttributes(hid_t group, uint64_t file_size, size_t most_bytes, Writer* list) {
  Names names{.most_bytes = most_bytes};
  if (H5Aiterate2(group, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, AddAttribute, &names) < 0)
    return Damaged("the group's list of attributes");
  list->Add(static_cast<uint32_t>(names.all.size()));
  for (const auto& [name, type] : names.all) {
    list->AddText(name);
    const absl::StatusOr<Strings> strings = ReadStrings(group, name.c_str(), file_size);
    if (!strings.ok()) {
      list->Add(kRefused);
      list->AddText(std::string(strings.status().message()));
      continue;
    }
    list->Add(static_cast<uint32_t>(strings->size()));
    for (const std::string& text : *strings) list->AddText(text);
    if (list->size() > most_bytes) return Refuse("the group's attributes are longer than the file");
  }
  return absl::OkStatus();
}

// ---- arrays ----

absl::Status CheckFilters(hid_t creation) {
  const int filters = H5Pget_nfilters(creation);
  for (int k = 0; k < filters; ++k) {
    unsigned flags = 0, config = 0;
    size_t values = 0;
    const H5Z_filter_t filter =
        H5Pget_filter2(creation, k, &flags, &values, nullptr, 0, nullptr, &config);
    if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE &&
        filter != H5Z_FILTER_FLETCHER32)
      return Refuse(absl::StrCat("filter ", filter, " is not supported; only gzip is"));
  }
  return absl::OkStatus();
}

// Where the elements lie; refuses what lies outside the file.
absl::StatusOr<H5D_layout_t> LayoutOf(hid_t creation) {
  if (H5Pget_external_count(creation) > 0)
    return Refuse("external storage, its numbers lie in another file; save the model again");
  const H5D_layout_t layout = H5Pget_layout(creation);
  if (layout == H5D_VIRTUAL)
    return Refuse("a virtual dataset, its numbers lie elsewhere; save the model again");
  if (layout != H5D_CONTIGUOUS && layout != H5D_CHUNKED && layout != H5D_COMPACT)
    return Refuse("a layout that is not known");
  return layout;
}

absl::StatusOr<std::vector<hsize_t>> DimsOf(hid_t space) {
  if (H5Sget_simple_extent_type(space) == H5S_NULL) return Refuse("no array");
  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank < 0 || rank > static_cast<int>(kMaxRank)) return Refuse("no shape");
  std::vector<hsize_t> dims(rank);
  if (rank > 0 && H5Sget_simple_extent_dims(space, dims.data(), nullptr) != rank)
    return Refuse("no shape");
  return dims;
}

// libhdf5 holds a chunk packed and unpacked.
absl::StatusOr<uint64_t> BytesOfTwoChunks(hid_t creation, size_t rank, size_t element) {
  std::vector<hsize_t> dims(rank);
  if (H5Pget_chunk(creation, static_cast<int>(rank), dims.data()) != static_cast<int>(rank))
    return Damaged("its list of chunks");
  uint64_t bytes = 2 * element;
  for (const hsize_t dim : dims)
    if (__builtin_mul_overflow(bytes, dim, &bytes)) return Refuse("chunks past every limit");
  return bytes;
}

absl::StatusOr<ElementType> TypeOfElements(hid_t data, hid_t type, uint64_t file_size) {
  std::string named;  // h5py's way to name what HDF5 has no type for
  if (H5Aexists(data, "dtype") > 0) {
    const absl::StatusOr<Strings> strings = ReadStrings(data, "dtype", file_size);
    if (strings.ok() && strings->size() == 1) named = (*strings)[0];
  }
  return ElementTypeOf(type, named);
}

absl::Status WriteDataset(hid_t data, uint64_t file_size, Writer* list) {
  const Id type(H5Dget_type(data), H5Tclose);
  const Id space(H5Dget_space(data), H5Sclose);
  const Id creation(H5Dget_create_plist(data), H5Pclose);
  if (!type.ok() || !space.ok() || !creation.ok()) return Damaged("its description");
  FLOE_ASSIGN_OR_RETURN(const H5D_layout_t layout, LayoutOf(creation.get()));
  FLOE_RETURN_IF_ERROR(CheckFilters(creation.get()));
  FLOE_ASSIGN_OR_RETURN(const ElementType element, TypeOfElements(data, type.get(), file_size));
  FLOE_ASSIGN_OR_RETURN(const std::vector<hsize_t> dims, DimsOf(space.get()));
  uint64_t two_chunks = 0;
  if (layout == H5D_CHUNKED) {
    FLOE_ASSIGN_OR_RETURN(two_chunks,
                          BytesOfTwoChunks(creation.get(), dims.size(), H5Tget_size(type.get())));
  }
  const haddr_t at = layout == H5D_CONTIGUOUS ? H5Dget_offset(data) : HADDR_UNDEF;
  const Layout place = layout == H5D_CHUNKED                  ? Layout::kChunked
                       : at != HADDR_UNDEF && element.as_here ? Layout::kPlain
                                                              : Layout::kWhole;
  list->Add(element.dtype);
  list->Add(static_cast<uint32_t>(dims.size()));
  for (const hsize_t dim : dims) list->Add(static_cast<uint64_t>(dim));
  list->Add(place);
  list->Add(static_cast<uint64_t>(at));
  list->Add(static_cast<uint64_t>(H5Dget_storage_size(data)));
  list->Add(two_chunks);
  return absl::OkStatus();
}

// ---- entries ----

absl::Status CheckLink(H5L_type_t type) {
  if (type == H5L_TYPE_EXTERNAL)
    return Refuse("an external link, to another file; save the model again");
  if (type != H5L_TYPE_HARD) return Refuse("a soft link; save the model again");
  return absl::OkStatus();
}

absl::Status WriteEntry(hid_t group, const char* name, H5L_type_t link, uint64_t file_size,
                        Writer* list) {
  FLOE_RETURN_IF_ERROR(CheckLink(link));
  const Id object(H5Oopen(group, name, H5P_DEFAULT), H5Oclose);
  if (!object.ok()) return Damaged("the object");
  switch (H5Iget_type(object.get())) {
    case H5I_GROUP:
      list->Add(EntryKind::kGroup);
      return absl::OkStatus();
    case H5I_DATASET:
      list->Add(EntryKind::kDataset);
      return WriteDataset(object.get(), file_size, list);
    default:
      return Refuse("neither a group nor an array");
  }
}

absl::Status WriteEntries(hid_t group, uint64_t file_size, size_t most_bytes, Writer* list) {
  Names names{.most_bytes = most_bytes};
  if (H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, AddLink, &names) < 0)
    return Damaged("the group's list of names");
  list->Add(static_cast<uint32_t>(names.all.size()));
  for (const auto& [name, link] : names.all) {
    list->AddText(name);
    const size_t begin = list->size();
    const absl::Status refused = WriteEntry(group, name.c_str(), link, file_size, list);
    if (!refused.ok()) {
      list->Cut(begin);
      list->Add(EntryKind::kRefused);
      list->AddText(std::string(refused.message()));
    }
    if (list->size() > most_bytes) return Refuse("the group's names are longer than the file");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Objects>> Objects::Open(RemoteFile* file) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // errors are returned, not printed
  H5PLset_loading_state(0);                     // no filters from outside
  Id opened(file->Open(), H5Fclose);
  if (!opened.ok()) return Damaged("the file");
  return std::unique_ptr<Objects>(new Objects(std::move(opened), file->size()));
}

absl::StatusOr<Id> Objects::OpenPath(std::string_view path) const {
  Id at(H5Gopen2(file_.get(), "/", H5P_DEFAULT), H5Oclose);
  if (!at.ok()) return Damaged("the file's root");
  for (const absl::string_view part_view :
       absl::StrSplit(absl::string_view(path.data(), path.size()), '/', absl::SkipEmpty())) {
    const std::string part(part_view);
    H5L_info_t link;
    if (H5Iget_type(at.get()) != H5I_GROUP || H5Lexists(at.get(), part.c_str(), H5P_DEFAULT) <= 0 ||
        H5Lget_info(at.get(), part.c_str(), &link, H5P_DEFAULT) < 0)
      return Damaged("the object");
    FLOE_RETURN_IF_ERROR(CheckLink(link.type));
    Id next(H5Oopen(at.get(), part.c_str(), H5P_DEFAULT), H5Oclose);
    if (!next.ok()) return Damaged("the object");
    at = std::move(next);
  }
  return at;
}

absl::Status Objects::List(std::string_view path, size_t most_bytes, Writer* list) const {
  FLOE_ASSIGN_OR_RETURN(const Id group, OpenPath(path));
  if (H5Iget_type(group.get()) != H5I_GROUP) return Refuse("not a group");
  FLOE_RETURN_IF_ERROR(WriteAttributes(group.get(), file_size_, most_bytes, list));
  return WriteEntries(group.get(), file_size_, most_bytes, list);
}

absl::Status Objects::Fill(std::string_view path, void* to, size_t bytes) const {
  FLOE_ASSIGN_OR_RETURN(const Id data, OpenPath(path));
  if (H5Iget_type(data.get()) != H5I_DATASET) return Refuse("not an array");
  const Id type(H5Dget_type(data.get()), H5Tclose);
  const Id space(H5Dget_space(data.get()), H5Sclose);
  const Id creation(H5Dget_create_plist(data.get()), H5Pclose);
  if (!type.ok() || !space.ok() || !creation.ok()) return Damaged("its description");
  FLOE_RETURN_IF_ERROR(LayoutOf(creation.get()).status());
  FLOE_RETURN_IF_ERROR(CheckFilters(creation.get()));
  FLOE_ASSIGN_OR_RETURN(const ElementType element,
                        TypeOfElements(data.get(), type.get(), file_size_));
  const hssize_t count = H5Sget_simple_extent_npoints(space.get());
  uint64_t size = 0;
  if (count < 0 ||
      __builtin_mul_overflow(static_cast<uint64_t>(count), H5Tget_size(type.get()), &size) ||
      size != bytes)
    return Refuse("another size than it had before");
  if (H5Dread(data.get(), element.memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, to) < 0)
    return Damaged("the array");
  return absl::OkStatus();
}

}  // namespace floe::keras::hdf5
