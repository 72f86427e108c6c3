#include "model/import/graphdef/graphdef.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/quoted.h"
#include "base/status.h"
#include "base/work_note.h"
#include "model/import/graphdef/attributes.h"
#include "model/import/graphdef/functions.h"
#include "model/import/graphdef/known_attributes.h"
#include "model/import/graphdef/structure_loops.h"
#include "model/import/import.h"
#include "model/op_def.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace floe {
namespace {

absl::Status NodeError(const tensorflow::NodeDef& node, const std::string& reason) {
  return absl::InvalidArgumentError(
      absl::StrCat("node ", Quoted(node.name()), " (", Escaped(node.op()), "): ", reason));
}

// Up to this producer version `shape {}` of a Placeholder is what one of unknown shape was written
// as; files without versions count as older ones do.
constexpr int kLastVersionOfScalarsUnknown = 21;

// An edge as the file writes it, with names resolved to positions in the file.
struct Edge {
  int node;
  int output;  // kControl for "^name"
  static constexpr int kControl = -1;
};

// Attributes that hold the whole meaning of a node without inputs.
absl::Status CheckSpecial(const tensorflow::NodeDef& def, const Node& node) {
  const DType dtype = node.attrs.Type("dtype");
  if (def.op() == "Const") {
    const Tensor* value = node.attrs.Find<Tensor>("value");
    if (value == nullptr) return NodeError(def, "has no attribute 'value'");
    if (value->dtype() != dtype) {
      return NodeError(def, absl::StrCat("says dtype ", DTypeName(dtype), " but its value is ",
                                         DTypeName(value->dtype())));
    }
  }
  if (def.op() == "Placeholder" && dtype == DType::kInvalid)
    return NodeError(def, "has no attribute 'dtype'");
  return absl::OkStatus();
}

using NodeDefs = google::protobuf::RepeatedPtrField<tensorflow::NodeDef>;

// One list of nodes: a graph's, or the body of a function.
class Importer {
 public:
  Importer(NodeDefs* nodes, FunctionLibrary* library) : nodes_(*nodes), library_(library) {}

  void UnderstandAsOf(int producer) { scalars_unknown_ = producer <= kLastVersionOfScalarsUnknown; }

  // The arguments of a function, which its nodes name as inputs.
  void AddArguments(const tensorflow::OpDef& signature) {
    for (const auto& argument : signature.input_arg()) arguments_.push_back(argument.name());
    in_function_ = true;
  }

  absl::StatusOr<Graph> Run(const GraphChoice& choice) {
    FLOE_RETURN_IF_ERROR(IndexNames());
    ResolveEdges();
    FindNeeded(choice);
    keep_broken_ = choice.keep_broken;
    for (const auto& [i, why] : broken_) {
      if (needed_[i] && !keep_broken_) return why;
    }
    FLOE_ASSIGN_OR_RETURN(const std::vector<int> order, TopologicalOrder());
    values_.resize(edges_.size());
    for (size_t k = 0; k < arguments_.size(); ++k) {
      Node input;
      input.name = arguments_[k];
      input.op = FindOp("Input");
      const int index = graph_.Add(std::move(input));
      graph_.inputs.push_back(index);
      values_[ArgumentId(k)] = index;
    }
    for (int i : order) {
      if (i < nodes_.size()) FLOE_RETURN_IF_ERROR(TranslateIfNeeded(i));
    }
    CloseLoops();
    FLOE_RETURN_IF_ERROR(CheckOutputNumbers());
    FLOE_RETURN_IF_ERROR(StructureLoops(&graph_, &values_));
    return std::move(graph_);
  }

  // The nodes of a function's control outputs, after Run.
  std::vector<int> Controls(const tensorflow::FunctionDef& function) const {
    std::vector<int> nodes;
    for (const auto& [output, name] : function.control_ret()) {
      const auto found = index_.find(name);
      if (found != index_.end() && values_[found->second] >= 0)
        nodes.push_back(values_[found->second]);
    }
    std::sort(nodes.begin(), nodes.end());  // a map of protobuf has any order
    return nodes;
  }

  // What a function returns, after Run: a value in the form its nodes' inputs have.
  absl::StatusOr<ValueRef> Returned(const std::string& name) const {
    FLOE_ASSIGN_OR_RETURN(const Edge edge, ParseFunctionInput(name));
    if (values_[edge.node] < 0)
      return absl::InvalidArgumentError(
          absl::StrCat("returns ", Quoted(name), " from inside a while frame"));
    return ValueRef{values_[edge.node], edge.output};
  }

