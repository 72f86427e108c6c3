#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/op_def.h"
#include "runtime/analyze.h"
#include "runtime/passes/graph_util.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rebuild.h"

namespace floe {
namespace {

// A loop that never runs must not fail for what was moved in front of it. Moved are only ops
// that give a result for all values of the right types.
bool NeverFails(const Node& node) {
  static const std::set<std::string> names = {
      "MatMul",   "BatchMatMul", "Conv2D",    "DepthwiseConv2dNative",
      "BiasAdd",  "Transpose",   "ConcatV2",  "Pack",
      "Softmax",  "LogSoftmax",  "Sum",       "Mean",
      "Max",      "Min",         "Prod",      "ZerosLike",
      "OnesLike", "Tile",        "Split",     "SplitV",
      "Unpack",   "Identity",    "ExpandDims"};
  return node.op->rows == RowsElementwise || names.count(node.op->name) != 0;
}

// Integers are mostly shapes, whose values are known where they are made and would not be behind a
// loop variable. They are also what integer division fails for.
bool Hoistable(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kFloat16 ||
         dtype == DType::kBFloat16 || dtype == DType::kComplex64 || dtype == DType::kComplex128;
}

std::vector<ValueInfo> DTypesOnly(const std::vector<TensorType>& types) {
  std::vector<ValueInfo> infos;
  for (const TensorType& type : types) {
    ValueInfo info;
    info.type.dtype = type.dtype;
    info.type.list = type.list;
    infos.push_back(std::move(info));
  }
  return infos;
}

class Hoister {
 public:
  Hoister(const Graph& graph, const KernelOptions& options)
      : graph_(graph), options_(options), rebuild_(graph) {}

  absl::StatusOr<Graph> Run(const std::vector<TensorType>& inputs) {
    const std::vector<ValueInfo> infos = DTypesOnly(inputs);
    const std::vector<RowMark> marks(infos.size(), RowMark::kUnknown);
    FLOE_ASSIGN_OR_RETURN(analysis_, Analyze(graph_, infos, marks, options_));
    for (int i = 0; i < graph_.size(); ++i) {
      if (graph_.node(i).op->name == "While") {
        Loop(i);
      } else {
        rebuild_.Keep(i);
      }
    }
    return rebuild_.Finish();
  }

 private:
  void Loop(int i) {
    Node node = graph_.node(i);
    for (ValueRef& in : node.inputs) in = rebuild_.Map(in);
    std::vector<TensorType> types;
    for (const ValueRef& in : graph_.node(i).inputs) types.push_back(analysis_.at(in).type);
    for (size_t s : {0, 1}) {
      Graph inner = *node.subgraphs[s];
      // Innermost loops first: what leaves them may leave this one too. A body that the analysis
      // refuses is reported when it is compiled.
      if (HasLoop(inner)) {
        auto hoisted = Hoister(inner, options_).Run(types);
        if (hoisted.ok()) inner = *std::move(hoisted);
      }
      node.subgraphs[s] = std::make_shared<const Graph>(std::move(inner));
    }
    for (size_t s : {0, 1}) FromSubgraph(s, &types, &node);
    node.num_outputs = static_cast<int>(node.inputs.size());
    rebuild_.Emit(i, std::move(node));
  }

  static bool HasLoop(const Graph& graph) {
    return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                       [](const Node& node) { return node.op->name == "While"; });
  }

