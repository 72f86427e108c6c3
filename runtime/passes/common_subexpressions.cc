#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/attrs_key.h"
#include "model/op_def.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rebuild.h"

namespace floe {
namespace {

// A few elements from both ends: unequal constants rarely agree in them.
std::string Sample(const Tensor& value) {
  std::string key = absl::StrCat(DTypeName(value.dtype()), value.shape().ToString());
  if (value.dtype() == DType::kString) {
    const int64_t n = std::min<int64_t>(value.elements(), 4);
    for (int64_t i = 0; i < n; ++i) absl::StrAppend(&key, value.as<std::string>()[i], ",");
    return key;
  }
  const size_t end = std::min<size_t>(value.bytes(), 64);
  if (end != 0) {
    key.append(value.as<char>(), end);
    key.append(value.as<char>() + value.bytes() - end, end);
  }
  return key;
}

bool SameContent(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.data() == b.data()) return true;
  if (a.dtype() == DType::kString)
    return std::equal(a.as<std::string>(), a.as<std::string>() + a.elements(), b.as<std::string>());
  return a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

class Merger {
 public:
  explicit Merger(const Graph& graph) : graph_(graph), rebuild_(graph) {}

  Graph Run() {
    for (int i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.node(i);
      const int same = node.op->name == "Const" ? SameConstant(i) : SameNode(i);
      if (same < 0) continue;
      for (int k = 0; k < std::max(node.num_outputs, 1); ++k)
        rebuild_.Replace(i, k, rebuild_.Map({same, k}));
    }
    return rebuild_.Finish();
  }

 private:
  // Each returns the earlier node that gives the same values, or -1 after keeping this one.
  int SameConstant(int i) {
    const Tensor* value = graph_.node(i).attrs.Find<Tensor>("value");
    const bool comparable = value != nullptr && graph_.node(i).control_inputs.empty() &&
                            (DTypeSize(value->dtype()) != 0 || value->dtype() == DType::kString);
    if (comparable) {
      std::vector<int>& alike = constants_[Sample(*value)];
      for (int other : alike) {
        if (SameContent(*value, *graph_.node(other).attrs.Find<Tensor>("value"))) return other;
      }
      alike.push_back(i);
    }
    rebuild_.Keep(i);
    return -1;
  }

  int SameNode(int i) {
    const Node& node = graph_.node(i);
    if (!node.op->stateful && !node.op->effect && node.subgraphs.empty() &&
        node.control_inputs.empty() && node.op->outputs != 0 && !node.inputs.empty() &&
        node.op->name != "Switch" && node.op->name != "Merge") {
      const auto [at, fresh] = nodes_.emplace(KeyOf(node), i);
      if (!fresh) return at->second;
    }
    rebuild_.Keep(i);
    return -1;
  }

  std::string KeyOf(const Node& node) const {
    std::string key = absl::StrCat(node.op->name, "|", node.num_outputs);
    for (const ValueRef& in : node.inputs) {
      const ValueRef mapped = rebuild_.Map(in);
      absl::StrAppend(&key, "|", mapped.node, ":", mapped.output);
    }
    Attrs attrs;
    for (const auto& [name, value] : node.attrs.values()) {
      // Names that begin with '_' are remarks of the file's writer.
      if (!name.empty() && name[0] != '_') attrs.Set(name, value);
    }
    return absl::StrCat(key, "|", AttrsKey(attrs));
  }

  const Graph& graph_;
  Rebuild rebuild_;
  std::unordered_map<std::string, std::vector<int>> constants_;  // by sample
  std::unordered_map<std::string, int> nodes_;
};

}  // namespace

void MergeCommonSubexpressions(Graph* graph) { *graph = Merger(*graph).Run(); }

}  // namespace floe
