// Tensors: an owned immutable one (`Tensor`) and a borrowed window (`TensorView`).
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "model/dtype.h"
#include "model/shape.h"

namespace floe {

// A borrowed, dense, row-major window: never outlives the call it is passed to. Strings: `data`
// points to std::string elements; kVariant and kResource: to Handle elements (model/handle.h).
struct TensorView {
  DType dtype = DType::kInvalid;
  Shape shape;
  void* data = nullptr;

  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
  int64_t elements() const { return shape.elements(); }
  size_t bytes() const { return static_cast<size_t>(elements()) * DTypeSize(dtype); }
};

// Dense row-major values. Copies share one buffer, which nobody writes after it was shared.
// Threading: a Tensor is a value; the shared buffer is read-only.
class Tensor {
 public:
  Tensor() = default;  // dtype kInvalid: "no tensor"

  // Uninitialised numbers, empty strings or null handles. The shape's size has been checked by the
  // caller.
  static Tensor Allocate(DType dtype, const Shape& shape);
  // Points into memory kept alive by `owner` (a mapped file, a protobuf's string).
  static Tensor Borrow(DType dtype, const Shape& shape, std::shared_ptr<const void> owner,
                       const void* data);
  static Tensor Copy(const TensorView& view);

  template <typename T>
  static Tensor Scalar(DType dtype, T value) {
    Tensor t = Allocate(dtype, Shape());
    std::memcpy(t.mutable_data(), &value, sizeof(T));
    return t;
  }
  // A 1-D tensor; T's size must be that of `dtype`.
  template <typename T>
  static Tensor Vector(DType dtype, const std::vector<T>& values) {
    Tensor t = Allocate(dtype, Shape({static_cast<int64_t>(values.size())}));
    if (!values.empty()) std::memcpy(t.mutable_data(), values.data(), values.size() * sizeof(T));
    return t;
  }

  bool valid() const { return dtype_ != DType::kInvalid; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t elements() const { return shape_.elements(); }
  size_t bytes() const { return static_cast<size_t>(elements()) * DTypeSize(dtype_); }
  const void* data() const { return data_; }
  void* mutable_data() { return const_cast<void*>(data_); }  // only before the tensor is shared
  template <typename T>
  const T* as() const {
    return static_cast<const T*>(data_);
  }
  TensorView view() const { return {dtype_, shape_, const_cast<void*>(data_)}; }
  Tensor Reshaped(const Shape& shape) const;  // same buffer, same number of elements

 private:
  DType dtype_ = DType::kInvalid;
  Shape shape_;
  std::shared_ptr<const void> owner_;
  const void* data_ = nullptr;
};

// Copies every element into memory of the same dtype and number of elements.
void CopyElements(const TensorView& from, void* to);

// Elements of an int32 or int64 tensor as int64; empty-vector error otherwise (INVALID_ARGUMENT).
absl::StatusOr<std::vector<int64_t>> IntegerValues(const TensorView& view);

}  // namespace floe
