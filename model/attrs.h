// Named attributes of a node.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "model/dtype.h"
#include "model/epilogue.h"
#include "model/shape.h"
#include "model/tensor.h"

namespace floe {

struct FunctionName {
  std::string name;
  bool operator==(const FunctionName& o) const { return name == o.name; }
};

using AttrValue = std::variant<int64_t, float, bool, std::string, DType, SymShape, Tensor,
                               FunctionName, std::vector<int64_t>, std::vector<float>,
                               std::vector<bool>, std::vector<std::string>, std::vector<DType>,
                               std::vector<SymShape>, std::vector<FunctionName>, Epilogue>;

// Names that are looked up on this thread while somebody listens, for the test of what ops read.
inline thread_local std::set<std::string>* attrs_looked_up = nullptr;

// A small map. Typed getters return the given default when the name is absent or of another type.
class Attrs {
 public:
  void Set(const std::string& name, AttrValue value) { values_[name] = std::move(value); }
  void Erase(const std::string& name) { values_.erase(name); }
  bool Has(const std::string& name) const {
    Note(name);
    return values_.count(name) != 0;
  }

  template <typename T>
  const T* Find(const std::string& name) const {
    Note(name);
    const auto it = values_.find(name);
    return it == values_.end() ? nullptr : std::get_if<T>(&it->second);
  }
  template <typename T>
  T Get(const std::string& name, T otherwise) const {
    const T* value = Find<T>(name);
    return value == nullptr ? std::move(otherwise) : *value;
  }
  int64_t Int(const std::string& name, int64_t otherwise = 0) const {
    return Get<int64_t>(name, otherwise);
  }
  bool Bool(const std::string& name, bool otherwise = false) const {
    return Get<bool>(name, otherwise);
  }
  float Float(const std::string& name, float otherwise = 0) const {
    return Get<float>(name, otherwise);
  }
  std::string String(const std::string& name, std::string otherwise = "") const {
    return Get<std::string>(name, std::move(otherwise));
  }
  DType Type(const std::string& name, DType otherwise = DType::kInvalid) const {
    return Get<DType>(name, otherwise);
  }
  std::vector<int64_t> Ints(const std::string& name) const {
    return Get<std::vector<int64_t>>(name, {});
  }

  const std::map<std::string, AttrValue>& values() const { return values_; }

 private:
  static void Note(const std::string& name) {
    if (attrs_looked_up != nullptr) attrs_looked_up->insert(name);
  }

  std::map<std::string, AttrValue> values_;
};

}  // namespace floe
