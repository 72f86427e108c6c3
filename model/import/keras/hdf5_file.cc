#include "model/import/keras/hdf5_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/budget.h"
#include "base/deflate_limits.h"
#include "base/mutex.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/import/keras/hdf5_library.h"

namespace floe::keras {
namespace {

// Guards the whole of libhdf5, from a file's opening to its end.
class LibraryLock {
 public:
  LibraryLock() ABSL_NO_THREAD_SAFETY_ANALYSIS { Library().Lock(); }
  ~LibraryLock() ABSL_NO_THREAD_SAFETY_ANALYSIS { Library().Unlock(); }
  LibraryLock(const LibraryLock&) = delete;
  LibraryLock& operator=(const LibraryLock&) = delete;

 private:
  static Mutex& Library() {
    static Mutex mutex;
    return mutex;
  }
};

// Loaded by the first Hdf5File::Open.
const Hdf5Library& Hdf5() { return **LoadHdf5(); }

constexpr unsigned kReadOnly = 0;  // H5F_ACC_RDONLY, which checks the library's version as well

// The file in memory, which libhdf5 is to use where it lies: the functions that it calls for an
// image of its own hand out these bytes, and free nothing.
struct Image {
  void* bytes;
  size_t size;
};

void* ImageMalloc(size_t size, H5FD_file_image_op_t, void* image) {
  auto* const whole = static_cast<Image*>(image);
  return size == whole->size ? whole->bytes : nullptr;
}
void* ImageCopy(void* to, const void* from, size_t, H5FD_file_image_op_t, void*) {
  return to == from ? to : nullptr;
}
void* ImageRealloc(void*, size_t, H5FD_file_image_op_t, void*) { return nullptr; }
herr_t ImageFree(void*, H5FD_file_image_op_t, void*) { return 0; }
void* KeepImage(void* image) { return image; }
herr_t DropImage(void*) { return 0; }

// `image` outlives the file.
hid_t OpenImage(Image* image) {
  const hid_t access = Hdf5().Pcreate(Hdf5().P_CLS_FILE_ACCESS_ID);
  if (access < 0) return -1;
  const absl::Cleanup close = [access] { Hdf5().Pclose(access); };
  H5FD_file_image_callbacks_t callbacks{ImageMalloc, ImageCopy, ImageRealloc, ImageFree,
                                        KeepImage,   DropImage, image};
  constexpr size_t kIncrement = size_t{1} << 16;
  if (Hdf5().Pset_fapl_core(access, kIncrement, 0) < 0 ||
      Hdf5().Pset_file_image_callbacks(access, &callbacks) < 0 ||
      Hdf5().Pset_file_image(access, image->bytes, image->size) < 0)
    return -1;
  return Hdf5().Fopen("image", kReadOnly, access);
}

constexpr int kMaxGroupDepth = 64;
constexpr hsize_t kMaxNames = 1'000'000;

// An identifier of libhdf5 and the function that closes it.
class Id {
 public:
  Id(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Id() {
    if (id_ >= 0) close_(id_);
  }
  Id(Id&& o) noexcept : id_(std::exchange(o.id_, -1)), close_(o.close_) {}
  Id(const Id&) = delete;
  Id& operator=(const Id&) = delete;
  Id& operator=(Id&& o) noexcept {
    std::swap(id_, o.id_);
    std::swap(close_, o.close_);
    return *this;
  }
  bool ok() const { return id_ >= 0; }
  hid_t get() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

absl::Status Wrong(const std::string& path, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("HDF5 object ", Quoted(path), ": ", why));
}

DType IntegerType(size_t size, bool is_signed) {
  switch (size) {
    case 1:
      return is_signed ? DType::kInt8 : DType::kUInt8;
    case 2:
      return is_signed ? DType::kInt16 : DType::kUInt16;
    case 4:
      return is_signed ? DType::kInt32 : DType::kUInt32;
    case 8:
      return is_signed ? DType::kInt64 : DType::kUInt64;
    default:
      return DType::kInvalid;
  }
}

// A type of numbers of the file, and libhdf5's type to read it as.
struct ElementType {
  DType dtype = DType::kInvalid;
  hid_t memory = -1;
};

hid_t MemoryType(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return Hdf5().T_NATIVE_FLOAT;
    case DType::kFloat64:
      return Hdf5().T_NATIVE_DOUBLE;
    case DType::kInt8:
    case DType::kBool:
      return Hdf5().T_NATIVE_INT8;
    case DType::kUInt8:
      return Hdf5().T_NATIVE_UINT8;
    case DType::kInt16:
      return Hdf5().T_NATIVE_INT16;
    case DType::kUInt16:
      return Hdf5().T_NATIVE_UINT16;
    case DType::kInt32:
      return Hdf5().T_NATIVE_INT32;
    case DType::kUInt32:
      return Hdf5().T_NATIVE_UINT32;
    case DType::kInt64:
      return Hdf5().T_NATIVE_INT64;
    case DType::kUInt64:
      return Hdf5().T_NATIVE_UINT64;
    default:
      return -1;
  }
}

DType FloatType(hid_t type) {
  size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
  if (Hdf5().Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) < 0)
    return DType::kInvalid;
  const size_t size = Hdf5().Tget_size(type);
  if (size == 4 && exponent_bits == 8 && mantissa_bits == 23) return DType::kFloat32;
  if (size == 8 && exponent_bits == 11 && mantissa_bits == 52) return DType::kFloat64;
  if (size == 2 && exponent_bits == 5 && mantissa_bits == 10) return DType::kFloat16;
  if (size == 2 && exponent_bits == 8 && mantissa_bits == 7) return DType::kBFloat16;
  return DType::kInvalid;
}

DType TypeOf(hid_t type) {
  switch (Hdf5().Tget_class(type)) {
    case H5T_INTEGER:
      return IntegerType(Hdf5().Tget_size(type), Hdf5().Tget_sign(type) == H5T_SGN_2);
    case H5T_FLOAT:
      return FloatType(type);
    case H5T_ENUM:  // h5py's bool
      return Hdf5().Tget_size(type) == 1 && Hdf5().Tget_nmembers(type) == 2 ? DType::kBool
                                                                            : DType::kInvalid;
    default:
      return DType::kInvalid;
  }
}

bool LittleEndian(hid_t type) {
  if (Hdf5().Tget_size(type) == 1) return true;
  return Hdf5().Tget_order(type) == H5T_ORDER_LE;
}

absl::Status CheckFilters(hid_t creation, const std::string& path) {
  const int filters = Hdf5().Pget_nfilters(creation);
  for (int k = 0; k < filters; ++k) {
    unsigned flags = 0, config = 0;
    size_t values = 0;
    const H5Z_filter_t filter =
        Hdf5().Pget_filter2(creation, k, &flags, &values, nullptr, 0, nullptr, &config);
    if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE &&
        filter != H5Z_FILTER_FLETCHER32)
      return Wrong(path, absl::StrCat("filter ", filter, " is not supported; only gzip is"));
  }
  return absl::OkStatus();
}

