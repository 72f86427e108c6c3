#include "model/import/graphdef/graphdef.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/import/import.h"
#include "model/import/tensor_proto.h"
#include "model/op_def.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace floe {
namespace {

absl::Status NodeError(const tensorflow::NodeDef& node, const std::string& reason) {
  return absl::InvalidArgumentError(absl::StrCat("node '", node.name(), "' (", node.op(), "): ", reason));
}

// An edge as the file writes it, with names resolved to positions in the file.
struct Edge {
  int node;
  int output;  // kControl for "^name"
  static constexpr int kControl = -1;
};

absl::StatusOr<AttrValue> ListAttr(const tensorflow::AttrValue::ListValue& list) {
  if (list.i_size() != 0) return AttrValue(std::vector<int64_t>(list.i().begin(), list.i().end()));
  if (list.f_size() != 0) return AttrValue(std::vector<float>(list.f().begin(), list.f().end()));
  if (list.b_size() != 0) return AttrValue(std::vector<bool>(list.b().begin(), list.b().end()));
  if (list.s_size() != 0) return AttrValue(std::vector<std::string>(list.s().begin(), list.s().end()));
  if (list.type_size() != 0) {
    std::vector<DType> types;
    for (int number : list.type()) {
      FLOE_ASSIGN_OR_RETURN(const DType type, DTypeFromNumber(number));
      types.push_back(type);
    }
    return AttrValue(std::move(types));
  }
  if (list.shape_size() != 0) {
    std::vector<SymShape> shapes;
    for (const auto& shape : list.shape()) shapes.push_back(ShapeFromProto(shape));
    return AttrValue(std::move(shapes));
  }
  if (list.func_size() != 0) {
    std::vector<FunctionName> functions;
    for (const auto& function : list.func()) functions.push_back({function.name()});
    return AttrValue(std::move(functions));
  }
  return AttrValue(std::vector<int64_t>());
}

absl::Status SetAttr(const std::string& name, tensorflow::AttrValue& value, Attrs* attrs) {
  switch (value.value_case()) {
    case tensorflow::AttrValue::kI: attrs->Set(name, static_cast<int64_t>(value.i())); break;
    case tensorflow::AttrValue::kF: attrs->Set(name, value.f()); break;
    case tensorflow::AttrValue::kB: attrs->Set(name, value.b()); break;
    case tensorflow::AttrValue::kS: attrs->Set(name, value.s()); break;
    case tensorflow::AttrValue::kShape: attrs->Set(name, ShapeFromProto(value.shape())); break;
    case tensorflow::AttrValue::kFunc: attrs->Set(name, FunctionName{value.func().name()}); break;
    case tensorflow::AttrValue::kType: {
      FLOE_ASSIGN_OR_RETURN(const DType type, DTypeFromNumber(value.type()));
      attrs->Set(name, type);
      break;
    }
    case tensorflow::AttrValue::kTensor: {
      FLOE_ASSIGN_OR_RETURN(Tensor tensor, TensorFromProto(value.mutable_tensor()));
      attrs->Set(name, std::move(tensor));
      break;
    }
    case tensorflow::AttrValue::kList: {
      FLOE_ASSIGN_OR_RETURN(AttrValue list, ListAttr(value.list()));
      attrs->Set(name, std::move(list));
      break;
    }
    case tensorflow::AttrValue::kPlaceholder:
    case tensorflow::AttrValue::VALUE_NOT_SET:
      break;
  }
  return absl::OkStatus();
}

// Outputs of an op whose number is an attribute.
int CountOutputs(const Attrs& attrs) {
  for (const char* name : {"num_split", "num"}) {
    if (attrs.Has(name)) return static_cast<int>(std::clamp<int64_t>(attrs.Int(name), 0, 65536));
  }
  for (const char* name : {"Tout", "output_types", "out_types", "dtypes", "T"}) {
    if (const auto* types = attrs.Find<std::vector<DType>>(name)) return static_cast<int>(types->size());
  }
  return 1;
}

// Attributes that hold the whole meaning of a node without inputs.
absl::Status CheckSpecial(const tensorflow::NodeDef& def, const Node& node) {
  const DType dtype = node.attrs.Type("dtype");
  if (def.op() == "Const") {
    const Tensor* value = node.attrs.Find<Tensor>("value");
    if (value == nullptr) return NodeError(def, "has no attribute 'value'");
    if (value->dtype() != dtype) {
      return NodeError(def, absl::StrCat("says dtype ", DTypeName(dtype), " but its value is ", DTypeName(value->dtype())));
    }
  }
  if (def.op() == "Placeholder" && dtype == DType::kInvalid) return NodeError(def, "has no attribute 'dtype'");
  return absl::OkStatus();
}

class Importer {
 public:
  explicit Importer(tensorflow::GraphDef* def) : def_(*def) {}

