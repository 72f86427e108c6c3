#include <memory>
#include <set>
#include <utility>

#include "model/op_def.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rebuild.h"

namespace floe {
namespace {

class Pruner {
 public:
  explicit Pruner(const Graph& graph) : graph_(graph), rebuild_(graph) {}

  Graph Run(bool keep_effects) {
    const std::vector<bool> needed = Needed(keep_effects);
    for (int i = 0; i < graph_.size(); ++i) {
      if (needed[i] && !TrimBranches(i)) rebuild_.Keep(i);
    }
    return rebuild_.Finish();
  }

 private:
  bool Branches(int i) const {
    const std::string& op = graph_.node(i).op->name;
    return op == "If" || op == "Case";
  }

  std::vector<bool> Needed(bool keep_effects) {
    std::vector<bool> needed(graph_.size(), false);
    for (int i = 0; i < graph_.size() && keep_effects; ++i) needed[i] = HasEffect(graph_.node(i));
    for (int input : graph_.inputs) needed[input] = true;
    for (const ValueRef& output : graph_.outputs) needed[output.node] = true;
    read_.insert(graph_.outputs.begin(), graph_.outputs.end());
    for (int i = graph_.size() - 1; i >= 0; --i) {
      if (!needed[i]) continue;
      for (const ValueRef& in : graph_.node(i).inputs) {
        needed[in.node] = true;
        if (Branches(in.node)) read_.insert(in);
      }
      for (int control : graph_.node(i).control_inputs) needed[control] = true;
    }
    return needed;
  }

  // The branches of an If or Case compute only the results that are read: others may fail.
  bool TrimBranches(int i) {
    if (!Branches(i)) return false;
    Node node = graph_.node(i);
    const auto outputs = static_cast<size_t>(node.num_outputs);
    std::vector<int> kept;
    for (int k = 0; k < node.num_outputs; ++k) {
      if (read_.count({i, k}) != 0) kept.push_back(k);
    }
    if (kept.empty() || kept.size() == outputs) return false;
    for (auto& branch : node.subgraphs) {
      if (branch->outputs.size() != outputs) return false;  // refused when it is analysed
      auto less = std::make_shared<Graph>(*branch);
      less->outputs.clear();
      for (const int k : kept) less->outputs.push_back(branch->outputs[k]);
      branch = std::move(less);
    }
    for (ValueRef& in : node.inputs) in = rebuild_.Map(in);
    node.num_outputs = static_cast<int>(kept.size());
    const int index = rebuild_.Emit(i, std::move(node));
    for (size_t k = 0; k < outputs; ++k) rebuild_.Replace(i, static_cast<int>(k), {});
    for (size_t k = 0; k < kept.size(); ++k)
      rebuild_.Replace(i, kept[k], {index, static_cast<int>(k)});
    return true;
  }

  const Graph& graph_;
  std::set<ValueRef> read_;  // by nodes that are needed, and from outside
  Rebuild rebuild_;
};

}  // namespace

void Prune(Graph* graph, bool keep_effects) { *graph = Pruner(*graph).Run(keep_effects); }

}  // namespace floe