 private:
  // Arguments count as nodes after the last one.
  int ArgumentId(size_t k) const { return nodes_.size() + static_cast<int>(k); }

  absl::Status IndexNames() {
    for (size_t k = 0; k < arguments_.size(); ++k) index_[arguments_[k]] = ArgumentId(k);
    for (int i = 0; i < nodes_.size(); ++i) {
      const tensorflow::NodeDef& node = nodes_.Get(i);
      if (node.name().empty())
        return absl::InvalidArgumentError(
            absl::StrCat("node number ", i, " (", Escaped(node.op()), ") has no name"));
      if (!index_.emplace(node.name(), i).second)
        return NodeError(node, "a second node of this name");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Edge> Named(const std::string& input, const std::string& name, int output) const {
    const auto found = index_.find(name);
    if (found == index_.end())
      return absl::InvalidArgumentError(
          absl::StrCat("input ", Quoted(input), " names no node of the graph"));
    return Edge{found->second, output};
  }

  // "^name", "name", "name:2"; inside functions "argument" or "name:output_argument:2".
  absl::StatusOr<Edge> ParseInput(const std::string& input) const {
    if (!input.empty() && input[0] == '^') return Named(input, input.substr(1), Edge::kControl);
    if (in_function_) return ParseFunctionInput(input);
    FLOE_ASSIGN_OR_RETURN(const TensorName parsed, ParseTensorName(input));
    return Named(input, parsed.node, parsed.output);
  }

  absl::StatusOr<Edge> ParseFunctionInput(const std::string& input) const {
    const size_t first = input.find(':');
    if (first == std::string::npos) return Named(input, input, 0);
    const size_t second = input.find(':', first + 1);
    const std::string argument =
        input.substr(first + 1, second == std::string::npos ? second : second - first - 1);
    const std::string number = second == std::string::npos ? "0" : input.substr(second + 1);
    FLOE_ASSIGN_OR_RETURN(const TensorName parsed,
                          ParseTensorName(absl::StrCat(input.substr(0, first), ":", number)));
    FLOE_ASSIGN_OR_RETURN(Edge edge, Named(input, parsed.node, parsed.output));
    if (edge.node < nodes_.size()) {
      const tensorflow::NodeDef& from = nodes_.Get(edge.node);
      FLOE_ASSIGN_OR_RETURN(const int base, IsNamedCall(from.op())
                                                ? library_->ResultNumber(from.op(), argument)
                                                : OutputArgument(from, argument));
      edge.output += base;
    }
    return edge;
  }

  void ResolveEdges() {
    edges_.resize(nodes_.size() + arguments_.size());
    for (int i = 0; i < nodes_.size(); ++i) {
      for (const std::string& input : nodes_.Get(i).input()) {
        // A server prints nothing, and need not make the text.
        if (nodes_.Get(i).op() == "PrintV2" && !input.starts_with('^')) continue;
        const absl::StatusOr<Edge> edge = ParseInput(input);
        if (edge.ok()) {
          edges_[i].push_back(*edge);
        } else {
          broken_.emplace(i, NodeError(nodes_.Get(i), std::string(edge.status().message())));
        }
      }
    }
  }

  // The node of the file that a chosen tensor is of, and its output.
  std::optional<Edge> Chosen(const std::string& tensor) const {
    const std::optional<TensorName> name =
        FindTensorName(tensor, [this](const std::string& node) { return index_.count(node) != 0; });
    if (!name.has_value()) return std::nullopt;
    return Edge{index_.at(name->node), name->output};
  }

  void FindNeeded(const GraphChoice& choice) {
    needed_.assign(edges_.size(), true);
    std::vector<int> open;
    std::set<std::pair<int, int>> fed;  // node, output; kControl with any of them
    for (const std::string& feed : choice.feeds) {
      const std::optional<Edge> edge = Chosen(feed);
      // A default is run where nobody feeds.
      if (!edge.has_value() || nodes_.Get(edge->node).op() == "PlaceholderWithDefault") continue;
      fed.insert({{edge->node, edge->output}, {edge->node, Edge::kControl}});
    }
    for (const std::string& fetch : choice.fetches) {
      const std::optional<Edge> edge = Chosen(fetch);
      if (!edge.has_value()) return;  // reported with what there is instead
      if (fed.count({edge->node, edge->output}) == 0) open.push_back(edge->node);
    }
    if (choice.fetches.empty()) return;
    needed_.assign(edges_.size(), false);
    while (!open.empty()) {
      const int i = open.back();
      open.pop_back();
      if (needed_[i]) continue;
      needed_[i] = true;
      for (const Edge& edge : edges_[i]) {
        if (fed.count({edge.node, edge.output}) == 0) open.push_back(edge.node);
      }
    }
  }

  // The one edge that may lead backwards: a loop variable's next value.
  bool IsBackEdge(int i, const Edge& edge) const {
    if (i >= nodes_.size() || edge.node >= nodes_.size() || edge.output == Edge::kControl)
      return false;
    const std::string &op = nodes_.Get(i).op(), &from = nodes_.Get(edge.node).op();
    return (op == "Merge" || op == "RefMerge") &&
           (from == "NextIteration" || from == "RefNextIteration");
  }

  // Merges were made before the values their loops send back.
  void CloseLoops() {
    for (int i = 0; i < nodes_.size(); ++i) {
      size_t input = 0;
      for (const Edge& edge : edges_[i]) {
        if (edge.output == Edge::kControl) continue;
        if (IsBackEdge(i, edge))
          graph_.mutable_node(values_[i]).inputs[input].node = values_[edge.node];
        ++input;
      }
    }
  }

  // Kahn's algorithm, the earliest node of the file first, so that equal files give equal graphs.
  absl::StatusOr<std::vector<int>> TopologicalOrder() {
    const int n = static_cast<int>(edges_.size());
    std::vector<int> missing(n, 0);
    std::vector<std::vector<int>> users(n);
    for (int i = 0; i < n; ++i) {
      for (const Edge& edge : edges_[i]) {
        if (IsBackEdge(i, edge)) continue;
        ++missing[i];
        users[edge.node].push_back(i);
      }
    }
    std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
    for (int i = 0; i < n; ++i) {
      if (missing[i] == 0) ready.push(i);
    }
    std::vector<int> order;
    while (!ready.empty()) {
      const int i = ready.top();
      ready.pop();
      order.push_back(i);
      for (int user : users[i]) {
        if (--missing[user] == 0) ready.push(user);
      }
    }
    if (static_cast<int>(order.size()) == n) return order;
    return CutCycles(missing) ? TopologicalOrder() : CycleError(missing);
  }

  // Takes nodes that nothing needs out of cycles; false when there are none in any.
  bool CutCycles(const std::vector<int>& missing) {
    bool cut = false;
    for (int i = 0; i < nodes_.size(); ++i) {
      if (missing[i] == 0 || needed_[i]) continue;
      broken_.emplace(i, absl::InvalidArgumentError("part of a cycle"));
      edges_[i].clear();
      cut = true;
    }
    return cut;
  }

  // Walks backwards through nodes that never became ready until one repeats.
  absl::Status CycleError(const std::vector<int>& missing) const {
    int i =
        static_cast<int>(std::find_if(missing.begin(), missing.end(), [](int m) { return m > 0; }) -
                         missing.begin());
    std::vector<int> path;
    std::set<int> seen;
    while (seen.insert(i).second) {
      path.push_back(i);
      i = std::find_if(edges_[i].begin(), edges_[i].end(), [&](const Edge& e) {
            return missing[e.node] > 0 && !IsBackEdge(i, e);
          })->node;
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), i));
    std::string names = Quoted(nodes_.Get(i).name());
    constexpr size_t kShown = 8;
    for (size_t k = 1; k < std::min(path.size(), kShown); ++k)
      absl::StrAppend(&names, " <- ", Quoted(nodes_.Get(path[k]).name()));
    return absl::InvalidArgumentError(absl::StrCat("the graph has a cycle through ", names));
  }