// Where the elements lie; refuses what lies outside the file.
absl::StatusOr<H5D_layout_t> LayoutOf(hid_t creation, const std::string& path) {
  if (Hdf5().Pget_external_count(creation) > 0)
    return Wrong(path, "external storage, its numbers lie in another file; save the model again");
  const H5D_layout_t layout = Hdf5().Pget_layout(creation);
  if (layout == H5D_VIRTUAL)
    return Wrong(path, "a virtual dataset, its numbers lie elsewhere; save the model again");
  if (layout != H5D_CONTIGUOUS && layout != H5D_CHUNKED && layout != H5D_COMPACT)
    return Wrong(path, "a layout that is not known");
  return layout;
}

}  // namespace

class Hdf5File::Impl {
 public:
  Impl(std::unique_ptr<LibraryLock> lock, std::string_view bytes, std::shared_ptr<const void> owner)
      : lock_(std::move(lock)),
        bytes_(bytes),
        owner_(std::move(owner)),
        image_{const_cast<char*>(bytes.data()), bytes.size()},  // only read
        file_(OpenImage(&image_), Hdf5().Fclose) {}
  bool ok() const { return file_.ok(); }

  // The object, or not ok(). Only links to objects of this file are followed.
  absl::StatusOr<Id> OpenObject(const std::string& path) const {
    Id at(Hdf5().Gopen2(file_.get(), "/", H5P_DEFAULT), Hdf5().Oclose);
    if (!at.ok()) return Wrong(path, "the file has no root");
    int depth = 0;
    for (const absl::string_view part_view : absl::StrSplit(path, '/', absl::SkipEmpty())) {
      const std::string part(part_view);
      if (++depth > kMaxGroupDepth) return Wrong(path, "nested too deep");
      if (part == ".") continue;
      if (Hdf5().Iget_type(at.get()) != H5I_GROUP ||
          Hdf5().Lexists(at.get(), part.c_str(), H5P_DEFAULT) <= 0)
        return absl::NotFoundError(absl::StrCat("the file has no ", Quoted(path)));
      H5L_info_t link;
      if (Hdf5().Lget_info(at.get(), part.c_str(), &link, H5P_DEFAULT) < 0)
        return Wrong(path, "a damaged link");
      if (link.type == H5L_TYPE_EXTERNAL)
        return Wrong(path, "an external link, to another file; save the model again");
      if (link.type != H5L_TYPE_HARD) return Wrong(path, "a soft link; save the model again");
      Id next(Hdf5().Oopen(at.get(), part.c_str(), H5P_DEFAULT), Hdf5().Oclose);
      if (!next.ok()) return Wrong(path, "damaged");
      at = std::move(next);
    }
    return at;
  }

