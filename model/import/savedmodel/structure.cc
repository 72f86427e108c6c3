#include "model/import/savedmodel/structure.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/import/tensor_proto.h"
#include "tensorflow/core/protobuf/struct.pb.h"

namespace floe {
namespace {

using tensorflow::StructuredValue;

constexpr int kMostParts = 32;  // of a ragged tensor

using Children = std::vector<std::pair<std::string, const StructuredValue*>>;

template <typename Values>
Children Numbered(const Values& values) {
  Children children;
  for (int k = 0; k < values.size(); ++k) children.emplace_back(absl::StrCat(k), &values.Get(k));
  return children;
}

// Named tuples count as tuples do: signatures number their tensors.
Children ChildrenOf(const StructuredValue& value) {
  switch (value.kind_case()) {
    case StructuredValue::kListValue:
      return Numbered(value.list_value().values());
    case StructuredValue::kTupleValue:
      return Numbered(value.tuple_value().values());
    case StructuredValue::kNamedTupleValue: {
      Children children;
      for (const auto& pair : value.named_tuple_value().values())
        children.emplace_back(absl::StrCat(children.size()), &pair.value());
      return children;
    }
    case StructuredValue::kDictValue: {
      Children children;
      for (const auto& [key, field] : value.dict_value().fields())
        children.emplace_back(key, &field);
      std::sort(children.begin(), children.end());
      return children;
    }
    default:
      return {};
  }
}

template <typename Spec>
StructureTensor TensorOf(const Spec& spec, const std::string& path) {
  StructureTensor tensor{spec.name(), path, {}};
  if (const auto dtype = DTypeFromNumber(spec.dtype()); dtype.ok()) tensor.type.dtype = *dtype;
  tensor.type.shape = ShapeFromProto(spec.shape());
  return tensor;
}

// Older files have no count, but shape, dtype and ragged rank.
int PartsOf(const tensorflow::TypeSpecProto& spec) {
  const auto& state = spec.type_state().tuple_value().values();
  if (spec.num_flat_components() > 0 || state.size() < 3) return spec.num_flat_components();
  return static_cast<int>(std::clamp<int64_t>(state.Get(2).int64_value(), 0, kMostParts)) + 1;
}

absl::Status Flatten(const StructuredValue& value, const std::string& path,
                     std::vector<StructureTensor>* tensors) {
  switch (value.kind_case()) {
    case StructuredValue::kTensorSpecValue:
      tensors->push_back(TensorOf(value.tensor_spec_value(), path));
      return absl::OkStatus();
    case StructuredValue::kBoundedTensorSpecValue:
      tensors->push_back(TensorOf(value.bounded_tensor_spec_value(), path));
      return absl::OkStatus();
    case StructuredValue::kTypeSpecValue: {
      const tensorflow::TypeSpecProto& spec = value.type_spec_value();
      FLOE_ASSIGN_OR_RETURN(std::vector<std::string> parts, RaggedParts(spec, path, PartsOf(spec)));
      for (std::string& part : parts)
        tensors->push_back({"", std::move(part), {DType::kInvalid, SymShape::UnknownRank()}});
      return absl::OkStatus();
    }
    default:
      break;
  }
  for (const auto& [key, child] : ChildrenOf(value))
    FLOE_RETURN_IF_ERROR(Flatten(*child, absl::StrCat(path, ".", key), tensors));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<StructureTensor>> FlattenStructure(const StructuredValue& value,
                                                              const std::string& name) {
  std::vector<StructureTensor> tensors;
  const Children children = ChildrenOf(value);
  if (children.empty()) {
    FLOE_RETURN_IF_ERROR(Flatten(value, absl::StrCat(name, "_0"), &tensors));
    return tensors;
  }
  for (const auto& [key, child] : children) {
    const std::string path = value.has_dict_value() ? key : absl::StrCat(name, "_", key);
    FLOE_RETURN_IF_ERROR(Flatten(*child, path, &tensors));
  }
  return tensors;
}

absl::StatusOr<std::vector<std::string>> RaggedParts(const tensorflow::TypeSpecProto& spec,
                                                     const std::string& key, int count) {
  if (spec.type_spec_class() != tensorflow::TypeSpecProto::RAGGED_TENSOR_SPEC || count < 1 ||
      count > kMostParts)
    return absl::UnimplementedError(
        absl::StrCat(Quoted(key), " is a composite tensor (", Escaped(spec.type_spec_class_name()),
                     "), which no request or reply can hold; floe knows dense and ragged ones"));
  if (count == 1) return std::vector<std::string>{key};
  std::vector<std::string> parts = {key + ".values", key + ".row_splits"};
  for (int k = 1; k + 1 < count; ++k) parts.push_back(absl::StrCat(key, ".row_splits_", k));
  return parts;
}

bool HasTrue(const StructuredValue& value) {
  if (value.kind_case() == StructuredValue::kBoolValue) return value.bool_value();
  const Children children = ChildrenOf(value);
  return std::any_of(children.begin(), children.end(),
                     [](const auto& child) { return HasTrue(*child.second); });
}

}  // namespace floe
