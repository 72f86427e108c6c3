#include "model/tensor.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "model/handle.h"

namespace floe {

Tensor Tensor::Allocate(DType dtype, const Shape& shape) {
  Tensor t;
  t.dtype_ = dtype;
  t.shape_ = shape;
  if (dtype == DType::kString) {
    auto strings = std::make_shared<std::vector<std::string>>(shape.elements());
    t.data_ = strings->data();
    t.owner_ = std::move(strings);
    return t;
  }
  if (IsHandle(dtype)) {
    auto handles = std::make_shared<std::vector<Handle>>(shape.elements());
    t.data_ = handles->data();
    t.owner_ = std::move(handles);
    return t;
  }
  auto buffer = std::make_shared<AlignedBuffer>(t.bytes());
  t.data_ = buffer->data();
  t.owner_ = std::move(buffer);
  return t;
}

Tensor Tensor::Borrow(DType dtype, const Shape& shape, std::shared_ptr<const void> owner,
                      const void* data) {
  Tensor t;
  t.dtype_ = dtype;
  t.shape_ = shape;
  t.owner_ = std::move(owner);
  t.data_ = data;
  return t;
}

Tensor Tensor::Copy(const TensorView& view) {
  Tensor t = Allocate(view.dtype, view.shape);
  CopyElements(view, t.mutable_data());
  return t;
}

void CopyElements(const TensorView& from, void* to) {
  if (from.dtype == DType::kString) {
    std::copy_n(from.as<std::string>(), from.elements(), static_cast<std::string*>(to));
  } else if (IsHandle(from.dtype)) {
    std::copy_n(from.as<Handle>(), from.elements(), static_cast<Handle*>(to));
  } else if (from.bytes() != 0) {
    std::memcpy(to, from.data, from.bytes());
  }
}

Tensor Tensor::Reshaped(const Shape& shape) const {
  Tensor t = *this;
  t.shape_ = shape;
  return t;
}

absl::StatusOr<std::vector<int64_t>> IntegerValues(const TensorView& view) {
  const auto read = [&view](auto element) {
    const auto* from = view.as<decltype(element)>();
    return std::vector<int64_t>(from, from + view.elements());
  };
  switch (view.dtype) {
    case DType::kInt32:
      return read(int32_t{});
    case DType::kInt64:
      return read(int64_t{});
    case DType::kInt16:
      return read(int16_t{});
    case DType::kInt8:
      return read(int8_t{});
    case DType::kUInt8:
      return read(uint8_t{});
    case DType::kUInt16:
      return read(uint16_t{});
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("expected int32 or int64, got ", DTypeName(view.dtype)));
  }
}

}  // namespace floe