  absl::StatusOr<Tensor> Read(const std::string& path) const {
    FLOE_ASSIGN_OR_RETURN(const Id data, OpenObject(path));
    if (Hdf5().Iget_type(data.get()) != H5I_DATASET) return Wrong(path, "not an array");
    const Id type(Hdf5().Dget_type(data.get()), Hdf5().Tclose);
    const Id space(Hdf5().Dget_space(data.get()), Hdf5().Sclose);
    const Id creation(Hdf5().Dget_create_plist(data.get()), Hdf5().Pclose);
    if (!type.ok() || !space.ok() || !creation.ok()) return Wrong(path, "damaged");
    FLOE_ASSIGN_OR_RETURN(const H5D_layout_t layout, LayoutOf(creation.get(), path));
    FLOE_RETURN_IF_ERROR(CheckFilters(creation.get(), path));
    FLOE_ASSIGN_OR_RETURN(const DType dtype, ElementTypeOf(data.get(), type.get(), path));
    FLOE_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(space.get(), path));
    auto elements = CheckedElements(shape.dims(), DTypeSize(dtype));
    if (!elements.ok()) return Wrong(path, std::string(elements.status().message()));
    if (*elements == 0) return Tensor::Allocate(dtype, shape);
    const int64_t size = *elements * static_cast<int64_t>(DTypeSize(dtype));
    const auto stored = static_cast<int64_t>(
        std::min<hsize_t>(Hdf5().Dget_storage_size(data.get()), bytes_.size()));
    const int64_t most =
        layout == H5D_CHUNKED ? stored * kMaxDeflateRatio + kDeflateSlackBytes : stored;
    if (stored == 0 || size > most)
      return Wrong(
          path, absl::StrCat("it declares ", size, " bytes and the file has ", stored, " for it"));
    FLOE_RETURN_IF_ERROR(CheckValueBytes(size));
    if (layout == H5D_CONTIGUOUS && LittleEndian(type.get())) {
      const Tensor mapped = Borrowed(data.get(), dtype, shape, size);
      if (mapped.valid()) return mapped;
    }
    Tensor tensor = Tensor::Allocate(dtype, shape);
    const hid_t memory = MemoryType(dtype);
    if (Hdf5().Dread(data.get(), memory >= 0 && dtype != DType::kBool ? memory : type.get(),
                     H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.mutable_data()) < 0)
      return Wrong(path, "its numbers are damaged or cut off");
    return Normalized(tensor, dtype);
  }

  std::vector<std::string> Names(const std::string& path) const {
    std::vector<std::string> names;
    const absl::StatusOr<Id> group = OpenObject(path);
    if (!group.ok() || Hdf5().Iget_type(group->get()) != H5I_GROUP) return names;
    H5G_info_t info;
    if (Hdf5().Gget_info(group->get(), &info) < 0) return names;
    for (hsize_t k = 0; k < std::min(info.nlinks, kMaxNames); ++k) {
      const auto read = [&](char* to, size_t size) {
        return Hdf5().Lget_name_by_idx(group->get(), ".", H5_INDEX_NAME, H5_ITER_INC, k, to, size,
                                       H5P_DEFAULT);
      };
      const ssize_t length = read(nullptr, 0);
      if (length <= 0 || static_cast<size_t>(length) > bytes_.size()) break;
      std::string name(length + 1, '\0');
      if (read(name.data(), name.size()) != length) break;
      name.resize(length);
      names.push_back(std::move(name));
    }
    return names;
  }

  absl::StatusOr<std::vector<std::string>> Strings(const std::string& path,
                                                   const std::string& name) const {
    FLOE_ASSIGN_OR_RETURN(const Id object, OpenObject(path));
    std::vector<std::string> all;
    if (Hdf5().Aexists(object.get(), name.c_str()) > 0) {
      FLOE_RETURN_IF_ERROR(AppendStrings(object.get(), name, &all));
      return all;
    }
    for (int part = 0; Hdf5().Aexists(object.get(), absl::StrCat(name, part).c_str()) > 0; ++part)
      FLOE_RETURN_IF_ERROR(AppendStrings(object.get(), absl::StrCat(name, part), &all));
    return all;
  }

 private:
  absl::StatusOr<DType> ElementTypeOf(hid_t data, hid_t type, const std::string& path) const {
    std::vector<std::string> named;
    if (Hdf5().Aexists(data, "dtype") > 0) AppendStrings(data, "dtype", &named).IgnoreError();
    DType dtype = TypeOf(type);
    if (named == std::vector<std::string>{"bfloat16"} && Hdf5().Tget_size(type) == 2)
      dtype = DType::kBFloat16;
    if (dtype == DType::kInvalid) return Wrong(path, "its elements are no numbers floe knows");
    const bool half = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
    if (half && !LittleEndian(type)) return Wrong(path, "16-bit numbers in big-endian order");
    return dtype;
  }

  static absl::StatusOr<Shape> ShapeOf(hid_t space, const std::string& path) {
    if (Hdf5().Sget_simple_extent_type(space) == H5S_NULL) return Wrong(path, "no array");
    const int rank = Hdf5().Sget_simple_extent_ndims(space);
    if (rank < 0 || rank > H5S_MAX_RANK) return Wrong(path, "no shape");
    hsize_t dims[H5S_MAX_RANK] = {};
    if (rank > 0 && Hdf5().Sget_simple_extent_dims(space, dims, nullptr) != rank)
      return Wrong(path, "no shape");
    Shape shape;
    for (int k = 0; k < rank; ++k) {
      if (dims[k] > INT64_MAX) return Wrong(path, "a dimension past every limit");
      shape.push_back(static_cast<int64_t>(dims[k]));
    }
    return shape;
  }

  // The bytes of the file themselves, where they can be used as they are.
  Tensor Borrowed(hid_t data, DType dtype, const Shape& shape, int64_t size) const {
    const haddr_t at = Hdf5().Dget_offset(data);
    if (at == HADDR_UNDEF || at > bytes_.size() || bytes_.size() - at < static_cast<size_t>(size))
      return {};
    const char* const begin = bytes_.data() + at;
    if (dtype == DType::kBool || reinterpret_cast<uintptr_t>(begin) % DTypeSize(dtype) != 0)
      return {};
    return Tensor::Borrow(dtype, shape, owner_, begin);
  }

  // A bool may be any byte in the file.
  static Tensor Normalized(Tensor tensor, DType dtype) {
    if (dtype != DType::kBool) return tensor;
    auto* const bytes = static_cast<uint8_t*>(tensor.mutable_data());
    for (int64_t i = 0; i < tensor.elements(); ++i) bytes[i] = bytes[i] != 0 ? 1 : 0;
    return tensor;
  }

  absl::Status AppendStrings(hid_t object, const std::string& name,
                             std::vector<std::string>* all) const {
    const Id attribute(Hdf5().Aopen(object, name.c_str(), H5P_DEFAULT), Hdf5().Aclose);
    if (!attribute.ok()) return Wrong(name, "a damaged attribute");
    const Id type(Hdf5().Aget_type(attribute.get()), Hdf5().Tclose);
    const Id space(Hdf5().Aget_space(attribute.get()), Hdf5().Sclose);
    if (!type.ok() || !space.ok()) return Wrong(name, "a damaged attribute");
    const hssize_t count = Hdf5().Sget_simple_extent_npoints(space.get());
    if (count <= 0) return absl::OkStatus();  // an empty list is written as one of numbers
    if (Hdf5().Tget_class(type.get()) != H5T_STRING)
      return Wrong(name, "an attribute without strings");
    const size_t element = Hdf5().Tget_size(type.get());
    if (element == 0 || static_cast<size_t>(count) > bytes_.size() / element)
      return Wrong(name, "an attribute larger than the file");
    return Hdf5().Tis_variable_str(type.get()) > 0
               ? AppendVariable(attribute.get(), type.get(), space.get(), count, all)
               : AppendFixed(attribute.get(), type.get(), count, element, all);
  }

  static absl::Status AppendFixed(hid_t attribute, hid_t type, hssize_t count, size_t element,
                                  std::vector<std::string>* all) {
    BudgetVector<char> text(static_cast<size_t>(count) * element);
    if (Hdf5().Aread(attribute, type, text.data()) < 0) return Wrong("", "a damaged attribute");
    for (hssize_t k = 0; k < count; ++k) {
      const char* const begin = text.data() + k * element;
      all->emplace_back(begin, strnlen(begin, element));
    }
    return absl::OkStatus();
  }

  static absl::Status AppendVariable(hid_t attribute, hid_t type, hid_t space, hssize_t count,
                                     std::vector<std::string>* all) {
    BudgetVector<char*> texts(static_cast<size_t>(count), nullptr);
    const Id memory(Hdf5().Tcopy(type), Hdf5().Tclose);
    if (Hdf5().Aread(attribute, memory.get(), texts.data()) < 0)
      return Wrong("", "a damaged attribute");
    for (const char* text : texts) all->emplace_back(text == nullptr ? "" : text);
    Hdf5().Dvlen_reclaim(memory.get(), space, H5P_DEFAULT, texts.data());
    return absl::OkStatus();
  }

  const std::unique_ptr<LibraryLock> lock_;  // first: released last
  const std::string_view bytes_;
  const std::shared_ptr<const void> owner_;
  Image image_;
  const Id file_;
};

