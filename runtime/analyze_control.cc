// Types and row marks through If, Case and While.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "runtime/analyze.h"

namespace floe {
namespace {

// constant < rows of dim 0 or 1 < mixed < unknown; two different kinds of rows meet in mixed.
RowMark Join(RowMark a, RowMark b) {
  if (a == b || b == RowMark::kConstant) return a;
  if (a == RowMark::kConstant) return b;
  if (a == RowMark::kUnknown || b == RowMark::kUnknown) return RowMark::kUnknown;
  return RowMark::kMixed;
}

// The widest type that says no more than both do.
absl::StatusOr<TensorType> Widen(const TensorType& a, const TensorType& b) {
  if (a.dtype != b.dtype) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a value is ", DTypeName(a.dtype), " on one way and ", DTypeName(b.dtype), " on another"));
  }
  return TensorType{a.dtype, JoinShapes(a.shape, b.shape), JoinLists(a.list, b.list)};
}

// Values known outside stay open inside: a subgraph is compiled once for all calls.
std::vector<ValueInfo> TypesOnly(absl::Span<const ValueInfo> values) {
  std::vector<ValueInfo> types;
  for (const ValueInfo& v : values) types.push_back({v.type, {}, {}});
  return types;
}

absl::Status CheckCount(const Graph& graph, size_t inputs, size_t outputs) {
  if (graph.inputs.size() == inputs && graph.outputs.size() == outputs) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a subgraph takes ", graph.inputs.size(),
                                                 " values and gives ", graph.outputs.size(),
                                                 ", the node has ", inputs, " and ", outputs));
}

// A branch per value of the predicate.
absl::StatusOr<ControlAnalysis> AnalyzeBranches(const Node& node,
                                                absl::Span<const ValueInfo> inputs,
                                                absl::Span<const RowMark> marks,
                                                const KernelOptions& options) {
  ControlAnalysis result;
  const std::vector<ValueInfo> passed = TypesOnly(inputs.subspan(1));
  for (const auto& branch : node.subgraphs) {
    FLOE_RETURN_IF_ERROR(CheckCount(*branch, passed.size(), node.num_outputs));
    FLOE_ASSIGN_OR_RETURN(const Analysis analysis,
                          Analyze(*branch, passed, marks.subspan(1), options));
    for (size_t k = 0; k < branch->outputs.size(); ++k) {
      const ValueRef out = branch->outputs[k];
      if (result.culprit.empty()) result.culprit = analysis.culprit[out.node];
      // The same predicate for all rows: which branch is taken changes nothing from row to row.
      RowMark mark = analysis.mark(out);
      if (marks[0] != RowMark::kConstant && mark != RowMark::kUnknown) mark = RowMark::kMixed;
      if (result.values.size() <= k) {
        result.values.push_back({analysis.at(out).type, {}, {}});
        result.marks.push_back(mark);
        continue;
      }
      FLOE_ASSIGN_OR_RETURN(result.values[k].type,
                            Widen(result.values[k].type, analysis.at(out).type));
      // A constant beside rows has the right length, but not row by row.
      result.marks[k] =
          result.marks[k] == mark ? mark : Join(Join(result.marks[k], mark), RowMark::kMixed);
    }
  }
  return result;
}

absl::StatusOr<ControlAnalysis> AnalyzeWhile(const Node& node, absl::Span<const ValueInfo> inputs,
                                             absl::Span<const RowMark> marks,
                                             const KernelOptions& options) {
  const Graph &condition = *node.subgraphs[0], &body = *node.subgraphs[1];
  FLOE_RETURN_IF_ERROR(CheckCount(condition, inputs.size(), 1));
  FLOE_RETURN_IF_ERROR(CheckCount(body, inputs.size(), inputs.size()));
  ControlAnalysis result{TypesOnly(inputs), {marks.begin(), marks.end()}, ""};
  // Each round widens at least one type or mark. Types have few steps to unknown, marks three;
  // bodies that take longer are refused rather than waited for.
  constexpr int kMaxRounds = 16;
  for (int round = 0; round < kMaxRounds; ++round) {
    FLOE_ASSIGN_OR_RETURN(const Analysis analysis,
                          Analyze(body, result.values, result.marks, options));
    bool stable = true;
    for (size_t k = 0; k < inputs.size(); ++k) {
      const ValueRef out = body.outputs[k];
      FLOE_ASSIGN_OR_RETURN(const TensorType type,
                            Widen(result.values[k].type, analysis.at(out).type));
      const RowMark mark = Join(result.marks[k], analysis.mark(out));
      if (result.culprit.empty()) result.culprit = analysis.culprit[out.node];
      stable = stable && type == result.values[k].type && mark == result.marks[k];
      result.values[k].type = type;
      result.marks[k] = mark;
    }
    if (!stable) continue;
    FLOE_ASSIGN_OR_RETURN(const Analysis test,
                          Analyze(condition, result.values, result.marks, options));
    if (test.mark(condition.outputs[0]) != RowMark::kConstant) {
      // How often the body runs depends on the rows together.
      for (RowMark& mark : result.marks) mark = Join(mark, RowMark::kMixed);
      if (result.culprit.empty()) result.culprit = test.culprit[condition.outputs[0].node];
    }
    return result;
  }
  return absl::UnimplementedError("the types of its loop variables do not settle");
}

}  // namespace

absl::StatusOr<ControlAnalysis> AnalyzeControl(const Node& node, absl::Span<const ValueInfo> inputs,
                                               absl::Span<const RowMark> marks,
                                               const KernelOptions& options) {
  FLOE_RETURN_IF_ERROR(SpendVisits(1));
  return node.op->name == "While" ? AnalyzeWhile(node, inputs, marks, options)
                                  : AnalyzeBranches(node, inputs, marks, options);
}

}  // namespace floe