  // A function called by a node whose op is the function's name.
  bool IsNamedCall(const std::string& op) const {
    return FindTensorFlowOp(op) == nullptr && library_->Has(op);
  }
  static bool IsCall(const OpDef& op) { return op.name == "PartitionedCall"; }

  bool InLoop(int i) const {
    const OpDef* op = FindTensorFlowOp(nodes_.Get(i).op());
    if (op == nullptr) return false;
    if (op->name == "Merge")
      return std::any_of(edges_[i].begin(), edges_[i].end(),
                         [&](const Edge& edge) { return IsBackEdge(i, edge); });
    return op->name == "Enter" || op->name == "Exit" || op->name == "NextIteration" ||
           op->name == "LoopCond";
  }

  // A node that nothing needs is no reason to refuse the others.
  absl::Status TranslateIfNeeded(int i) {
    if (needed_[i] && !keep_broken_) return Translate(i);
    absl::Status status = broken_.count(i) != 0 ? broken_.at(i) : absl::OkStatus();
    if (status.ok() && (needed_[i] || !InLoop(i))) {
      status = Translate(i);
      if (status.ok() || absl::IsResourceExhausted(status)) return status;
    }
    Node left_out;
    left_out.name = nodes_.Get(i).name();
    for (auto& [name, value] : *nodes_.Mutable(i)->mutable_attr())
      SetAttr(name, value, &left_out.attrs).IgnoreError();
    if (!status.ok()) left_out.attrs.Set("why_unsupported", std::string(status.message()));
    LeaveOut(i, &left_out);
    values_[i] = graph_.Add(std::move(left_out));
    return absl::OkStatus();
  }

