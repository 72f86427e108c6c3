#include "model/tensor.h"

#include "absl/strings/str_cat.h"

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
  if (view.dtype == DType::kString) {
    auto* out = static_cast<std::string*>(t.mutable_data());
    std::copy_n(view.as<std::string>(), view.elements(), out);
  } else if (t.bytes() != 0) {
    std::memcpy(t.mutable_data(), view.data, t.bytes());
  }
  return t;
}

Tensor Tensor::Reshaped(const Shape& shape) const {
  Tensor t = *this;
  t.shape_ = shape;
  return t;
}

absl::StatusOr<std::vector<int64_t>> IntegerValues(const TensorView& view) {
  const int64_t n = view.elements();
  if (view.dtype == DType::kInt32) return std::vector<int64_t>(view.as<int32_t>(), view.as<int32_t>() + n);
  if (view.dtype == DType::kInt64) return std::vector<int64_t>(view.as<int64_t>(), view.as<int64_t>() + n);
  return absl::InvalidArgumentError(absl::StrCat("expected int32 or int64, got ", DTypeName(view.dtype)));
}

}  // namespace floe