Hdf5File::Hdf5File(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Hdf5File::~Hdf5File() = default;

absl::StatusOr<std::unique_ptr<Hdf5File>> Hdf5File::Open(std::string_view bytes,
                                                         std::shared_ptr<const void> owner) {
  static_assert(std::endian::native == std::endian::little);
  auto lock = std::make_unique<LibraryLock>();
  FLOE_RETURN_IF_ERROR(LoadHdf5().status());
  Hdf5().Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // errors are returned, not printed
  if (bytes.empty()) return absl::InvalidArgumentError("an HDF5 file without a byte");
  auto impl = std::make_unique<Impl>(std::move(lock), bytes, std::move(owner));
  if (!impl->ok()) return absl::InvalidArgumentError("an HDF5 file that is damaged or cut short");
  return std::unique_ptr<Hdf5File>(new Hdf5File(std::move(impl)));
}

bool Hdf5File::Has(const std::string& path) const { return impl_->OpenObject(path).ok(); }

std::vector<std::string> Hdf5File::Names(const std::string& path) const {
  return impl_->Names(path);
}

absl::StatusOr<Tensor> Hdf5File::Read(const std::string& path) const { return impl_->Read(path); }

absl::StatusOr<std::vector<std::string>> Hdf5File::Strings(const std::string& path,
                                                           const std::string& name) const {
  return impl_->Strings(path, name);
}

}  // namespace floe::keras
