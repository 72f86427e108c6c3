// SerializeTensor and ParseTensor: a tensor as the bytes of a TensorProto, and back.
#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/parse/example_reader.h"

namespace floe::kernels {
namespace {

// Fields of TensorProto, of its shape and of a dim of that.
constexpr uint32_t kType = 1, kShape = 2, kContent = 4, kStrings = 8;
constexpr uint32_t kDim = 2, kUnknownRank = 3, kSize = 1;

// ---- writing ----

void AppendVarint(uint64_t value, std::string* to) {
  for (; value >= 0x80; value >>= 7) to->push_back(static_cast<char>(value | 0x80));
  to->push_back(static_cast<char>(value));
}
void AppendNumber(uint32_t field, uint64_t value, std::string* to) {
  AppendVarint(field << 3, to);
  AppendVarint(value, to);
}
void AppendBytes(uint32_t field, std::string_view bytes, std::string* to) {
  AppendVarint(field << 3 | 2, to);
  AppendVarint(bytes.size(), to);
  to->append(bytes);
}

absl::Status Serialize(const KernelContext& ctx) {
  const TensorView& in = ctx.in(0);
  if (IsHandle(in.dtype))
    return absl::UnimplementedError(absl::StrCat("SerializeTensor of ", DTypeName(in.dtype)));
  int64_t bytes = static_cast<int64_t>(in.bytes());
  if (in.dtype == DType::kString) {
    for (int64_t i = 0; i < in.elements(); ++i)
      bytes += static_cast<int64_t>(in.as<std::string>()[i].size()) + 8;
  }
  FLOE_RETURN_IF_ERROR(CheckBlockBytes(bytes));
  std::string text, shape, dim;
  AppendNumber(kType, static_cast<uint64_t>(in.dtype), &text);
  for (const int64_t size : in.shape.dims()) {
    dim.clear();
    if (size != 0) AppendNumber(kSize, static_cast<uint64_t>(size), &dim);
    AppendBytes(kDim, dim, &shape);
  }
  AppendBytes(kShape, shape, &text);
  if (in.dtype == DType::kString) {
    for (int64_t i = 0; i < in.elements(); ++i)
      AppendBytes(kStrings, in.as<std::string>()[i], &text);
  } else if (in.elements() > 0) {
    AppendBytes(kContent, {in.as<char>(), in.bytes()}, &text);
  }
  *ctx.out(0).as<std::string>() = std::move(text);
  return absl::OkStatus();
}
FLOE_REGISTER_KERNEL(SerializeTensor, kCpu, MakeFunction<Serialize>);

// ---- reading ----

// How the elements of a type are kept where they are not in tensor_content.
struct Listed {
  uint32_t field = 0;
  Wire wire = Wire::kVarint;
};
Listed ListedAs(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return {5, Wire::kFixed32};
    case DType::kComplex64:
      return {9, Wire::kFixed32};
    case DType::kFloat64:
      return {6, Wire::kFixed64};
    case DType::kComplex128:
      return {12, Wire::kFixed64};
    case DType::kString:
      return {kStrings, Wire::kBytes};
    case DType::kInt64:
      return {10, Wire::kVarint};
    case DType::kBool:
      return {11, Wire::kVarint};
    case DType::kFloat16:
    case DType::kBFloat16:
      return {13, Wire::kVarint};
    case DType::kUInt32:
      return {16, Wire::kVarint};
    case DType::kUInt64:
      return {17, Wire::kVarint};
    default:
      return {7, Wire::kVarint};
  }
}

uint64_t VarintOf(std::string_view* bytes) {
  uint64_t value = 0;
  for (int shift = 0; !bytes->empty() && shift < 64; shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes->front());
    bytes->remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  return value;
}

struct Proto {
  uint64_t type = 0;
  Shape shape;
  std::string_view content;
};

absl::Status Bad(std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("Could not parse the tensor: ", std::string(what)));
}

absl::Status ParseShape(std::string_view bytes, Shape* shape) {
  constexpr int kMostDims = 254;
  FieldReader fields(bytes);
  uint32_t field = 0;
  Wire wire{};
  std::string_view value;
  while (!fields.Done()) {
    if (!fields.Next(&field, &wire, &value)) return Bad("its shape is no message");
    if (field == kUnknownRank && wire == Wire::kVarint && VarintOf(&value) != 0)
      return Bad("its rank is unknown");
    if (field != kDim || wire != Wire::kBytes) continue;
    uint64_t size = 0;
    FieldReader dim(value);
    while (!dim.Done()) {
      std::string_view number;
      if (!dim.Next(&field, &wire, &number)) return Bad("its shape is no message");
      if (field == kSize && wire == Wire::kVarint) size = VarintOf(&number);
    }
    if (size > INT64_MAX) return Bad("its shape has unknown dims");
    if (shape->rank() == kMostDims) return Bad("it has more than 254 dims");
    shape->push_back(static_cast<int64_t>(size));
  }
  return absl::OkStatus();
}

