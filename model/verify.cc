#include "model/verify.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/op_def.h"

namespace floe {
namespace {

constexpr int kMaxOutputs = 1 << 16;

absl::Status CheckArity(const Node& node) {
  const OpDef& op = *node.op;
  const auto inputs = static_cast<int64_t>(node.inputs.size());
  if (inputs < op.min_inputs || (op.max_inputs >= 0 && inputs > op.max_inputs))
    return Bad(absl::StrCat("it has ", inputs, " inputs, ", op.name, " takes ", op.min_inputs,
                            op.max_inputs < 0 ? " or more" : absl::StrCat(" to ", op.max_inputs)));
  if (op.outputs >= 0 ? node.num_outputs != op.outputs
                      : node.num_outputs < 0 || node.num_outputs > kMaxOutputs)
    return Bad(absl::StrCat("it has ", node.num_outputs, " outputs"));
  return absl::OkStatus();
}

absl::Status CheckReferences(const Graph& graph, int index) {
  const Node& node = graph.node(index);
  for (const ValueRef& in : node.inputs) {
    if (in.node < 0 || in.node >= index)
      return Bad(absl::StrCat("an input is of node ", in.node, ", which is not before it"));
    const int outputs = graph.node(in.node).num_outputs;
    if (in.output < 0 || in.output >= outputs)
      return Bad(absl::StrCat("an input is output ", in.output, " of ",
                              Quoted(graph.node(in.node).name), ", which has ", outputs));
  }
  for (int control : node.control_inputs) {
    if (control < 0 || control >= index)
      return Bad(absl::StrCat("a control input is node ", control, ", which is not before it"));
  }
  return absl::OkStatus();
}

absl::Status CheckConstant(const Node& node) {
  if (node.op->name != "Const") return absl::OkStatus();
  const Tensor* value = node.attrs.Find<Tensor>("value");
  if (value == nullptr || !value->valid()) return Bad("a constant without a value");
  if (node.attrs.Has("dtype") && node.attrs.Type("dtype") != value->dtype())
    return Bad(absl::StrCat("its value is ", DTypeName(value->dtype()), ", its dtype ",
                            DTypeName(node.attrs.Type("dtype"))));
  return absl::OkStatus();
}

absl::Status CheckSubgraphs(const Node& node) {
  const size_t count = node.subgraphs.size(), inputs = node.inputs.size();
  const auto outputs = static_cast<size_t>(node.num_outputs);
  const std::string& op = node.op->name;
  const bool loop = op == "While";
  const bool branches = op == "If" || op == "Case";
  if (!loop && !branches)
    return count == 0 ? absl::OkStatus() : Bad(absl::StrCat(op, " takes no subgraphs"));
  if (op == "Case" ? count == 0 : count != 2)
    return Bad(absl::StrCat("it has ", count, " subgraphs"));
  if (loop && outputs != inputs)
    return Bad(absl::StrCat("a loop over ", inputs, " values with ", outputs, " outputs"));
  for (size_t k = 0; k < count; ++k) {
    const Graph& subgraph = *node.subgraphs[k];
    const size_t takes = loop ? inputs : inputs - 1;
    const size_t gives = loop && k == 0 ? 1 : outputs;
    if (subgraph.inputs.size() != takes || subgraph.outputs.size() != gives)
      return Bad(absl::StrCat("subgraph ", k, " takes ", subgraph.inputs.size(), " and gives ",
                              subgraph.outputs.size(), " values, not ", takes, " and ", gives));
  }
  return absl::OkStatus();
}

absl::Status CheckEnds(const Graph& graph, bool inner) {
  std::set<int> inputs;
  for (int input : graph.inputs) {
    if (input < 0 || input >= graph.size() || graph.node(input).op->name != "Input")
      return Bad(absl::StrCat("input ", input, " of the graph is not an Input node"));
    if (!inputs.insert(input).second)
      return Bad(absl::StrCat(Quoted(graph.node(input).name), " is an input twice"));
  }
  for (const ValueRef& out : graph.outputs) {
    if (out.node < 0 || out.node >= graph.size() || out.output < 0 ||
        out.output >= graph.node(out.node).num_outputs)
      return Bad(
          absl::StrCat("output ", out.node, ":", out.output, " of the graph does not exist"));
  }
  for (int i = 0; inner && i < graph.size(); ++i) {
    if (graph.node(i).op->name == "Input" && inputs.count(i) == 0)
      return Bad(
          absl::StrCat("placeholder ", Quoted(graph.node(i).name), " in a subgraph is not fed"));
  }
  return absl::OkStatus();
}

class GraphCheck {
 public:
  absl::Status Run(const Graph& graph) { return Verify(graph, 1).status(); }

 private:
  struct Size {
    int depth = 1;
    int64_t nodes = 0;
  };

