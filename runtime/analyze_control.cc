// Types and row marks through If, Case, While and OnDevice.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "runtime/analyze.h"
#include "runtime/predicate.h"
#include "runtime/row_loop.h"

namespace floe {
namespace {

// The number of a row, or a list with an element for each: a constant is neither.
bool NamesRows(RowMark mark) { return mark == RowMark::kRowNumber || mark == RowMark::kRowList; }

// constant < any kind of rows < mixed < unknown; two different kinds of rows meet in mixed.
RowMark Join(RowMark a, RowMark b) {
  if (a == b) return a;
  if (b == RowMark::kConstant && !NamesRows(a)) return a;
  if (a == RowMark::kConstant && !NamesRows(b)) return b;
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

bool HasRows(const SymShape& shape) {
  return std::any_of(shape.dims().begin(), shape.dims().end(),
                     [](Dim dim) { return dim.has_rows(); });
}

bool HasRows(absl::Span<const ValueInfo> values) {
  return std::any_of(values.begin(), values.end(), [](const ValueInfo& v) {
    const ListTypePtr& list = v.type.list;
    return HasRows(v.type.shape) ||
           (list != nullptr && (list->size.has_rows() || HasRows(list->element)));
  });
}

// Whether a subgraph that the analysis refuses for these inputs may stay as long as it is not
// taken. With open rows it may be refused for some numbers of rows only: then the caller asks again
// with the request's own.
bool MayBeUntaken(const absl::Status& refused, absl::Span<const ValueInfo> inputs) {
  return IsErrorOfRun(refused) && !HasRows(inputs);
}

bool IsOfOneRow(RowMark mark) { return mark == RowMark::kOfRow || mark == RowMark::kConstant; }

// What a branch gives when the predicate has this mark. The same predicate for all rows: which
// branch is taken changes nothing from row to row.
RowMark Chosen(RowMark predicate, RowMark mark) {
  if (predicate == RowMark::kConstant || mark == RowMark::kUnknown) return mark;
  return IsOfOneRow(predicate) && IsOfOneRow(mark) ? RowMark::kOfRow : RowMark::kMixed;
}

// Joins what a branch gives into what the branches before it gave.
absl::Status JoinBranch(const Graph& branch, const Analysis& analysis, RowMark predicate,
                        ControlAnalysis* result) {
  const bool first = result->values.empty();
  for (size_t k = 0; k < branch.outputs.size(); ++k) {
    const ValueRef out = branch.outputs[k];
    if (result->culprit.empty()) result->culprit = analysis.culprit[out.node];
    const RowMark mark = Chosen(predicate, analysis.mark(out));
    if (first) {
      result->values.push_back({analysis.at(out).type, {}, {}});
      result->marks.push_back(mark);
      continue;
    }
    FLOE_ASSIGN_OR_RETURN(result->values[k].type,
                          Widen(result->values[k].type, analysis.at(out).type));
    // A constant beside rows has the right length, but not row by row.
    RowMark& joined = result->marks[k];
    if (IsOfOneRow(joined) && IsOfOneRow(mark)) {
      joined = Join(joined, mark);
    } else if (joined != mark) {
      joined = Join(Join(joined, mark), RowMark::kMixed);
    }
  }
  return absl::OkStatus();
}

// A branch per value of the predicate.
absl::StatusOr<ControlAnalysis> AnalyzeBranches(const Node& node,
                                                absl::Span<const ValueInfo> inputs,
                                                absl::Span<const RowMark> marks,
                                                const KernelOptions& options) {
  const std::vector<ValueInfo> passed = TypesOnly(inputs.subspan(1));
  for (const auto& branch : node.subgraphs)
    FLOE_RETURN_IF_ERROR(CheckCount(*branch, passed.size(), node.num_outputs));
  // A predicate that is known before the run is the same for all requests.
  const bool known = inputs[0].has_constant();
  size_t first = 0, end = node.subgraphs.size();
  if (known) {
    FLOE_ASSIGN_OR_RETURN(first, BranchTaken(node, inputs[0].constant.view()));
    end = first + 1;
  }
  ControlAnalysis result;
  absl::Status refused;
  bool any = false;
  for (size_t b = first; b < end; ++b) {
    const Graph& branch = *node.subgraphs[b];
    const auto analysis = Analyze(branch, passed, marks.subspan(1), options);
    if (analysis.ok()) {
      any = true;
      FLOE_RETURN_IF_ERROR(
          JoinBranch(branch, *analysis, known ? RowMark::kConstant : marks[0], &result));
    } else if (MayBeUntaken(analysis.status(), passed)) {
      refused.Update(analysis.status());
    } else {
      return analysis.status();
    }
  }
  if (!any) return refused;
  if (!refused.ok()) {
    // What the other branch would give is not known.
    for (ValueInfo& value : result.values) value.type = TensorType{value.type.dtype};
    for (RowMark& mark : result.marks) mark = RowMark::kUnknown;
  }
  return result;
}

// Joins what one iteration gives into what it was given; true when that says no less than before.
// Of a loop over rows nothing but the number and the lists may go from one row to the next.
absl::StatusOr<bool> JoinRound(const Graph& body, const Analysis& analysis,
                               ControlAnalysis* result) {
  bool stable = true;
  for (size_t k = 0; k < body.outputs.size(); ++k) {
    const ValueRef out = body.outputs[k];
    FLOE_ASSIGN_OR_RETURN(const TensorType type,
                          Widen(result->values[k].type, analysis.at(out).type));
    const RowMark before = result->marks[k];
    RowMark mark = Join(before, analysis.mark(out));
    if (result->over_rows && before == RowMark::kRowNumber) mark = before;
    if (result->over_rows && mark == RowMark::kOfRow) mark = RowMark::kMixed;
    if (result->culprit.empty() && mark != RowMark::kRowNumber)
      result->culprit = analysis.culprit[out.node];
    stable = stable && type == result->values[k].type && mark == before;
    result->values[k].type = type;
    result->marks[k] = mark;
  }
  return stable;
}

// Says nothing of the variables that a iteration may change: no iteration can make it say less.
void SayNothing(const Graph& body, ControlAnalysis* result) {
  for (size_t k = 0; k < body.outputs.size(); ++k) {
    if (body.outputs[k] == ValueRef{body.inputs[k], 0}) continue;
    result->values[k].type = TensorType{result->values[k].type.dtype};
    result->marks[k] = RowMark::kUnknown;
  }
}

absl::StatusOr<ControlAnalysis> AnalyzeWhile(const Node& node, absl::Span<const ValueInfo> inputs,
                                             absl::Span<const RowMark> marks,
                                             const KernelOptions& options) {
  const Graph &condition = *node.subgraphs[0], &body = *node.subgraphs[1];
  FLOE_RETURN_IF_ERROR(CheckCount(condition, inputs.size(), 1));
  FLOE_RETURN_IF_ERROR(CheckCount(body, inputs.size(), inputs.size()));
  ControlAnalysis result{TypesOnly(inputs), {marks.begin(), marks.end()}, ""};
  result.over_rows = MarkLoopOverRows(node, inputs, &result.marks);
  // Each iteration widens at least one type or mark. What variables hand on to each other takes a
  // iteration for each; a body that takes longer settles at nothing known, in one iteration more.
  const size_t exact_iterations = 16 + std::min<size_t>(inputs.size(), 256);
  for (size_t iteration = 0;; ++iteration) {
    const auto analysis = Analyze(body, result.values, result.marks, options);
    if (!analysis.ok()) {
      if (!MayBeUntaken(analysis.status(), result.values)) return analysis.status();
      SayNothing(body, &result);
      break;
    }
    FLOE_ASSIGN_OR_RETURN(const bool stable, JoinRound(body, *analysis, &result));
    if (stable) break;
    if (iteration >= exact_iterations) SayNothing(body, &result);
  }
  FLOE_ASSIGN_OR_RETURN(const Analysis test,
                        Analyze(condition, result.values, result.marks, options));
  const RowMark again = test.mark(condition.outputs[0]);
  for (RowMark& mark : result.marks) {
    if (result.over_rows) {
      if (mark == RowMark::kRowNumber) mark = RowMark::kMixed;
    } else if (again == RowMark::kOfRow && IsOfOneRow(mark)) {
      mark = RowMark::kOfRow;
    } else if (again != RowMark::kConstant) {
      mark = Join(mark, RowMark::kMixed);  // how often the body runs depends on the rows together
    }
  }
  if (!result.over_rows && !IsOfOneRow(again) && result.culprit.empty())
    result.culprit = test.culprit[condition.outputs[0].node];
  return result;
}

absl::StatusOr<ControlAnalysis> AnalyzeIsland(const Node& node, absl::Span<const ValueInfo> inputs,
                                              absl::Span<const RowMark> marks,
                                              const KernelOptions& options) {
  const Graph& body = *node.subgraphs[0];
  FLOE_RETURN_IF_ERROR(CheckCount(body, inputs.size(), node.num_outputs));
  FLOE_ASSIGN_OR_RETURN(const Analysis analysis, Analyze(body, TypesOnly(inputs), marks, options));
  ControlAnalysis result;
  for (const ValueRef& out : body.outputs) {
    result.values.push_back({analysis.at(out).type, {}, {}});
    result.marks.push_back(analysis.mark(out));
    if (result.culprit.empty()) result.culprit = analysis.culprit[out.node];
  }
  return result;
}

}  // namespace

absl::StatusOr<ControlAnalysis> AnalyzeControl(const Node& node, absl::Span<const ValueInfo> inputs,
                                               absl::Span<const RowMark> marks,
                                               const KernelOptions& options) {
  FLOE_RETURN_IF_ERROR(SpendVisits(1));
  if (HasPredicate(node)) return AnalyzeBranches(node, inputs, marks, options);
  return node.op->name == "While" ? AnalyzeWhile(node, inputs, marks, options)
                                  : AnalyzeIsland(node, inputs, marks, options);
}

}  // namespace floe
