#include "model/import/tensor_proto.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/memory_budget.h"
#include "base/status.h"
#include "tensorflow/core/framework/tensor.pb.h"

namespace floe {
namespace {

// Fills `out` with `get(i)` for i < count, then with the last value.
template <typename T, typename Get>
absl::Status Spread(int64_t count, Tensor& out, Get get) {
  const int64_t elements = out.elements();
  if (count > elements) {
    return absl::InvalidArgumentError(absl::StrCat("tensor of shape ", out.shape().ToString(),
                                                   " has ", count, " values, more than its ",
                                                   elements, " elements"));
  }
  T* data = static_cast<T*>(out.mutable_data());
  for (int64_t i = 0; i < count; ++i) data[i] = get(static_cast<int>(i));
  std::fill(data + count, data + elements, count == 0 ? T{} : data[count - 1]);
  return absl::OkStatus();
}

template <typename T, typename Field>
absl::Status SpreadField(const Field& field, Tensor& out) {
  return Spread<T>(field.size(), out, [&](int i) { return static_cast<T>(field.Get(i)); });
}

template <typename Real, typename Field>
absl::Status SpreadComplex(const Field& field, Tensor& out) {
  if (field.size() % 2 != 0)
    return absl::InvalidArgumentError("complex tensor with an odd number of values");
  return Spread<std::complex<Real>>(field.size() / 2, out, [&](int i) {
    return std::complex<Real>(field.Get(2 * i), field.Get(2 * i + 1));
  });
}

absl::Status FillTyped(const tensorflow::TensorProto& p, Tensor& out) {
  switch (PlainDType(out.dtype())) {
    case DType::kFloat32:
      return SpreadField<float>(p.float_val(), out);
    case DType::kFloat64:
      return SpreadField<double>(p.double_val(), out);
    case DType::kInt32:
      return SpreadField<int32_t>(p.int_val(), out);
    case DType::kInt16:
      return SpreadField<int16_t>(p.int_val(), out);
    case DType::kInt8:
      return SpreadField<int8_t>(p.int_val(), out);
    case DType::kUInt16:
      return SpreadField<uint16_t>(p.int_val(), out);
    case DType::kUInt8:
      return SpreadField<uint8_t>(p.int_val(), out);
    case DType::kInt64:
      return SpreadField<int64_t>(p.int64_val(), out);
    case DType::kUInt32:
      return SpreadField<uint32_t>(p.uint32_val(), out);
    case DType::kUInt64:
      return SpreadField<uint64_t>(p.uint64_val(), out);
    case DType::kBool:
      return SpreadField<bool>(p.bool_val(), out);
    case DType::kFloat16:
    case DType::kBFloat16:
      return SpreadField<uint16_t>(p.half_val(), out);
    case DType::kString:
      return SpreadField<std::string>(p.string_val(), out);
    case DType::kComplex64:
      return SpreadComplex<float>(p.scomplex_val(), out);
    case DType::kComplex128:
      return SpreadComplex<double>(p.dcomplex_val(), out);
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("a constant of dtype ", DTypeName(out.dtype()), " is not supported"));
  }
}

// A list that protobuf read, and its share of the memory.
template <typename T>
struct List {
  MemoryShare share;
  google::protobuf::RepeatedField<T> values;
};

// The list itself as the tensor, without a copy. Invalid where it has not one value for each
// element, is small, or takes more memory than a copy would.
template <typename T>
absl::StatusOr<Tensor> Adopt(DType dtype, const Shape& shape,
                             google::protobuf::RepeatedField<T>* values) {
  constexpr int kSmall = 4096;
  const int64_t size = values->size();
  if (size != shape.elements() || size < kSmall || values->Capacity() > size + size / 8)
    return Tensor();
  FLOE_ASSIGN_OR_RETURN(MemoryShare share, TakeMemory(size * static_cast<int64_t>(sizeof(T))));
  const auto list = std::make_shared<List<T>>();
  list->share = std::move(share);
  list->values.Swap(values);
  return Tensor::Borrow(dtype, shape, list, list->values.data());
}

absl::StatusOr<Tensor> AdoptTyped(DType dtype, const Shape& shape, tensorflow::TensorProto* proto) {
  if (dtype == DType::kFloat32) return Adopt(dtype, shape, proto->mutable_float_val());
  if (dtype == DType::kFloat64) return Adopt(dtype, shape, proto->mutable_double_val());
  if (dtype == DType::kInt32) return Adopt(dtype, shape, proto->mutable_int_val());
  return Tensor();
}

// What protobuf read, and its share of the memory.
struct Content {
  MemoryShare share;
  std::unique_ptr<std::string> bytes;
};

}  // namespace

SymShape ShapeFromProto(const tensorflow::TensorShapeProto& proto) {
  if (proto.unknown_rank()) return SymShape::UnknownRank();
  SymShape shape;
  for (const auto& dim : proto.dim())
    shape.push_back(dim.size() < 0 ? Dim::Unknown() : Dim(dim.size()));
  return shape;
}

absl::StatusOr<Tensor> TensorFromProto(tensorflow::TensorProto* proto) {
  FLOE_ASSIGN_OR_RETURN(const DType dtype, DTypeFromNumber(proto->dtype()));
  if (proto->tensor_shape().unknown_rank())
    return absl::InvalidArgumentError("tensor without a rank");
  Shape shape;
  for (const auto& dim : proto->tensor_shape().dim()) shape.push_back(dim.size());
  const size_t element = DTypeSize(dtype);
  // Empty strings take 32 bytes each in memory and none in the file.
  const size_t element_bytes = element == 0 ? sizeof(std::string) : element;
  FLOE_ASSIGN_OR_RETURN(const int64_t elements, CheckedElements(shape.dims(), element_bytes));
  FLOE_RETURN_IF_ERROR(CheckValueBytes(elements * static_cast<int64_t>(element_bytes)));

  if (!proto->tensor_content().empty()) {
    if (element == 0)
      return absl::InvalidArgumentError(
          absl::StrCat("tensor_content for dtype ", DTypeName(dtype), " is not supported"));
    const size_t expected = static_cast<size_t>(elements) * element;
    if (proto->tensor_content().size() != expected) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor of shape ", shape.ToString(), " and dtype ", DTypeName(dtype), " needs ",
          expected, " bytes, tensor_content has ", proto->tensor_content().size()));
    }
    FLOE_ASSIGN_OR_RETURN(MemoryShare share, TakeMemory(static_cast<int64_t>(expected)));
    const auto content = std::make_shared<Content>();
    content->share = std::move(share);
    content->bytes.reset(proto->release_tensor_content());
    return Tensor::Borrow(dtype, shape, content, content->bytes->data());
  }
  FLOE_ASSIGN_OR_RETURN(Tensor out, AdoptTyped(dtype, shape, proto));
  if (out.valid()) return out;
  out = Tensor::Allocate(dtype, shape);
  FLOE_RETURN_IF_ERROR(FillTyped(*proto, out));
  return out;
}

}  // namespace floe
