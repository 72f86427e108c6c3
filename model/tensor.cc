#include "model/tensor.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/memory_budget.h"
#include "model/handle.h"

namespace floe {
namespace {

// Memory that counts against the budgets, of the run and of the process, as long as it lives.
template <typename T>
struct Charged {
  Charged(int64_t elements, size_t element_size)
      : charge(elements * static_cast<int64_t>(element_size)),
        share(TakeMemoryOrThrow(elements * static_cast<int64_t>(element_size))),
        held(elements) {}
  MemoryCharge charge;
  MemoryShare share;
  T held;
};

// What values without elements point to, so that code may step over none of them from an address.
alignas(kAlignment) std::byte nothing[kAlignment];

// The elements of an owned tensor, whose destructors run with it.
template <typename T>
std::shared_ptr<T> AllocateElements(int64_t elements) {
  auto owner = std::make_shared<Charged<std::vector<T>>>(elements, sizeof(T));
  return std::shared_ptr<T>(owner, owner->held.data());
}

}  // namespace

Tensor Tensor::Allocate(DType dtype, const Shape& shape) {
  Tensor t;
  t.dtype_ = dtype;
  t.shape_ = shape;
  if (shape.elements() == 0) {
    t.data_ = nothing;
  } else if (dtype == DType::kString) {
    auto strings = AllocateElements<std::string>(shape.elements());
    t.data_ = strings.get();
    t.owner_ = std::move(strings);
  } else if (IsHandle(dtype)) {
    auto handles = AllocateElements<Handle>(shape.elements());
    t.data_ = handles.get();
    t.owner_ = std::move(handles);
  } else {
    auto buffer = std::make_shared<Charged<AlignedBuffer>>(static_cast<int64_t>(t.bytes()), 1);
    t.data_ = buffer->held.data();
    t.owner_ = std::move(buffer);
  }
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
