#include "runtime/predicate.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/op_def.h"

namespace floe {
namespace {

absl::Status NotScalar(const char* what, const TensorView& value, const char* type) {
  return absl::InvalidArgumentError(absl::StrCat("its ", what, " is ", DTypeName(value.dtype), " ",
                                                 value.shape.ToString(), ", expected a scalar of ",
                                                 type));
}

}  // namespace

absl::StatusOr<bool> Truth(const TensorView& value, bool scalar_bool) {
  const bool scalar = value.shape.rank() == 0;
  if (scalar_bool && (!scalar || value.dtype != DType::kBool))
    return NotScalar("predicate", value, "bool");
  if (!scalar) return value.elements() > 0;
  switch (value.dtype) {
    case DType::kBool:
      return *value.as<bool>();
    case DType::kUInt8:
      return *value.as<uint8_t>() != 0;
    case DType::kInt8:
      return *value.as<int8_t>() != 0;
    case DType::kInt16:
      return *value.as<int16_t>() != 0;
    case DType::kInt32:
      return *value.as<int32_t>() != 0;
    case DType::kInt64:
      return *value.as<int64_t>() != 0;
    case DType::kFloat32:
      return *value.as<float>() != 0;
    case DType::kFloat64:
      return *value.as<double>() != 0;
    case DType::kString:
      return !value.as<std::string>()->empty();
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("its predicate is a scalar of ", DTypeName(value.dtype),
                       ", expected bool, string, float32, float64, uint8 or a signed integer"));
  }
}

bool HasPredicate(const Node& node) { return node.op->name == "If" || node.op->name == "Case"; }

absl::StatusOr<size_t> BranchTaken(const Node& node, const TensorView& value) {
  if (node.op->name != "Case") {
    FLOE_ASSIGN_OR_RETURN(const bool taken, Truth(value, node.attrs.Bool("scalar_bool")));
    return taken ? 0 : 1;
  }
  if (value.shape.rank() != 0 || value.dtype != DType::kInt32)
    return NotScalar("branch index", value, "int32");
  const int32_t index = *value.as<int32_t>();
  const size_t count = node.subgraphs.size();
  return index < 0 || static_cast<size_t>(index) >= count ? count - 1 : static_cast<size_t>(index);
}

}  // namespace floe
