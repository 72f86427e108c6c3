#include "model/ops/einsum.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace ops {
namespace {

constexpr int kEllipsis = 256;  // labels of ellipsis axes start here, counted from the right

// The labels of one term: characters, and ellipsis places for the axes that no character names.
absl::StatusOr<std::vector<int>> TermLabels(const std::string& term, int ellipsis_axes) {
  std::vector<int> labels;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term[i] == ' ') continue;
    if (term.compare(i, 3, "...") == 0) {
      for (int k = ellipsis_axes; k-- > 0;) labels.push_back(kEllipsis + k);
      i += 2;
    } else if (isalpha(static_cast<unsigned char>(term[i])) != 0) {
      labels.push_back(static_cast<unsigned char>(term[i]));
    } else {
      return Bad(absl::StrCat("equation term '", term, "' has a character that is no label"));
    }
  }
  return labels;
}

int NamedAxes(const std::string& term) {
  int named = 0;
  for (char c : term) named += isalpha(static_cast<unsigned char>(c)) != 0;
  return named;
}

}  // namespace

absl::StatusOr<EinsumLabels> ParseEinsum(const std::string& equation, absl::Span<const int> ranks) {
  const size_t arrow = equation.find("->");
  if (arrow == std::string::npos) return Bad(absl::StrCat("equation '", equation, "' has no ->"));
  std::vector<std::string> terms = {""};
  for (char c : equation.substr(0, arrow)) {
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  }
  if (terms.size() != ranks.size())
    return Bad(absl::StrCat("equation '", equation, "' for ", ranks.size(), " operands"));
  EinsumLabels result;
  std::map<int, int> ids;
  int ellipsis = 0;
  const auto number = [&](const std::vector<int>& labels) {
    std::vector<int> numbered;
    for (int label : labels) {
      const auto [it, fresh] = ids.emplace(label, static_cast<int>(ids.size()));
      if (fresh) result.broadcasts.push_back(label >= kEllipsis);
      numbered.push_back(it->second);
    }
    return numbered;
  };
  for (size_t i = 0; i < terms.size(); ++i) {
    const int rest = ranks[i] - NamedAxes(terms[i]);
    const bool has_ellipsis = terms[i].find("...") != std::string::npos;
    if (rest < 0 || (rest > 0 && !has_ellipsis))
      return Bad(absl::StrCat("equation term '", terms[i], "' for an operand of rank ", ranks[i]));
    ellipsis = std::max(ellipsis, rest);
    FLOE_ASSIGN_OR_RETURN(const std::vector<int> labels, TermLabels(terms[i], rest));
    if (static_cast<int>(labels.size()) != ranks[i])
      return Bad(absl::StrCat("equation term '", terms[i], "' has more than one ellipsis"));
    result.inputs.push_back(number(labels));
  }
  const int known = static_cast<int>(ids.size());
  FLOE_ASSIGN_OR_RETURN(const std::vector<int> labels,
                        TermLabels(equation.substr(arrow + 2), ellipsis));
  result.output = number(labels);
  if (static_cast<int>(ids.size()) != known)
    return Bad(absl::StrCat("equation '", equation, "' makes a label that no operand has"));
  for (size_t i = 0; i < result.output.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (result.output[i] == result.output[k])
        return Bad(absl::StrCat("equation '", equation, "' repeats an output label"));
    }
  }
  result.count = known;
  return result;
}

}  // namespace ops

namespace {

absl::StatusOr<ops::EinsumLabels> LabelsOf(const Node& node, absl::Span<const ValueInfo> inputs) {
  std::vector<int> ranks;
  for (const ValueInfo& input : inputs) ranks.push_back(input.type.shape.rank());
  return ops::ParseEinsum(node.attrs.String("equation"), ranks);
}

absl::StatusOr<Types> InferEinsum(const InferContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (!c.shape(i).rank_known()) return ops::One(c.dtype(0), SymShape::UnknownRank());
  }
  FLOE_ASSIGN_OR_RETURN(const ops::EinsumLabels labels, LabelsOf(c.node, c.inputs));
  std::vector<Dim> sizes(labels.count, Dim(-1));  // -1: not seen
  for (int i = 0; i < c.num_inputs(); ++i) {
    for (int axis = 0; axis < c.shape(i).rank(); ++axis) {
      const int label = labels.inputs[i][axis];
      Dim& size = sizes[label];
      const Dim own = c.shape(i).dim(axis);
      const bool stretches = labels.broadcasts[label];
      if (size == Dim(-1) || size == own || !size.known() || (stretches && size == Dim(1))) {
        if (size == Dim(-1) || own.known()) size = own;
      } else if (own.known() && !(stretches && own == Dim(1))) {
        return Bad(absl::StrCat("dimension ", axis, " of operand ", i, " is ", own.ToString(),
                                ", elsewhere ", size.ToString()));
      }
    }
  }
  SymShape out;
  for (int label : labels.output) out.push_back(sizes[label]);
  return ops::One(c.dtype(0), std::move(out));
}

// Rows stay apart when their label leads every operand that has rows and the output, and stands
// nowhere else.
RowMark EinsumRows(const RowContext& c) {
  bool rows = false;
  for (RowMark mark : c.marks) {
    if (mark == RowMark::kUnknown || mark == RowMark::kMixed) return mark;
    rows = rows || mark == RowMark::kRows;
  }
  if (!rows) return ops::Checked(RowMark::kConstant, c);
  for (const ValueInfo& input : c.inputs) {
    if (!input.type.shape.rank_known()) return RowMark::kMixed;
  }
  const auto labels = LabelsOf(c.node, c.inputs);
  if (!labels.ok() || labels->output.empty()) return RowMark::kMixed;
  const int lead = labels->output[0];
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    for (size_t axis = 0; axis < labels->inputs[i].size(); ++axis) {
      const bool leads = labels->inputs[i][axis] == lead;
      const bool should = c.marks[i] == RowMark::kRows && axis == 0;
      if (leads != should) return RowMark::kMixed;
    }
  }
  return ops::Checked(RowMark::kRows, c);
}

const OpRegistrar kEinsum({.name = "Einsum",
                           .min_inputs = 1,
                           .max_inputs = 2,
                           .infer = InferEinsum,
                           .rows = EinsumRows,
                           .input_types = "T*"});

}  // namespace
}  // namespace floe
