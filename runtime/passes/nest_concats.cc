#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "model/op_def.h"
#include "runtime/passes/graph_util.h"
#include "runtime/passes/passes.h"

namespace floe {
namespace {

class Nester {
 public:
  explicit Nester(Graph* graph) : graph_(*graph) {}

  void Run() {
    for (int i = 0; i < graph_.size(); ++i) {
      Node& node = graph_.mutable_node(i);
      if (node.op->name != "ConcatV2" || node.inputs.size() < 3 || !node.control_inputs.empty())
        continue;
      const std::optional<int64_t> axis = IntOf(graph_, node.inputs.back());
      if (!axis.has_value()) continue;
      Parts parts(node.inputs.begin(), node.inputs.end() - 1);
      const ValueRef first = parts[0];
      ReplaceRun(*axis, parts, &node.inputs);
      joins_[{*axis, first}].push_back({i, std::move(parts)});
    }
  }

 private:
  using Parts = std::vector<ValueRef>;
  struct Join {
    int node;
    Parts parts;  // as the graph came
  };

  // Puts the longest earlier concatenation in place of its parts.
  void ReplaceRun(int64_t axis, const Parts& parts, Parts* inputs) const {
    const Join* longest = nullptr;
    size_t place = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto starting = joins_.find({axis, parts[i]});
      if (starting == joins_.end()) continue;
      for (const Join& join : starting->second) {
        const bool longer = longest == nullptr || join.parts.size() > longest->parts.size();
        if (!longer || join.parts.size() == parts.size() || join.parts.size() > parts.size() - i ||
            !std::equal(join.parts.begin(), join.parts.end(), parts.begin() + i))
          continue;
        longest = &join;
        place = i;
      }
    }
    if (longest == nullptr) return;
    const auto from = inputs->begin() + static_cast<int64_t>(place);
    *from = {longest->node, 0};
    inputs->erase(from + 1, from + static_cast<int64_t>(longest->parts.size()));
  }

  Graph& graph_;
  std::map<std::pair<int64_t, ValueRef>, std::vector<Join>> joins_;  // by axis and first part
};

}  // namespace

void NestConcats(Graph* graph) { Nester(graph).Run(); }

}  // namespace floe