  // Shared subgraphs are looked at once and counted as often as they are used.
  absl::StatusOr<Size> Verify(const Graph& graph, int level) {
    const auto known = sizes_.find(&graph);
    if (known != sizes_.end()) return known->second;
    FLOE_RETURN_IF_ERROR(CheckSize({level, graph.size()}));
    Size size{1, graph.size()};
    std::unordered_set<std::string> names;
    for (int i = 0; i < graph.size(); ++i) {
      const Node& node = graph.node(i);
      if (node.name.empty()) return Bad(absl::StrCat("node ", i, " has no name"));
      if (node.op == nullptr) return Bad(absl::StrCat("node ", Quoted(node.name), " has no op"));
      absl::Status status;
      if (!names.insert(node.name).second) status = Bad("its name is used twice");
      status.Update(CheckArity(node));
      status.Update(CheckReferences(graph, i));
      status.Update(CheckConstant(node));
      status.Update(CheckSubgraphs(node));
      if (status.ok()) status = VerifySubgraphs(node, level, &size);
      if (!status.ok())
        return Annotate(status, absl::StrCat("node ", Quoted(node.name), " (", node.op->name, ")"));
    }
    FLOE_RETURN_IF_ERROR(CheckEnds(graph, level > 1));
    sizes_[&graph] = size;
    return size;
  }

  absl::Status VerifySubgraphs(const Node& node, int level, Size* size) {
    for (const auto& subgraph : node.subgraphs) {
      FLOE_ASSIGN_OR_RETURN(const Size inner, Verify(*subgraph, level + 1));
      size->depth = std::max(size->depth, inner.depth + 1);
      size->nodes += inner.nodes;
      FLOE_RETURN_IF_ERROR(CheckSize(*size));
    }
    return absl::OkStatus();
  }

  static absl::Status CheckSize(const Size& size) {
    if (size.depth > kMaxGraphDepth)
      return Bad(absl::StrCat("subgraphs are nested more than ", kMaxGraphDepth, " deep"));
    if (size.nodes > kMaxGraphNodes)
      return Bad(absl::StrCat("the graph has more than ", kMaxGraphNodes, " nodes"));
    return absl::OkStatus();
  }

  std::map<const Graph*, Size> sizes_;
};

class SignatureCheck {
 public:
  explicit SignatureCheck(const Graph& graph) : graph_(graph) {
    for (int i = 0; i < graph.size(); ++i) index_[graph.node(i).name] = i;
  }

  absl::Status Inputs(const std::vector<SignatureTensor>& inputs) const {
    std::set<std::string> keys;
    std::set<int> nodes;
    for (const SignatureTensor& input : inputs) {
      const std::string where = absl::StrCat("input ", Quoted(input.key));
      const absl::StatusOr<ValueRef> ref = Find(input.tensor_name);
      if (!ref.ok()) return Annotate(ref.status(), where);
      const std::string& op = graph_.node(ref->node).op->name;
      if (ref->output != 0 || (op != "Input" && op != "PlaceholderWithDefault"))
        return Bad(absl::StrCat(where, ": ", Quoted(input.tensor_name), " is not a placeholder"));
      if (!keys.insert(input.key).second || !nodes.insert(ref->node).second)
        return Bad(absl::StrCat(where, " is there twice"));
      if (input.type.dtype == DType::kInvalid) return Bad(absl::StrCat(where, " has no dtype"));
      if (input.default_value.valid() && input.default_value.dtype() != input.type.dtype)
        return Bad(absl::StrCat(where, " is ", DTypeName(input.type.dtype), ", its default ",
                                DTypeName(input.default_value.dtype())));
    }
    return absl::OkStatus();
  }

  absl::Status Outputs(const std::vector<SignatureTensor>& outputs) const {
    std::set<std::string> keys;
    for (const SignatureTensor& output : outputs) {
      const std::string where = absl::StrCat("output ", Quoted(output.key));
      FLOE_RETURN_IF_ERROR(Annotate(Find(output.tensor_name).status(), where));
      if (!keys.insert(output.key).second) return Bad(absl::StrCat(where, " is there twice"));
    }
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<ValueRef> Find(const std::string& tensor) const {
    const size_t colon = tensor.rfind(':');
    int output = 0;
    bool good = true;
    if (colon != std::string::npos) {
      const char* end = tensor.data() + tensor.size();
      const auto [stop, error] = std::from_chars(tensor.data() + colon + 1, end, output);
      good = error == std::errc() && stop == end;
    }
    const auto found = index_.find(tensor.substr(0, colon));
    if (!good || found == index_.end() || output < 0 ||
        output >= graph_.node(found->second).num_outputs)
      return Bad(absl::StrCat("the graph has no tensor ", Quoted(tensor)));
    return ValueRef{found->second, output};
  }

  const Graph& graph_;
  std::map<std::string, int> index_;
};

}  // namespace

absl::Status VerifyGraph(const Graph& graph) { return GraphCheck().Run(graph); }

absl::Status VerifySignatures(const Graph& graph, const std::vector<SignatureDef>& signatures) {
  if (signatures.empty()) return Bad("there is no signature");
  const SignatureCheck check(graph);
  std::set<std::string> names;
  for (const SignatureDef& def : signatures) {
    absl::Status status;
    if (!names.insert(def.name).second) status = Bad("its name is used twice");
    if (def.outputs.empty()) status.Update(Bad("it has no outputs"));
    status.Update(check.Inputs(def.inputs));
    status.Update(check.Outputs(def.outputs));
    if (!status.ok()) return Annotate(status, absl::StrCat("signature ", Quoted(def.name)));
  }
  return absl::OkStatus();
}

}  // namespace floe