  void LeaveOut(int i, Node* node) {
    node->op = FindOp("Unsupported");
    node->attrs.Set("tensorflow_op", nodes_.Get(i).op());
    node->inputs.clear();
    node->control_inputs.clear();
    node->subgraphs.clear();
    edges_[i].clear();
  }

  absl::Status Translate(int i) {
    tensorflow::NodeDef& def = *nodes_.Mutable(i);
    if (WorkNote* const note = WorkNote::Current()) note->Do("importing", def.name(), def.op());
    Node node;
    node.name = def.name();
    node.op = FindTensorFlowOp(def.op());
    const bool call = node.op == nullptr ? IsNamedCall(def.op()) : IsCall(*node.op);
    const bool control = !call && node.op != nullptr && !node.op->functions.empty();
    const bool supported = node.op != nullptr || call;
    if (!supported) {
      node.op = FindOp("Unsupported");
      node.attrs.Set("tensorflow_op", def.op());
    }
    if (supported && !call) FLOE_RETURN_IF_ERROR(CheckAttributes(def));
    for (auto& [name, value] : *def.mutable_attr()) {
      if (name[0] == '_') continue;  // TensorFlow's notes to itself
      const absl::Status set = SetAttr(name, value, &node.attrs);
      if (!set.ok() && supported) {
        const absl::Status error = NodeError(
            def, absl::StrCat("attribute ", Quoted(name), ": ", std::string(set.message())));
        // Memory that is short says nothing against the file.
        return absl::IsResourceExhausted(set) ? absl::ResourceExhaustedError(error.message())
                                              : error;
      }
    }
    if (scalars_unknown_ && def.op() == "Placeholder" &&
        node.attrs.Get<SymShape>("shape", SymShape::UnknownRank()) == SymShape())
      node.attrs.Erase("shape");
    if (const Tensor* const value = library_->VariableOf(def)) node.attrs.Set("value", *value);
    if (supported) FLOE_RETURN_IF_ERROR(CheckSpecial(def, node));
    for (const Edge& edge : edges_[i]) {
      if (edge.output == Edge::kControl) {
        node.control_inputs.push_back(values_[edge.node]);
      } else {
        node.inputs.push_back({IsBackEdge(i, edge) ? -1 : values_[edge.node], edge.output});
      }
    }
    absl::Status built;
    if (call) {
      built = Inline(def, &node);
    } else if (control) {
      built = AddSubgraphs(def, &node);
    } else {
      built = CheckArity(def, &node);
    }
    FLOE_RETURN_IF_ERROR(built);
    values_[i] = graph_.Add(std::move(node));
    return absl::OkStatus();
  }

  static absl::Status CheckArity(const tensorflow::NodeDef& def, Node* node) {
    const int inputs = static_cast<int>(node->inputs.size());
    const OpDef& op = *node->op;
    if (inputs < op.min_inputs || (op.max_inputs >= 0 && inputs > op.max_inputs)) {
      const std::string most = op.max_inputs == op.min_inputs ? ""
                               : op.max_inputs < 0            ? " or more"
                                                              : absl::StrCat(" to ", op.max_inputs);
      return NodeError(def,
                       absl::StrCat("has ", inputs, " inputs, the op takes ", op.min_inputs, most));
    }
    // Nobody knows how many outputs an unknown op has; one makes it a sink that errors can name.
    node->num_outputs = op.name == "Unsupported" ? 1 : CountOutputs(def, op);
    return absl::OkStatus();
  }

