#include "model/import/keras/constants.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"

namespace floe::keras {
namespace {

constexpr int kMaxRank = 32;

// Nested lists flattened: their shape, which must be that of a box, and their items.
class Flattened {
 public:
  absl::Status Add(const Json& json, int depth = 0) {
    const Json* const items = Items(json);
    if (items == nullptr) return AddItem(json, depth);
    if (depth >= kMaxRank) return absl::InvalidArgumentError("a constant nests too deep");
    const auto size = static_cast<int64_t>(items->size());
    if (static_cast<size_t>(depth) == dims_.size() && items_.empty()) dims_.push_back(size);
    if (static_cast<size_t>(depth) >= dims_.size() || dims_[depth] != size) return Ragged();
    for (const Json& item : *items) FLOE_RETURN_IF_ERROR(Add(item, depth + 1));
    return absl::OkStatus();
  }

  absl::StatusOr<Tensor> Build() const {
    const DType dtype = strings_     ? DType::kString
                        : fractions_ ? DType::kFloat64
                        : integers_  ? DType::kInt64
                        : bools_     ? DType::kBool
                                     : DType::kFloat64;
    if (strings_ && (fractions_ || integers_ || bools_))
      return absl::InvalidArgumentError("a constant of numbers and strings");
    FLOE_ASSIGN_OR_RETURN(const int64_t count, CheckedElements(dims_, DTypeSize(dtype)));
    if (count != static_cast<int64_t>(items_.size())) return Ragged();
    FLOE_RETURN_IF_ERROR(CheckValueBytes(count * static_cast<int64_t>(DTypeSize(dtype))));
    Tensor tensor = Tensor::Allocate(dtype, Shape(dims_));
    for (size_t k = 0; k < items_.size(); ++k) Write(*items_[k], k, &tensor);
    return tensor;
  }

  // The type that TensorFlow gives a list of Python's numbers.
  DType ListType() const {
    if (strings_) return DType::kString;
    if (fractions_ || (!integers_ && !bools_)) return DType::kFloat32;
    if (!integers_) return DType::kBool;
    return wide_ ? DType::kInt64 : DType::kInt32;
  }
  bool scalar() const { return dims_.empty(); }
  bool number() const { return integers_ || fractions_; }
  bool fraction() const { return fractions_; }

 private:
  static absl::Status Ragged() {
    return absl::InvalidArgumentError("a constant whose lists have unlike lengths");
  }

  absl::Status AddItem(const Json& json, int depth) {
    if (static_cast<size_t>(depth) != dims_.size()) return Ragged();
    int64_t whole = 0;
    if (json.is_boolean()) {
      bools_ = true;
    } else if (json.is_number_integer()) {
      integers_ = true;
      if (!ToInt(json, &whole)) return absl::InvalidArgumentError("a number past 64 bits");
      wide_ = wide_ || whole > INT32_MAX || whole < INT32_MIN;
    } else if (json.is_number()) {
      fractions_ = true;
    } else if (json.is_string()) {
      strings_ = true;
    } else {
      return absl::InvalidArgumentError(absl::StrCat("a constant with ", Shown(json)));
    }
    items_.push_back(&json);
    return absl::OkStatus();
  }

  static void Write(const Json& item, size_t k, Tensor* to) {
    void* const data = to->mutable_data();
    const bool truth = item.is_boolean() && item.get<bool>();
    switch (to->dtype()) {
      case DType::kString:
        static_cast<std::string*>(data)[k] = item.get<std::string>();
        break;
      case DType::kBool:
        static_cast<bool*>(data)[k] = truth;
        break;
      case DType::kInt64:
        static_cast<int64_t*>(data)[k] = item.is_boolean() ? (truth ? 1 : 0) : item.get<int64_t>();
        break;
      default:
        static_cast<double*>(data)[k] = item.is_boolean() ? (truth ? 1 : 0) : item.get<double>();
    }
  }

  std::vector<int64_t> dims_;
  std::vector<const Json*> items_;
  bool bools_ = false, integers_ = false, fractions_ = false, strings_ = false, wide_ = false;
};

}  // namespace

absl::StatusOr<Constant> ConstantOf(const Json& json) {
  const std::string class_name = Text(json, "class_name");
  const bool typed = class_name == "__numpy__" || class_name == "__tensor__";
  Flattened flat;
  FLOE_RETURN_IF_ERROR(flat.Add(typed ? Member(Member(json, "config"), "value") : json));
  Constant constant;
  FLOE_ASSIGN_OR_RETURN(constant.tensor, flat.Build());
  constant.dtype = flat.ListType();
  if (typed) {
    FLOE_ASSIGN_OR_RETURN(constant.dtype, DTypeFromName(Text(Member(json, "config"), "dtype")));
  } else if (flat.scalar() && flat.number()) {
    constant.weak = true;
    constant.dtype = flat.fraction() ? DType::kFloat64 : DType::kInt64;
  }
  return constant;
}

}  // namespace floe::keras