  absl::StatusOr<Graph> Run() {
    FLOE_RETURN_IF_ERROR(IndexNames());
    FLOE_RETURN_IF_ERROR(ResolveEdges());
    FLOE_ASSIGN_OR_RETURN(const std::vector<int> order, TopologicalOrder());
    Graph graph;
    std::vector<int> position(order.size());
    for (int i : order) {
      FLOE_ASSIGN_OR_RETURN(Node node, Translate(i, position));
      position[i] = graph.Add(std::move(node));
    }
    FLOE_RETURN_IF_ERROR(CheckOutputNumbers(graph));
    return graph;
  }

 private:
  absl::Status IndexNames() {
    for (int i = 0; i < def_.node_size(); ++i) {
      const tensorflow::NodeDef& node = def_.node(i);
      if (node.name().empty()) return absl::InvalidArgumentError(absl::StrCat("node number ", i, " (", node.op(), ") has no name"));
      if (!index_.emplace(node.name(), i).second) return NodeError(node, "a second node of this name");
    }
    return absl::OkStatus();
  }

  absl::Status ResolveEdges() {
    edges_.resize(def_.node_size());
    for (int i = 0; i < def_.node_size(); ++i) {
      const tensorflow::NodeDef& node = def_.node(i);
      for (const std::string& input : node.input()) {
        Edge edge{0, Edge::kControl};
        std::string name = input;
        if (!input.empty() && input[0] == '^') {
          name = input.substr(1);
        } else {
          absl::StatusOr<TensorName> parsed = ParseTensorName(input);
          if (!parsed.ok()) return NodeError(node, std::string(parsed.status().message()));
          name = parsed->node;
          edge.output = parsed->output;
        }
        const auto found = index_.find(name);
        if (found == index_.end()) return NodeError(node, absl::StrCat("input '", input, "' names no node of the graph"));
        edge.node = found->second;
        edges_[i].push_back(edge);
      }
    }
    return absl::OkStatus();
  }

  // Kahn's algorithm, the earliest node of the file first, so that equal files give equal graphs.
  absl::StatusOr<std::vector<int>> TopologicalOrder() const {
    const int n = def_.node_size();
    std::vector<int> missing(n, 0);
    std::vector<std::vector<int>> users(n);
    for (int i = 0; i < n; ++i) {
      missing[i] = static_cast<int>(edges_[i].size());
      for (const Edge& edge : edges_[i]) users[edge.node].push_back(i);
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
    return CycleError(missing);
  }

  // Walks backwards through nodes that never became ready until one repeats.
  absl::Status CycleError(const std::vector<int>& missing) const {
    int i = static_cast<int>(std::find_if(missing.begin(), missing.end(), [](int m) { return m > 0; }) - missing.begin());
    std::vector<int> path;
    std::set<int> seen;
    while (seen.insert(i).second) {
      path.push_back(i);
      i = std::find_if(edges_[i].begin(), edges_[i].end(), [&](const Edge& e) { return missing[e.node] > 0; })->node;
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), i));
    std::string names = absl::StrCat("'", def_.node(i).name(), "'");
    const bool loop = std::any_of(path.begin(), path.end(), [&](int k) { return def_.node(k).op() == "NextIteration"; });
    constexpr size_t kShown = 8;
    for (size_t k = 1; k < std::min(path.size(), kShown); ++k) absl::StrAppend(&names, " <- '", def_.node(path[k]).name(), "'");
    if (loop) {
      return absl::UnimplementedError(absl::StrCat("a while loop in control-flow form 1 runs through ", names, "; such loops are not supported"));
    }
    return absl::InvalidArgumentError(absl::StrCat("the graph has a cycle through ", names));
  }

