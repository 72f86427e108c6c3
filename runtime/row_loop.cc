#include "runtime/row_loop.h"

#include <algorithm>

namespace floe {
namespace {

class RowLoop {
 public:
  RowLoop(const Node& loop, absl::Span<const ValueInfo> inputs)
      : test_(*loop.subgraphs[0]), body_(*loop.subgraphs[1]), inputs_(inputs) {}

  // Every part of the condition has to say "number < rows".
  bool CountsRows() const {
    constexpr size_t kMostParts = 64;  // tf.map_fn has two
    std::vector<ValueRef> parts{test_.outputs[0]};
    for (size_t p = 0; p < parts.size(); ++p) {
      const Node& node = test_.node(Source(test_, parts[p]).node);
      if (node.op->name == "LogicalAnd") {
        parts.insert(parts.end(), node.inputs.begin(), node.inputs.end());
      } else if (!IsNumberBelowRows(node)) {
        return false;
      }
      if (parts.size() > kMostParts) return false;
    }
    return true;
  }

  bool IsNumber(size_t k) const {
    if (!IsInteger(inputs_[k], 0)) return false;
    const ValueRef next = Source(body_, body_.outputs[k]);
    const Node& add = body_.node(next.node);
    if (add.op->name != "Add") return false;
    return (IsVariable(body_, add.inputs[0], k) && IsOne(add.inputs[1])) ||
           (IsVariable(body_, add.inputs[1], k) && IsOne(add.inputs[0]));
  }

  bool IsInvariant(size_t k) const { return IsVariable(body_, body_.outputs[k], k); }

  // The list of the iteration before with elements written into it, and no other list.
  bool IsWrittenOnly(size_t k) const {
    ValueRef list = Source(body_, body_.outputs[k]);
    for (;;) {
      const Node& node = body_.node(list.node);
      if (node.op->name == "TensorListSetItem") {
        list = Source(body_, node.inputs[0]);
      } else if (node.op->name == "TensorArrayWriteV3") {
        list = Source(body_, node.inputs[3]);
      } else {
        return IsVariable(body_, list, k);
      }
    }
  }

 private:
  static ValueRef Source(const Graph& graph, ValueRef value) {
    while (graph.node(value.node).op->name == "Identity") value = graph.node(value.node).inputs[0];
    return value;
  }

  static bool IsVariable(const Graph& graph, ValueRef value, size_t k) {
    return Source(graph, value) == ValueRef{graph.inputs[k], 0};
  }

  // The variable that a value is; their number when it is none.
  static size_t VariableOf(const Graph& graph, ValueRef value) {
    const ValueRef source = Source(graph, value);
    return std::find(graph.inputs.begin(), graph.inputs.end(), source.node) - graph.inputs.begin();
  }

  static bool IsInteger(const ValueInfo& value, int64_t wanted) {
    if (!value.has_constant() || value.constant.shape().rank() != 0) return false;
    const auto integer = IntegerValues(value.constant.view());
    return integer.ok() && (*integer)[0] == wanted;
  }

  bool IsOne(ValueRef value) const {
    const size_t k = VariableOf(body_, value);
    if (k < inputs_.size()) return IsInvariant(k) && IsInteger(inputs_[k], 1);
    const Node& node = body_.node(Source(body_, value).node);
    const Tensor* constant = node.op->name == "Const" ? node.attrs.Find<Tensor>("value") : nullptr;
    return constant != nullptr && IsInteger({{}, *constant, {}}, 1);
  }

  bool IsNumberBelowRows(const Node& node) const {
    if (node.op->name != "Less") return false;
    const size_t number = VariableOf(test_, node.inputs[0]);
    const size_t rows = VariableOf(test_, node.inputs[1]);
    return number < inputs_.size() && rows < inputs_.size() && IsNumber(number) &&
           IsInvariant(rows) && inputs_[rows].IsRowCount();
  }

  const Graph& test_;
  const Graph& body_;
  absl::Span<const ValueInfo> inputs_;
};

}  // namespace

bool MarkLoopOverRows(const Node& loop, absl::Span<const ValueInfo> inputs,
                      std::vector<RowMark>* marks) {
  // Inside another loop over rows the numbers of the two would be taken for each other.
  const bool nested = std::any_of(marks->begin(), marks->end(), [](RowMark mark) {
    return mark == RowMark::kRowNumber || mark == RowMark::kOfRow;
  });
  const RowLoop rows(loop, inputs);
  if (nested || !rows.CountsRows()) return false;
  for (size_t k = 0; k < inputs.size(); ++k) {
    RowMark& mark = (*marks)[k];
    if (rows.IsNumber(k)) {
      mark = RowMark::kRowNumber;
    } else if (!rows.IsInvariant(k) && mark != RowMark::kUnknown &&
               !(mark == RowMark::kRowList && rows.IsWrittenOnly(k))) {
      mark = RowMark::kMixed;
    }
  }
  return true;
}

}  // namespace floe
