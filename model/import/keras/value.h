// What layers take and give: tensors with their masks, in the nested structures of Python.
#pragma once

#include <string>
#include <vector>

#include "model/graph.h"
#include "model/import/keras/json.h"

namespace floe::keras {

// A value of the graph and its mask (bool, a prefix of the value's shape), where it has one.
struct KTensor {
  ValueRef value;
  ValueRef mask;
  bool has_mask() const { return mask.node >= 0; }
};

// None, a tensor, a plain value of the configuration, or a list or dict of these.
struct KValue {
  enum class Kind { kNone, kTensor, kJson, kList, kDict };

  KValue() = default;
  KValue(KTensor t) : kind(Kind::kTensor), tensor(t) {}       // NOLINT: layers return tensors
  KValue(ValueRef v) : kind(Kind::kTensor), tensor{v, {}} {}  // NOLINT
  KValue(const Json& j) : kind(Kind::kJson), json(&j) {}      // NOLINT: j outlives it
  KValue(std::vector<KValue> list) : kind(Kind::kList), items(std::move(list)) {}  // NOLINT

  bool is_none() const { return kind == Kind::kNone; }
  bool is_tensor() const { return kind == Kind::kTensor; }

  Kind kind = Kind::kNone;
  KTensor tensor;
  const Json* json = nullptr;
  std::vector<KValue> items;
  std::vector<std::string> keys;  // of a dict, beside `items`
};

// The tensors inside, in the order of Keras' tree.flatten: dicts by their sorted keys.
std::vector<KTensor> Flatten(const KValue& value);

}  // namespace floe::keras