  // Moves the invariant values of subgraph `s` in front of the loop: each becomes a variable more.
  void FromSubgraph(size_t s, std::vector<TensorType>* types, Node* node) {
    const Graph graph = *node->subgraphs[s];
    const auto body_graph = node->subgraphs[1];
    const Graph& body = *body_graph;
    if (graph.inputs.size() != types->size() || body.outputs.size() != types->size() ||
        body.inputs.size() != types->size())
      return;  // reported by the analysis
    const std::vector<RowMark> marks(types->size(), RowMark::kUnknown);
    const auto analysis = Analyze(graph, DTypesOnly(*types), marks, options_);
    if (!analysis.ok()) return;
    std::vector<bool> unchanged;
    for (size_t k = 0; k < body.outputs.size(); ++k)
      unchanged.push_back(body.outputs[k] == ValueRef{body.inputs[k], 0});
    const std::vector<bool> moves = Moving(graph, *analysis, unchanged);
    const std::vector<ValueRef> leaving = ReadByOthers(graph, moves);
    if (leaving.empty()) return;

    const std::string prefix = absl::StrCat(node->name, s == 0 ? "/condition/" : "/body/");
    std::vector<ValueRef> outside = Copy(graph, moves, leaving, *node, prefix);
    for (size_t v = 0; v < leaving.size(); ++v) {
      node->inputs.push_back(outside[v]);
      types->push_back(analysis->at(leaving[v]).type);
    }
    for (size_t g : {0, 1}) {
      node->subgraphs[g] =
          WithVariables(*node->subgraphs[g], g == s ? leaving : std::vector<ValueRef>{},
                        leaving.size(), prefix, *analysis, leaving, g == 1);
    }
  }

  // Nodes that depend on unchanged variables and constants alone, and on one variable at least.
  static std::vector<bool> Moving(const Graph& graph, const Analysis& analysis,
                                  const std::vector<bool>& unchanged) {
    std::vector<bool> invariant(graph.size(), false), varies(graph.size(), false);
    for (size_t k = 0; k < graph.inputs.size(); ++k)
      invariant[graph.inputs[k]] = k < unchanged.size() && unchanged[k];
    for (int i = 0; i < graph.size(); ++i) {
      const Node& node = graph.node(i);
      if (node.op->name == "Input") continue;
      if (node.op->name == "Const") {
        invariant[i] = node.control_inputs.empty();
        continue;
      }
      invariant[i] = !node.inputs.empty() && node.control_inputs.empty() &&
                     node.subgraphs.empty() && !node.op->stateful && !node.op->effect &&
                     !node.op->allocates && NeverFails(node) &&
                     std::all_of(analysis.values[i].begin(), analysis.values[i].end(),
                                 [](const ValueInfo& v) { return Hoistable(v.type.dtype); }) &&
                     std::all_of(node.inputs.begin(), node.inputs.end(),
                                 [&](const ValueRef& in) { return invariant[in.node]; });
      varies[i] = invariant[i];
    }
    // An alias costs nothing where it is; it moves only with what reads it.
    std::vector<std::vector<int>> users(graph.size());
    std::vector<bool> stays(graph.size(), false);
    for (int i = 0; i < graph.size(); ++i) {
      for (const ValueRef& in : graph.node(i).inputs) users[in.node].push_back(i);
    }
    for (const ValueRef& out : graph.outputs) stays[out.node] = true;
    std::vector<bool> moves = varies;
    for (int i = graph.size() - 1; i >= 0; --i) {
      if (moves[i] && graph.node(i).op->alias) {
        moves[i] = !stays[i] && std::all_of(users[i].begin(), users[i].end(),
                                            [&](int user) { return moves[user]; });
      }
    }
    // What only rests on constants is folded where it is.
    std::vector<bool> on_variable(graph.size(), false);
    for (int input : graph.inputs) on_variable[input] = true;
    for (int i = 0; i < graph.size(); ++i) {
      for (const ValueRef& in : graph.node(i).inputs)
        on_variable[i] = on_variable[i] || on_variable[in.node];
      moves[i] = moves[i] && on_variable[i];
    }
    // A moving node reads only what moves too, variables and constants.
    for (int i = 0; i < graph.size(); ++i) {
      for (const ValueRef& in : graph.node(i).inputs) {
        const std::string& op = graph.node(in.node).op->name;
        moves[i] = moves[i] && (moves[in.node] || op == "Input" || op == "Const");
      }
    }
    return moves;
  }

