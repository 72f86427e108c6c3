// x/2 * (1 + erf(x / sqrt(2))), its forms with erfc and with tanh, in any order of operations; and
// x * tanh(softplus(x)), which is Mish.
#include <algorithm>
#include <map>

#include "base/status.h"
#include "model/op_def.h"
#include "runtime/analyze.h"
#include "runtime/passes/graph_util.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rebuild.h"
#include "runtime/passes/terms.h"

namespace floe {
namespace {

struct Form {
  const char* function;
  const char* fused;
  Terms argument;  // in x
  Terms result;    // in x and the function's value
};

const std::vector<Form>& Forms() {
  constexpr double kHalfRoot = 0.70710678118654752, kSlope = 0.79788456080286536;
  static const auto* forms = new std::vector<Form>{
      {"Erf", "Gelu", {{{1, 0, 0}, {kHalfRoot}}}, {{{1, 0, 0}, {0.5}}, {{1, 1, 0}, {0.5}}}},
      {"Erfc", "Gelu", {{{1, 0, 0}, {-kHalfRoot}}}, {{{1, 1, 0}, {0.5}}}},
      {"Tanh",
       "GeluTanh",
       {{{1, 0, 0}, {kSlope}}, {{3, 0, 0}, {kSlope * 0.044715}}},
       {{{1, 0, 0}, {0.5}}, {{1, 1, 0}, {0.5}}}},
  };
  return *forms;
}

const Form* FormOf(const Node& node) {
  for (const Form& form : Forms()) {
    if (node.op->name == form.function && node.control_inputs.empty()) return &form;
  }
  return nullptr;
}

// Looked at before anything is analysed: the tanh of a cell, say, has no product inside.
bool MayBeGeluPart(const Graph& graph, const Node& node) {
  if (FormOf(node) == nullptr) return false;
  const std::string& argument = graph.node(node.inputs[0].node).op->name;
  return node.op->name != "Tanh" || argument == "Mul" || argument == "Softplus";
}

struct GeluMatch {
  ValueRef x;
  const char* fused = nullptr;
};

class GeluFinder {
 public:
  GeluFinder(const Graph& graph, const Analysis& analysis)
      : graph_(graph), analysis_(analysis), uses_(graph) {}

  // By the node that the fused one replaces.
  std::map<int, GeluMatch> Find() {
    std::map<int, GeluMatch> matches;
    for (int i = 0; i < graph_.size(); ++i) {
      const Form* form = FormOf(graph_.node(i));
      if (form == nullptr || analysis_.values[i][0].type.dtype != DType::kFloat32) continue;
      if (const int product = MishOf(i); product >= 0) {
        matches[product] = {graph_.node(graph_.node(i).inputs[0].node).inputs[0], "Mish"};
        continue;
      }
      for (const ValueRef& x : Candidates(graph_.node(i).inputs[0])) {
        const int root = RootOf(i, *form, x);
        if (root < 0) continue;
        matches[root] = {x, form->fused};
        break;
      }
    }
    return matches;
  }

 private:
  // The product of x and tanh node `i` of softplus(x), or -1.
  int MishOf(int i) const {
    const int softplus = graph_.node(i).inputs[0].node, product = uses_.OnlyUser(i);
    if (product < 0 || graph_.node(i).op->name != "Tanh" || uses_.OnlyUser(softplus) != i ||
        graph_.node(softplus).op->name != "Softplus" || graph_.node(product).op->name != "Mul" ||
        !graph_.node(softplus).control_inputs.empty() ||
        !graph_.node(product).control_inputs.empty())
      return -1;
    const std::vector<ValueRef>& factors = graph_.node(product).inputs;
    const ValueRef x = graph_.node(softplus).inputs[0];
    return factors[0] == x || factors[1] == x ? product : -1;
  }

  // What the argument may be computed from: the values on the way, the nearest first.
  std::vector<ValueRef> Candidates(ValueRef argument) const {
    constexpr size_t kMost = 12;
    std::vector<ValueRef> found = {argument};
    for (size_t next = 0; next < found.size() && found.size() < kMost; ++next) {
      const Node& node = graph_.node(found[next].node);
      if (!IsArithmetic(node)) continue;
      for (const ValueRef& in : node.inputs) {
        if (ConstantOf(graph_, in) == nullptr &&
            std::find(found.begin(), found.end(), in) == found.end())
          found.push_back(in);
      }
    }
    return found;
  }

  // The node that completes the formula around function node `i`, or -1.
  int RootOf(int i, const Form& form, ValueRef x) {
    constexpr int kMostSteps = 5;
    const SymShape& shape = analysis_.at(x).type.shape;
    const int rank = shape.rank_known() ? shape.rank() : 0;
    TermReader argument(graph_, {{x, 0, 1}}, rank, 1, &budget_);
    const auto inside = argument.Read(graph_.node(i).inputs[0]);
    if (!inside.has_value() || !SameTerms(*inside, form.argument)) return -1;
    int root = i;
    for (int step = 0; step < kMostSteps; ++step) {
      root = uses_.OnlyUser(root);
      if (root < 0) return -1;
      TermReader result(graph_, {{x, 0, 1}, {{i, 0}, 1, 1}}, rank, 1, &budget_);
      const auto terms = result.Read({root, 0});
      if (!terms.has_value() || !SameTerms(*terms, form.result)) continue;
      std::set<int> members = result.inner();
      members.insert(argument.inner().begin(), argument.inner().end());
      members.insert(i);
      return OnlyReadInside(graph_, uses_, members, root) ? root : -1;
    }
    return -1;
  }

  const Graph& graph_;
  const Analysis& analysis_;
  const Uses uses_;
  TermBudget budget_;
};

}  // namespace

absl::Status FuseGelu(Graph* graph, absl::Span<const TensorType> inputs,
                      const KernelOptions& options) {
  if (std::none_of(graph->nodes().begin(), graph->nodes().end(),
                   [&](const Node& node) { return MayBeGeluPart(*graph, node); }))
    return absl::OkStatus();
  FLOE_ASSIGN_OR_RETURN(const Analysis analysis, AnalyzeWithRows(*graph, inputs, options));
  const std::map<int, GeluMatch> matches = GeluFinder(*graph, analysis).Find();
  if (matches.empty()) return absl::OkStatus();
  *graph = ReplaceMatches(*graph, matches, [&](int i, const GeluMatch& match, Rebuild* rebuild) {
    Node gelu;
    gelu.name = graph->node(i).name;
    gelu.op = FindOp(match.fused);
    gelu.attrs.Set("T", DType::kFloat32);
    gelu.inputs = {rebuild->Map(match.x)};
    return gelu;
  });
  Prune(graph);
  return absl::OkStatus();
}

}  // namespace floe
