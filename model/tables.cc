#include "model/tables.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace floe {
namespace {

int64_t IntegerKey(const TensorView& keys, int64_t i) {
  return keys.dtype == DType::kInt32 ? keys.as<int32_t>()[i] : keys.as<int64_t>()[i];
}

std::string KeyText(const TensorView& keys, int64_t i) {
  if (keys.dtype == DType::kString) return absl::StrCat("'", keys.as<std::string>()[i], "'");
  return absl::StrCat(IntegerKey(keys, i));
}

// Bytes that a string has outside its object.
size_t HeapBytes(const std::string& text) {
  constexpr size_t kInside = 15;
  return text.size() > kInside ? text.size() + 1 : 0;
}

// The shape of one value for each key.
Shape ShapeOfValues(const Shape& keys, const Shape& value) {
  Shape shape = keys;
  for (const int64_t dim : value.dims()) shape.push_back(dim);
  return shape;
}

// Element sizes known to the compiler make the copy a load and a store.
void CopyNumbers(const char* from, char* to, size_t bytes) {
  if (bytes == 8) {
    std::memcpy(to, from, 8);
  } else if (bytes == 4) {
    std::memcpy(to, from, 4);
  } else if (bytes != 0) {
    std::memcpy(to, from, bytes);
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<TableObject>> TableObject::Create(TableKind kind, DType key_dtype,
                                                                 DType value_dtype,
                                                                 const Shape& value_shape) {
  const bool key =
      key_dtype == DType::kInt32 || key_dtype == DType::kInt64 || key_dtype == DType::kString;
  const bool value = value_dtype == DType::kString || DTypeSize(value_dtype) != 0;
  if (!key || !value) {
    return absl::InvalidArgumentError(
        absl::StrCat("no table maps ", DTypeName(key_dtype), " to ", DTypeName(value_dtype),
                     "; keys are int32, int64 or string, values numbers, bool or string"));
  }
  constexpr int64_t kMaxWidth = 1 << 20;
  const auto width = CheckedElements(value_shape.dims(), 1);
  if (!width.ok() || *width > kMaxWidth) {
    return absl::InvalidArgumentError(
        absl::StrCat("a table of values of shape ", value_shape.ToString()));
  }
  return std::shared_ptr<TableObject>(new TableObject(kind, key_dtype, value_dtype, value_shape));
}

TableObject::TableObject(TableKind kind, DType key_dtype, DType value_dtype,
                         const Shape& value_shape)
    : kind_(kind),
      key_dtype_(key_dtype),
      value_dtype_(value_dtype),
      value_shape_(value_shape),
      width_(value_shape.elements()) {
  if (key_dtype == DType::kString) places_.emplace<Strings>();
}

int64_t TableObject::size() const {
  return std::visit([](const auto& map) { return static_cast<int64_t>(map.size()); }, places_);
}

std::string TableObject::TypeText() const {
  return absl::StrCat(DTypeName(key_dtype_), " -> ", DTypeName(value_dtype_),
                      value_shape_.rank() == 0 ? "" : value_shape_.ToString());
}

absl::Status TableObject::CheckDTypes(DType keys, DType values) const {
  if (keys == key_dtype_ && values == value_dtype_) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("keys of ", DTypeName(keys), " and values of ",
                                                 DTypeName(values), " for a table of ",
                                                 TypeText()));
}

int64_t TableObject::PlaceOf(absl::string_view key) const {
  const auto& strings = std::get<Strings>(places_);
  const auto found = strings.find(key);
  return found == strings.end() ? -1 : found->second;
}

int64_t TableObject::PlaceOf(const TensorView& keys, int64_t i) const {
  if (key_dtype_ == DType::kString) return PlaceOf(keys.as<std::string>()[i]);
  const auto& integers = std::get<Integers>(places_);
  const auto found = integers.find(IntegerKey(keys, i));
  return found == integers.end() ? -1 : found->second;
}

bool TableObject::AddPlace(const TensorView& keys, int64_t i, int64_t* place) {
  const int64_t next = size();
  // Slots are about two thirds full.
  if (auto* strings = std::get_if<Strings>(&places_)) {
    const std::string& key = keys.as<std::string>()[i];
    const auto [at, added] = strings->try_emplace(key, next);
    if (added) bytes_ += (sizeof(Strings::value_type) + 1) * 3 / 2 + HeapBytes(key);
    *place = at->second;
    return added;
  }
  const auto [at, added] = std::get<Integers>(places_).try_emplace(IntegerKey(keys, i), next);
  if (added) bytes_ += (sizeof(Integers::value_type) + 1) * 3 / 2;
  *place = at->second;
  return added;
}

bool TableObject::SameValue(int64_t place, const TensorView& values, int64_t i) const {
  if (value_dtype_ == DType::kString) {
    const std::string* value = values.as<std::string>() + i * width_;
    return std::equal(value, value + width_, strings_.data() + place * width_);
  }
  const size_t bytes = static_cast<size_t>(width_) * DTypeSize(value_dtype_);
  return bytes == 0 ||
         std::memcmp(values.as<char>() + i * bytes, numbers_.data() + place * bytes, bytes) == 0;
}

void TableObject::Write(int64_t place, const TensorView& values, int64_t i) {
  if (value_dtype_ == DType::kString) {
    strings_.resize(std::max<size_t>(strings_.size(), (place + 1) * width_));
    for (int64_t k = 0; k < width_; ++k) {
      const std::string& from = values.as<std::string>()[i * width_ + k];
      std::string& to = strings_[place * width_ + k];
      bytes_ += sizeof(std::string) + HeapBytes(from);
      to = from;
    }
    return;
  }
  const size_t bytes = static_cast<size_t>(width_) * DTypeSize(value_dtype_);
  const size_t end = (place + 1) * bytes;
  if (end > numbers_.size()) {
    numbers_.resize(end);
    bytes_ += bytes;
  }
  CopyNumbers(values.as<char>() + i * bytes, numbers_.data() + place * bytes, bytes);
}

absl::Status TableObject::Insert(const TensorView& keys, const TensorView& values) {
  FLOE_RETURN_IF_ERROR(CheckDTypes(keys.dtype, values.dtype));
  if (values.shape != ShapeOfValues(keys.shape, value_shape_)) {
    return absl::InvalidArgumentError(absl::StrCat("keys of shape ", keys.shape.ToString(),
                                                   " with values of shape ",
                                                   values.shape.ToString()));
  }
  for (int64_t i = 0; i < keys.elements(); ++i) {
    int64_t place = 0;
    if (AddPlace(keys, i, &place) || kind_ == TableKind::kMutable) {
      Write(place, values, i);
    } else if (!SameValue(place, values, i)) {
      return absl::FailedPreconditionError(
          absl::StrCat("key ", KeyText(keys, i), " has two different values"));
    }
    if (bytes_ > kMaxBytes)
      return absl::ResourceExhaustedError(
          absl::StrCat("a table of more than ", kMaxBytes, " bytes"));
  }
  return absl::OkStatus();
}

TensorView TableObject::Values() const {
  Shape shape({size()});
  for (const int64_t dim : value_shape_.dims()) shape.push_back(dim);
  const void* data = value_dtype_ == DType::kString ? static_cast<const void*>(strings_.data())
                                                    : static_cast<const void*>(numbers_.data());
  return {value_dtype_, shape, const_cast<void*>(data)};
}

template <class PlaceOfKey>
absl::Status TableObject::Copy(const Shape& keys, const PlaceOfKey& place_of,
                               const TensorView& fallback, const TensorView& out) const {
  const Shape wanted = ShapeOfValues(keys, value_shape_);
  if (out.shape != wanted) {
    return absl::InvalidArgumentError(absl::StrCat("keys of shape ", keys.ToString(),
                                                   " give values of shape ", wanted.ToString(),
                                                   ", expected ", out.shape.ToString()));
  }
  const bool one = fallback.shape == value_shape_;
  if (!one && fallback.shape != wanted) {
    return absl::InvalidArgumentError(absl::StrCat("the default has shape ",
                                                   fallback.shape.ToString(), ", expected ",
                                                   value_shape_.ToString()));
  }
  const TensorView values = Values();
  const size_t bytes = static_cast<size_t>(width_) * DTypeSize(value_dtype_);
  for (int64_t i = 0, count = keys.elements(); i < count; ++i) {
    const int64_t place = place_of(i);
    const TensorView& from = place < 0 ? fallback : values;
    const int64_t at = place >= 0 ? place : one ? 0 : i;
    if (value_dtype_ == DType::kString) {
      std::copy_n(from.as<std::string>() + at * width_, width_, out.as<std::string>() + i * width_);
    } else {
      CopyNumbers(from.as<char>() + at * bytes, out.as<char>() + i * bytes, bytes);
    }
  }
  return absl::OkStatus();
}

absl::Status TableObject::Find(const TensorView& keys, const TensorView& fallback,
                               const TensorView& out) const {
  FLOE_RETURN_IF_ERROR(CheckDTypes(keys.dtype, fallback.dtype));
  const auto place_of = [&](int64_t i) { return PlaceOf(keys, i); };
  return Copy(keys.shape, place_of, fallback, out);
}

absl::Status TableObject::Find(absl::Span<const absl::string_view> keys, const TensorView& fallback,
                               const TensorView& out) const {
  FLOE_RETURN_IF_ERROR(CheckDTypes(DType::kString, fallback.dtype));
  const auto place_of = [&](int64_t i) { return PlaceOf(keys[i]); };
  return Copy(Shape({static_cast<int64_t>(keys.size())}), place_of, fallback, out);
}

bool TableObject::SameEntries(const TableObject& other) const {
  if (size() != other.size() || key_dtype_ != other.key_dtype_ ||
      value_dtype_ != other.value_dtype_ || value_shape_ != other.value_shape_)
    return false;
  const TensorView values = Values();
  return std::visit(
      [&](const auto& map) {
        const auto& others = std::get<std::decay_t<decltype(map)>>(other.places_);
        return std::all_of(map.begin(), map.end(), [&](const auto& entry) {
          const auto found = others.find(entry.first);
          return found != others.end() && other.SameValue(found->second, values, entry.second);
        });
      },
      places_);
}

const TableObject* TableOf(const TensorView& handle) {
  if (handle.dtype != DType::kResource || handle.data == nullptr || handle.elements() != 1)
    return nullptr;
  return dynamic_cast<const TableObject*>(handle.as<Handle>()->get());
}

size_t HeldBytes(const Tensor& constant) {
  const TableObject* const table = TableOf(constant.view());
  return constant.bytes() + (table == nullptr ? 0 : table->bytes());
}

}  // namespace floe