  static std::vector<ValueRef> ReadByOthers(const Graph& graph, const std::vector<bool>& moves) {
    std::set<ValueRef> values;
    for (int i = 0; i < graph.size(); ++i) {
      if (moves[i]) continue;
      for (const ValueRef& in : graph.node(i).inputs) {
        if (moves[in.node]) values.insert(in);
      }
    }
    for (const ValueRef& out : graph.outputs) {
      if (moves[out.node]) values.insert(out);
    }
    return {values.begin(), values.end()};
  }

  // The moving nodes in front of the loop; returns where the leaving values are then.
  std::vector<ValueRef> Copy(const Graph& graph, const std::vector<bool>& moves,
                             const std::vector<ValueRef>& leaving, const Node& loop,
                             const std::string& prefix) {
    std::vector<int> copy(graph.size(), -1);
    const auto at = [&](ValueRef in) -> ValueRef {
      for (size_t k = 0; k < graph.inputs.size(); ++k) {
        if (graph.inputs[k] == in.node) return loop.inputs[k];
      }
      if (copy[in.node] < 0) {  // a constant
        Node constant = graph.node(in.node);
        constant.name = absl::StrCat(prefix, constant.name);
        copy[in.node] = rebuild_.Append(std::move(constant));
      }
      return {copy[in.node], in.output};
    };
    for (int i = 0; i < graph.size(); ++i) {
      if (!moves[i]) continue;
      Node node = graph.node(i);
      node.name = absl::StrCat(prefix, node.name);
      for (ValueRef& in : node.inputs) in = at(in);
      copy[i] = rebuild_.Append(std::move(node));
    }
    std::vector<ValueRef> values;
    for (const ValueRef& value : leaving) values.push_back({copy[value.node], value.output});
    return values;
  }

  // A subgraph with `count` inputs more, which take the place of the `replaced` values.
  static std::shared_ptr<const Graph> WithVariables(const Graph& graph,
                                                    const std::vector<ValueRef>& replaced,
                                                    size_t count, const std::string& prefix,
                                                    const Analysis& analysis,
                                                    const std::vector<ValueRef>& leaving,
                                                    bool is_body) {
    Rebuild rebuild(graph);
    std::vector<int> inputs;
    for (size_t v = 0; v < count; ++v) {
      Node input;
      input.name = absl::StrCat(prefix, "hoisted_", graph.inputs.size() + v);
      input.op = FindOp("Input");
      input.attrs.Set("dtype", analysis.at(leaving[v]).type.dtype);
      inputs.push_back(rebuild.Append(std::move(input)));
    }
    for (int i = 0; i < graph.size(); ++i) {
      rebuild.Keep(i);
      for (size_t v = 0; v < replaced.size(); ++v) {
        if (replaced[v].node == i) rebuild.Replace(i, replaced[v].output, {inputs[v], 0});
      }
    }
    Graph wider = rebuild.Finish();
    for (int input : inputs) {
      wider.inputs.push_back(input);
      if (is_body) wider.outputs.push_back({input, 0});
    }
    Prune(&wider);
    return std::make_shared<const Graph>(std::move(wider));
  }

  const Graph& graph_;
  const KernelOptions& options_;
  Rebuild rebuild_;
  Analysis analysis_;
};

}  // namespace

absl::Status HoistInvariants(Graph* graph, absl::Span<const TensorType> inputs,
                             const KernelOptions& options) {
  const bool any = std::any_of(graph->nodes().begin(), graph->nodes().end(),
                               [](const Node& node) { return node.op->name == "While"; });
  if (!any) return absl::OkStatus();
  FLOE_ASSIGN_OR_RETURN(*graph, Hoister(*graph, options).Run({inputs.begin(), inputs.end()}));
  return absl::OkStatus();
}

}  // namespace floe
