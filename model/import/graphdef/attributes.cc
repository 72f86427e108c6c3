#include "model/import/graphdef/attributes.h"

#include <utility>
#include <vector>

#include "base/status.h"
#include "model/import/tensor_proto.h"
#include "tensorflow/core/framework/attr_value.pb.h"

namespace floe {
namespace {

absl::StatusOr<AttrValue> ListAttr(const tensorflow::AttrValue::ListValue& list) {
  if (list.i_size() != 0) return AttrValue(std::vector<int64_t>(list.i().begin(), list.i().end()));
  if (list.f_size() != 0) return AttrValue(std::vector<float>(list.f().begin(), list.f().end()));
  if (list.b_size() != 0) return AttrValue(std::vector<bool>(list.b().begin(), list.b().end()));
  if (list.s_size() != 0)
    return AttrValue(std::vector<std::string>(list.s().begin(), list.s().end()));
  if (list.type_size() != 0) {
    std::vector<DType> types;
    for (int number : list.type()) {
      FLOE_ASSIGN_OR_RETURN(const DType type, DTypeFromNumber(number));
      types.push_back(type);
    }
    return AttrValue(std::move(types));
  }
  if (list.shape_size() != 0) {
    std::vector<SymShape> shapes;
    for (const auto& shape : list.shape()) shapes.push_back(ShapeFromProto(shape));
    return AttrValue(std::move(shapes));
  }
  if (list.func_size() != 0) {
    std::vector<FunctionName> functions;
    for (const auto& function : list.func()) functions.push_back({function.name()});
    return AttrValue(std::move(functions));
  }
  return AttrValue(std::vector<int64_t>());
}

}  // namespace

absl::Status SetAttr(const std::string& name, tensorflow::AttrValue& value, Attrs* attrs) {
  switch (value.value_case()) {
    case tensorflow::AttrValue::kI:
      attrs->Set(name, static_cast<int64_t>(value.i()));
      break;
    case tensorflow::AttrValue::kF:
      attrs->Set(name, value.f());
      break;
    case tensorflow::AttrValue::kB:
      attrs->Set(name, value.b());
      break;
    case tensorflow::AttrValue::kS:
      attrs->Set(name, value.s());
      break;
    case tensorflow::AttrValue::kShape:
      attrs->Set(name, ShapeFromProto(value.shape()));
      break;
    case tensorflow::AttrValue::kFunc:
      attrs->Set(name, FunctionName{value.func().name()});
      break;
    case tensorflow::AttrValue::kType: {
      FLOE_ASSIGN_OR_RETURN(const DType type, DTypeFromNumber(value.type()));
      attrs->Set(name, type);
      break;
    }
    case tensorflow::AttrValue::kTensor: {
      FLOE_ASSIGN_OR_RETURN(Tensor tensor, TensorFromProto(value.mutable_tensor()));
      attrs->Set(name, std::move(tensor));
      break;
    }
    case tensorflow::AttrValue::kList: {
      FLOE_ASSIGN_OR_RETURN(AttrValue list, ListAttr(value.list()));
      attrs->Set(name, std::move(list));
      break;
    }
    case tensorflow::AttrValue::kPlaceholder:
    case tensorflow::AttrValue::VALUE_NOT_SET:
      break;
  }
  return absl::OkStatus();
}

}  // namespace floe