absl::StatusOr<Proto> ReadHead(std::string_view bytes) {
  Proto proto;
  FieldReader fields(bytes);
  while (!fields.Done()) {
    uint32_t field = 0;
    Wire wire{};
    std::string_view value;
    if (!fields.Next(&field, &wire, &value)) return Bad("these bytes are no TensorProto");
    if (field == kType && wire == Wire::kVarint) proto.type = VarintOf(&value);
    if (field == kShape && wire == Wire::kBytes)
      FLOE_RETURN_IF_ERROR(ParseShape(value, &proto.shape));
    if (field == kContent && wire == Wire::kBytes) proto.content = value;
  }
  return proto;
}

// Writes listed elements one after the other.
class ListReader {
 public:
  explicit ListReader(const TensorView& to)
      : listed_(ListedAs(to.dtype)), to_(to), size_(DTypeSize(to.dtype)) {
    const bool complex = to.dtype == DType::kComplex64 || to.dtype == DType::kComplex128;
    part_ = complex ? size_ / 2 : size_;
    room_ = to.dtype == DType::kString ? static_cast<size_t>(to.elements()) : to.bytes();
  }

  absl::Status Read(std::string_view bytes) {
    FieldReader fields(bytes);
    while (!fields.Done()) {
      uint32_t field = 0;
      Wire wire{};
      std::string_view value;
      if (!fields.Next(&field, &wire, &value)) return Bad("these bytes are no TensorProto");
      if (field != listed_.field || (wire != listed_.wire && wire != Wire::kBytes)) continue;
      FLOE_RETURN_IF_ERROR(Take(value, wire));
    }
    return absl::OkStatus();
  }
  // The last element stands for those that are missing; without any, all are 0 or empty.
  void Fill() {
    if (to_.dtype == DType::kString) {
      auto* const strings = to_.as<std::string>();
      for (size_t i = used_; used_ > 0 && i < room_; ++i) strings[i] = strings[used_ - 1];
      return;
    }
    auto* const bytes = to_.as<std::byte>();
    if (used_ == 0) std::memset(bytes, 0, room_);
    for (size_t i = used_; used_ > 0 && i < room_; ++i) bytes[i] = bytes[i - size_];
  }

 private:
  absl::Status Take(std::string_view value, Wire wire) {
    if (to_.dtype == DType::kString) {
      if (used_ == room_) return Bad("it has more elements than its shape");
      to_.as<std::string>()[used_++] = std::string(value);
      return absl::OkStatus();
    }
    do {
      if (listed_.wire == Wire::kVarint) {
        if (value.empty()) return absl::OkStatus();
        uint64_t number = VarintOf(&value);
        if (to_.dtype == DType::kBool) number = number != 0 ? 1 : 0;
        FLOE_RETURN_IF_ERROR(Put(&number));
      } else {
        if (value.empty()) return absl::OkStatus();
        if (value.size() < part_) return Bad("a number is cut short");
        FLOE_RETURN_IF_ERROR(Put(value.data()));
        value.remove_prefix(part_);
      }
    } while (wire == Wire::kBytes);
    return absl::OkStatus();
  }
  absl::Status Put(const void* from) {
    if (used_ + part_ > room_) return Bad("it has more elements than its shape");
    std::memcpy(to_.as<std::byte>() + used_, from, part_);
    used_ += part_;
    return absl::OkStatus();
  }

  const Listed listed_;
  const TensorView to_;
  const size_t size_;
  size_t part_ = 0, room_ = 0, used_ = 0;  // bytes, of strings elements
};

absl::Status Parse(const KernelContext& ctx, DType dtype) {
  const std::string& bytes = *ctx.in(0).as<std::string>();
  FLOE_ASSIGN_OR_RETURN(const Proto proto, ReadHead(bytes));
  if (proto.type != static_cast<uint64_t>(dtype))
    return absl::InvalidArgumentError(
        absl::StrCat("Type mismatch between the parsed tensor (number ", proto.type,
                     ") and out_type, which is ", DTypeName(dtype)));
  FLOE_RETURN_IF_ERROR(
      CheckedElements(proto.shape.dims(), std::max<size_t>(DTypeSize(dtype), 1)).status());
  FLOE_ASSIGN_OR_RETURN(const TensorView out, ctx.allocator->Allocate(0, dtype, proto.shape));
  if (!proto.content.empty() && dtype != DType::kString) {
    if (proto.content.size() != out.bytes())
      return Bad(absl::StrCat(proto.content.size(), " bytes for a shape of ", out.bytes()));
    std::memcpy(out.data, proto.content.data(), out.bytes());
    return absl::OkStatus();
  }
  ListReader list(out);
  FLOE_RETURN_IF_ERROR(list.Read(bytes));
  list.Fill();
  return absl::OkStatus();
}
absl::StatusOr<std::unique_ptr<Kernel>> MakeBytesParse(const KernelArgs& args) {
  const DType dtype = args.node.attrs.Type("out_type", DType::kInvalid);
  return FromFunction([dtype](const KernelContext& ctx) { return Parse(ctx, dtype); });
}
FLOE_REGISTER_KERNEL(ParseTensor, kCpu, MakeBytesParse, DType::kString);

}  // namespace
}  // namespace floe::kernels