  // The function's nodes take the call's place; `node` becomes an IdentityN that keeps the call's
  // name for its results.
  absl::Status Inline(const tensorflow::NodeDef& def, Node* node) {
    const FunctionName* function = node->attrs.Find<FunctionName>("f");
    const std::string name = function != nullptr ? function->name : def.op();
    absl::StatusOr<std::shared_ptr<const Graph>> body = library_->Import(name);
    if (!body.ok()) return Annotate(body.status(), absl::StrCat("node ", Quoted(def.name())));
    const Graph& callee = **body;
    // Two calls a function multiply with every level; refused before they take memory.
    FLOE_RETURN_IF_ERROR(SpendVisits(callee.size() + 1));
    if (callee.inputs.size() != node->inputs.size()) {
      return NodeError(def, absl::StrCat("passes ", node->inputs.size(), " values to function ",
                                         Quoted(name), ", which takes ", callee.inputs.size()));
    }
    std::vector<ValueRef> inputs = node->inputs;
    for (ValueRef& in : inputs) FLOE_RETURN_IF_ERROR(CheckOutput(def, in));
    std::vector<int> position(callee.size(), -1);
    std::map<int, ValueRef> argument;
    for (size_t k = 0; k < callee.inputs.size(); ++k) argument[callee.inputs[k]] = inputs[k];
    const auto map = [&](ValueRef ref) {
      const auto found = argument.find(ref.node);
      return found == argument.end() ? ValueRef{position[ref.node], ref.output} : found->second;
    };
    for (int k = 0; k < callee.size(); ++k) {
      if (argument.count(k) != 0) continue;
      Node copy = callee.node(k);
      copy.name = absl::StrCat(def.name(), "/", copy.name);
      for (ValueRef& in : copy.inputs) in = map(in);
      std::vector<int> controls;
      for (int c : copy.control_inputs) controls.push_back(map({c, 0}).node);
      if (copy.inputs.empty() && controls.empty()) controls = node->control_inputs;
      copy.control_inputs = std::move(controls);
      position[k] = graph_.Add(std::move(copy));
    }
    node->op = FindOp("IdentityN");
    node->attrs = {};
    node->inputs.clear();
    for (const ValueRef& out : callee.outputs) node->inputs.push_back(map(out));
    node->num_outputs = static_cast<int>(callee.outputs.size());
    for (int k : library_->Controls(name)) {
      if (argument.count(k) == 0) node->control_inputs.push_back(position[k]);
    }
    return absl::OkStatus();
  }

  absl::Status AddSubgraphs(const tensorflow::NodeDef& def, Node* node) {
    std::vector<FunctionName> functions;
    for (const std::string& attr : node->op->functions) {
      if (const auto* function = node->attrs.Find<FunctionName>(attr)) {
        functions.push_back(*function);
      } else if (const auto* list = node->attrs.Find<std::vector<FunctionName>>(attr)) {
        functions.insert(functions.end(), list->begin(), list->end());
      } else {
        return NodeError(def, absl::StrCat("does not name its function '", attr, "'"));
      }
    }
    if (functions.empty() || node->inputs.empty())
      return NodeError(def, "has no branches or no inputs");
    // TensorFlow makes Switches or calls of such a node, which run what something waits for. By
    // itself it runs all that its functions do for effect.
    const auto lower = def.attr().find("_lower_using_switch_merge");
    const bool lowered = lower != def.attr().end() && lower->second.b();
    for (const FunctionName& function : functions) {
      absl::StatusOr<std::shared_ptr<const Graph>> body = library_->Import(function.name);
      if (!body.ok()) return Annotate(body.status(), absl::StrCat("node ", Quoted(def.name())));
      node->subgraphs.push_back(
          lowered ? WithoutIdleEffects(*std::move(body), library_->Controls(function.name))
                  : *std::move(body));
    }
    node->num_outputs = static_cast<int>(node->subgraphs.back()->outputs.size());
    const size_t passed = node->op->name == "While" ? node->inputs.size() : node->inputs.size() - 1;
    for (const auto& graph : node->subgraphs) {
      if (graph->inputs.size() != passed) {
        return NodeError(def, absl::StrCat("passes ", passed, " values to a function that takes ",
                                           graph->inputs.size()));
      }
    }
    node->attrs = {};
    return absl::OkStatus();
  }