  absl::StatusOr<Node> Translate(int i, const std::vector<int>& position) {
    tensorflow::NodeDef& def = *def_.mutable_node(i);
    Node node;
    node.name = def.name();
    node.op = FindTensorFlowOp(def.op());
    const bool supported = node.op != nullptr;
    if (!supported) {
      node.op = FindOp("Unsupported");
      node.attrs.Set("tensorflow_op", def.op());
    }
    for (auto& [name, value] : *def.mutable_attr()) {
      const absl::Status set = SetAttr(name, value, &node.attrs);
      if (!set.ok() && supported) return NodeError(def, absl::StrCat("attribute '", name, "': ", std::string(set.message())));
    }
    if (supported) FLOE_RETURN_IF_ERROR(CheckSpecial(def, node));
    for (const Edge& edge : edges_[i]) {
      if (edge.output == Edge::kControl) {
        node.control_inputs.push_back(position[edge.node]);
      } else {
        node.inputs.push_back({position[edge.node], edge.output});
      }
    }
    const int inputs = static_cast<int>(node.inputs.size());
    if (inputs < node.op->min_inputs || (node.op->max_inputs >= 0 && inputs > node.op->max_inputs)) {
      return NodeError(def, absl::StrCat("has ", inputs, " inputs, the op takes ", node.op->min_inputs,
                                         node.op->max_inputs == node.op->min_inputs ? "" : node.op->max_inputs < 0 ? " or more" : absl::StrCat(" to ", node.op->max_inputs)));
    }
    node.num_outputs = node.op->outputs >= 0 ? node.op->outputs : CountOutputs(node.attrs);
    return node;
  }

  static absl::Status CheckOutputNumbers(Graph& graph) {
    for (const Node& node : graph.nodes()) {
      for (const ValueRef& in : node.inputs) {
        Node& from = graph.mutable_node(in.node);
        if (from.op->name == "Unsupported") from.num_outputs = std::max(from.num_outputs, in.output + 1);
        if (in.output >= from.num_outputs) {
          return absl::InvalidArgumentError(absl::StrCat("node '", node.name, "': input '", from.name, ":", in.output, "' is past the ",
                                                         from.num_outputs, " outputs of that ", from.op->name));
        }
      }
    }
    return absl::OkStatus();
  }

  tensorflow::GraphDef& def_;
  std::map<std::string, int> index_;
  std::vector<std::vector<Edge>> edges_;
};

}  // namespace

absl::StatusOr<Graph> GraphFromGraphDef(tensorflow::GraphDef* def) { return Importer(def).Run(); }

std::vector<std::string> SinkNames(const Graph& graph) {
  std::vector<bool> consumed(graph.size(), false);
  for (const Node& node : graph.nodes()) {
    for (const ValueRef& in : node.inputs) consumed[in.node] = true;
    if (node.op->name == "NoOp") continue;  // a group of nodes consumes nothing
    for (int control : node.control_inputs) consumed[control] = true;
  }
  static const std::set<std::string> kNotOutputs = {"NoOp", "Assert", "Const", "Input", "PlaceholderWithDefault"};
  std::vector<std::string> names;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (consumed[i] || kNotOutputs.count(node.op->name) != 0) continue;
    if (node.attrs.String("tensorflow_op") == "Assert") continue;
    for (int k = 0; k < node.num_outputs; ++k) names.push_back(TensorNameOf(node.name, k));
  }
  return names;
}

}  // namespace floe
