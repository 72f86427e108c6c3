#include "model/import/savedmodel/object_graph.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/status.h"
#include "model/import/parse_message.h"
#include "model/import/savedmodel/node_names.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace floe {
namespace {

using tensorflow::MetaGraphDef;
using tensorflow::NodeDef;
using Object = tensorflow::TrackableObjectGraph::TrackableObject;

// The function that a node of the graph calls.
std::string Callee(const NodeDef& node) {
  if (!IsCallOp(node.op())) return node.op();
  const auto f = node.attr().find("f");
  return f == node.attr().end() ? "" : f->second.func().name();
}

// Calls `use` with each object that a call of the graph passes, and the input it is passed by: the
// last arguments of a function are what it captures.
template <typename Use>
void ForEachCapture(const MetaGraphDef& meta, const Use& use) {
  const auto& objects = meta.object_graph_def();
  for (const NodeDef& node : meta.graph_def().node()) {
    const auto function = objects.concrete_functions().find(Callee(node));
    if (function == objects.concrete_functions().end()) continue;
    const auto& bound = function->second.bound_inputs();
    const auto control = std::find_if(node.input().begin(), node.input().end(),
                                      [](const std::string& input) { return input[0] == '^'; });
    const auto values = static_cast<int>(control - node.input().begin());
    if (bound.size() > values) continue;  // rewritten by a tool that left the objects as they were
    for (int k = 0; k < bound.size(); ++k) {
      if (bound.Get(k) >= 0 && bound.Get(k) < objects.nodes_size())
        use(bound.Get(k), node.input(values - bound.size() + k));
    }
  }
}

struct Edge {
  int from = -1;
  const std::string* name = nullptr;
};

// The edge by which each object is first met on the way from the root.
std::vector<Edge> FirstEdges(const tensorflow::SavedObjectGraph& objects) {
  std::vector<Edge> edges(static_cast<size_t>(objects.nodes_size()));
  std::vector<int> open;
  if (!edges.empty()) open.push_back(0);
  for (size_t at = 0; at < open.size(); ++at) {
    for (const auto& child : objects.nodes(open[at]).children()) {
      const int id = child.node_id();
      if (id <= 0 || id >= objects.nodes_size() || edges[id].name != nullptr) continue;
      edges[id] = {open[at], &child.local_name()};
      open.push_back(id);
    }
  }
  return edges;
}

ObjectPath PathOf(int object, const std::vector<Edge>& edges) {
  ObjectPath path;
  for (int at = object; at > 0 && edges[at].name != nullptr; at = edges[at].from)
    path.push_back(*edges[at].name);
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace

std::map<int, std::string> CapturedTensors(const MetaGraphDef& meta) {
  std::map<int, std::string> tensors;
  ForEachCapture(meta,
                 [&](int object, const std::string& input) { tensors.emplace(object, input); });
  return tensors;
}

std::map<std::string, ObjectPath> CapturedVariables(const MetaGraphDef& meta) {
  std::map<std::string, ObjectPath> paths;
  const auto& objects = meta.object_graph_def();
  if (objects.nodes_size() == 0) return paths;
  std::unordered_map<std::string_view, const NodeDef*> handles;
  for (const NodeDef& node : meta.graph_def().node()) {
    if (IsVariableHandle(node.op())) handles.emplace(node.name(), &node);
  }
  const std::vector<Edge> edges = FirstEdges(objects);
  ForEachCapture(meta, [&](int object, const std::string& input) {
    const auto handle = handles.find(SplitInput(input).node);
    if (handle == handles.end() || !objects.nodes(object).has_variable()) return;
    ObjectPath path = PathOf(object, edges);
    if (!path.empty()) paths.emplace(SharedName(*handle->second), std::move(path));
  });
  return paths;
}

CheckpointObjects::CheckpointObjects() = default;
CheckpointObjects::CheckpointObjects(CheckpointObjects&&) noexcept = default;
CheckpointObjects& CheckpointObjects::operator=(CheckpointObjects&&) noexcept = default;
CheckpointObjects::~CheckpointObjects() = default;

absl::StatusOr<CheckpointObjects> CheckpointObjects::Parse(std::string_view bytes) {
  CheckpointObjects objects;
  objects.graph_ = NewMessage<tensorflow::TrackableObjectGraph>();
  const absl::Status parsed = ParsePaid(bytes, objects.graph_.get(), &objects.memory_);
  if (!parsed.ok()) return Annotate(parsed, kName);
  return objects;
}

std::string CheckpointObjects::KeyOf(const ObjectPath& path) const {
  if (graph_->nodes_size() == 0) return "";
  const Object* object = &graph_->nodes(0);
  for (const std::string& name : path) {
    const auto child = std::find_if(object->children().begin(), object->children().end(),
                                    [&name](const auto& one) { return one.local_name() == name; });
    if (child == object->children().end() || child->node_id() < 0 ||
        child->node_id() >= graph_->nodes_size())
      return "";
    object = &graph_->nodes(child->node_id());
  }
  for (const auto& attribute : object->attributes()) {
    if (attribute.name() == "VARIABLE_VALUE" || object->attributes_size() == 1)
      return attribute.checkpoint_key();
  }
  return "";
}

}  // namespace floe