  absl::Status CheckOutput(const tensorflow::NodeDef& def, ValueRef ref) {
    Node& from = graph_.mutable_node(ref.node);
    if (from.op->name == "Unsupported")
      from.num_outputs = std::max(from.num_outputs, ref.output + 1);
#ifdef FLOE_FUZZ_PLANTED_BUG  // a check left out, for scripts/fuzz --self-test
    return absl::OkStatus();
#endif
    if (ref.output < from.num_outputs) return absl::OkStatus();
    return NodeError(
        def, absl::StrCat("input ", Quoted(TensorNameOf(from.name, ref.output)), " is past the ",
                          from.num_outputs, " outputs of that ", from.op->name));
  }

  absl::Status CheckOutputNumbers() {
    for (int i = 0; i < nodes_.size(); ++i) {
      absl::Status status;
      for (const Edge& edge : edges_[i]) {
        if (edge.output != Edge::kControl)
          status.Update(CheckOutput(nodes_.Get(i), {values_[edge.node], edge.output}));
      }
      if (status.ok()) continue;
      if (needed_[i] && !keep_broken_) return status;
      Node& node = graph_.mutable_node(values_[i]);
      node.attrs.Set("why_unsupported", std::string(status.message()));
      LeaveOut(i, &node);
    }
    return absl::OkStatus();
  }

  NodeDefs& nodes_;
  FunctionLibrary* library_;
  bool in_function_ = false;
  std::vector<std::string> arguments_;
  std::map<std::string, int> index_;
  std::vector<std::vector<Edge>> edges_;
  std::map<int, absl::Status> broken_;  // nodes with inputs that cannot be
  std::vector<bool> needed_;            // by node and argument: by what was chosen
  bool scalars_unknown_ = false, keep_broken_ = false;
  std::vector<int> values_;  // by node of the file, then by argument: its node in graph_
  Graph graph_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Graph>> FunctionLibrary::Import(const std::string& name) {
  const auto found = functions_.find(name);
  if (found == functions_.end())
    return absl::InvalidArgumentError(
        absl::StrCat("the graph's library has no function ", Quoted(name)));
  Entry& entry = found->second;
  if (entry.graph != nullptr) return entry.graph;
  if (entry.open)
    return absl::InvalidArgumentError(absl::StrCat("function ", Quoted(name), " calls itself"));
  constexpr int kMaxDepth = 32;
  if (depth_ >= kMaxDepth)
    return absl::InvalidArgumentError(absl::StrCat("functions call each other deeper than ",
                                                   kMaxDepth, " levels, down to ", Quoted(name)));
  entry.open = true;
  ++depth_;
  Importer importer(entry.def->mutable_node_def(), this);
  importer.AddArguments(entry.def->signature());
  absl::StatusOr<Graph> graph = importer.Run({});
  --depth_;
  entry.open = false;
  if (!graph.ok()) return Annotate(graph.status(), absl::StrCat("function ", Quoted(name)));
  const std::set<int> arguments(graph->inputs.begin(), graph->inputs.end());
  for (int i = 0; i < graph->size(); ++i) {
    if (graph->node(i).op->name != "Input" || arguments.count(i) != 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("function ", Quoted(name), ": placeholder ",
                                                   Quoted(graph->node(i).name),
                                                   " can be fed by nobody"));
  }
  for (const auto& output : entry.def->signature().output_arg()) {
    const auto returned = entry.def->ret().find(output.name());
    if (returned == entry.def->ret().end())
      return absl::InvalidArgumentError(
          absl::StrCat("function ", Quoted(name), " returns nothing for ", Quoted(output.name())));
    absl::StatusOr<ValueRef> value = importer.Returned(returned->second);
    if (!value.ok()) return Annotate(value.status(), absl::StrCat("function ", Quoted(name)));
    if (value->output < 0 || value->output >= graph->node(value->node).num_outputs) {
      return absl::InvalidArgumentError(absl::StrCat("function ", Quoted(name), " returns ",
                                                     Quoted(returned->second),
                                                     ", which does not exist"));
    }
    graph->outputs.push_back(*value);
  }
  entry.controls = importer.Controls(*entry.def);
  entry.graph = std::make_shared<const Graph>(*std::move(graph));
  return entry.graph;
}

absl::StatusOr<Graph> GraphFromGraphDef(tensorflow::GraphDef* def, const GraphChoice& choice,
                                        const VariableValues* variables) {
  FunctionLibrary library(def->mutable_library(), variables);
  Importer importer(def->mutable_node(), &library);
  importer.UnderstandAsOf(def->versions().producer());
  return importer.Run(choice);
}

}  // namespace floe
