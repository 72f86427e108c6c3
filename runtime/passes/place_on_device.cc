#include "runtime/passes/place_on_device.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/effects.h"
#include "runtime/analyze.h"
#include "runtime/device_cost.h"
#include "runtime/passes/passes.h"
#include "runtime/plan.h"

namespace floe {
namespace {

bool IsStatic(const TensorType& type) {
  return type.shape.known() && type.shape.elements().known();
}

// Why values like these cannot be on a device; empty: they can.
std::string WhyNotThere(absl::Span<const ValueInfo> values) {
  for (const ValueInfo& value : values) {
    if (value.type.dtype == DType::kString) return "strings";
    if (IsHandle(value.type.dtype)) return "tables and lists";
    if (!IsStatic(value.type)) return "its shape is known only during the run";
  }
  return "";
}

// All of it is known before a run: no step computes it.
bool IsKnown(const Node& node, absl::Span<const ValueInfo> outputs) {
  if (node.op->name == "Const") return true;
  return !HasEffect(node) && !outputs.empty() &&
         std::all_of(outputs.begin(), outputs.end(),
                     [](const ValueInfo& value) { return value.constant.valid(); });
}

class Placer {
 public:
  Placer(const Graph& graph, const Analysis& analysis, const KernelOptions& options)
      : graph_(graph), analysis_(analysis), place_(graph.size(), Place::kHost) {
    for (int i = 0; i < graph.size(); ++i) place_[i] = PlaceOf(i, options);
    FindLevels();
  }

  // Islands that are not worth it go, which may join others.
  void DropSmallIslands(const Placement& placement) {
    for (bool dropped = true; dropped;) {
      dropped = false;
      for (const auto& [level, members] : Islands()) {
        const double fixed =
            placement.small
                ? 0
                : kHostFlops * (kDeviceRunMicros + kDeviceLaunchMicros * Steps(members));
        if (Flops(members, placement.rows) >= CrossingBytes(members, placement.rows) + fixed)
          continue;
        for (const int i : members) place_[i] = Place::kHost;
        dropped = true;
      }
      KeepAliasesWithTheirValues();
      FindLevels();
    }
  }

  Graph Run() {
    const std::map<int, std::vector<int>> islands = Islands();
    for (const auto& [level, members] : islands) Outline(level, members);
    std::set<ValueRef> read = ReadOnHost();
    for (const auto& [level, body] : bodies_) read.insert(body.inputs.begin(), body.inputs.end());
    Graph result = graph_;
    std::map<ValueRef, ValueRef> moved;
    for (const auto& [level, members] : islands)
      Replace(members, read, &bodies_.at(level), &result, &moved);
    const auto follow = [&moved](ValueRef* ref) {
      if (const auto found = moved.find(*ref); found != moved.end()) *ref = found->second;
    };
    for (Node& node : result.mutable_nodes()) {
      for (ValueRef& in : node.inputs) follow(&in);
    }
    for (ValueRef& out : result.outputs) follow(&out);
    return result;
  }

 private:
  // Known values are wherever they are read.
  enum class Place : uint8_t { kHost, kDevice, kKnown };

  struct Body {
    Graph graph;
    std::map<int, int> copied;         // by node: its number inside
    std::map<ValueRef, int> captured;  // by value from outside: its Input
    std::vector<ValueRef> inputs;      // from outside, in order
  };

  Place PlaceOf(int i, const KernelOptions& options) const {
    const Node& node = graph_.node(i);
    const std::vector<ValueInfo>& outputs = analysis_.values[i];
    if (node.op->name == "Input") return Place::kHost;
    if (IsKnown(node, outputs)) return Place::kKnown;
    // What only shows other bytes is where they are.
    if (node.op->alias && place_[node.inputs[0].node] != Place::kDevice) return Place::kHost;
    std::vector<ValueInfo> inputs;
    for (const ValueRef& in : node.inputs) inputs.push_back(analysis_.at(in));
    return WhyOnHost(node, inputs, outputs, options).empty() ? Place::kDevice : Place::kHost;
  }

  void KeepAliasesWithTheirValues() {
    for (int i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.node(i);
      if (place_[i] == Place::kDevice && node.op->alias &&
          place_[node.inputs[0].node] != Place::kDevice)
        place_[i] = Place::kHost;
    }
  }

  void FindLevels() {
    std::vector<int> on_host(graph_.size(), 0), on_device(graph_.size(), 1);  // of a reader there
    for (int i = 0; i < graph_.size(); ++i) {
      for (const ValueRef& in : graph_.node(i).inputs) {
        on_host[i] = std::max(on_host[i], on_host[in.node]);
        on_device[i] = std::max(on_device[i], on_device[in.node]);
      }
      for (const int control : graph_.node(i).control_inputs)
        on_host[i] = std::max(on_host[i], on_host[control]);
      if (place_[i] == Place::kHost) on_device[i] = on_host[i] + 1;
      if (place_[i] == Place::kDevice) on_host[i] = on_device[i] + 1;
    }
    level_ = std::move(on_device);
  }

  std::map<int, std::vector<int>> Islands() const {
    std::map<int, std::vector<int>> islands;
    for (int i = 0; i < graph_.size(); ++i) {
      if (place_[i] == Place::kDevice) islands[level_[i]].push_back(i);
    }
    return islands;
  }

  bool InIsland(int i, int level) const {
    return place_[i] == Place::kDevice && level_[i] == level;
  }

  double Steps(const std::vector<int>& members) const {
    return static_cast<double>(std::count_if(members.begin(), members.end(),
                                             [this](int i) { return !graph_.node(i).op->alias; }));
  }

  double Flops(const std::vector<int>& members, int64_t rows) const {
    double flops = 0;
    for (const int i : members) {
      Types in, out;
      for (const ValueRef& ref : graph_.node(i).inputs) in.push_back(analysis_.at(ref).type);
      for (const ValueInfo& value : analysis_.values[i]) out.push_back(value.type);
      if (!graph_.node(i).op->alias) flops += EstimateFlops(graph_.node(i), in, out, rows);
    }
    return flops;
  }

  // Into the island and out of it.
  double CrossingBytes(const std::vector<int>& members, int64_t rows) const {
    const int level = level_[members.front()];
    std::set<ValueRef> crossing;
    for (int i = 0; i < graph_.size(); ++i) {
      for (const ValueRef& in : graph_.node(i).inputs) {
        if (place_[i] != Place::kKnown && place_[in.node] != Place::kKnown &&
            InIsland(i, level) != InIsland(in.node, level) &&
            (InIsland(i, level) || InIsland(in.node, level)))
          crossing.insert(in);
      }
    }
    for (const ValueRef& out : graph_.outputs) {
      if (InIsland(out.node, level)) crossing.insert(out);
    }
    double bytes = 0;
    for (const ValueRef& ref : crossing) {
      const TensorType& type = analysis_.at(ref).type;
      if (IsStatic(type))
        bytes += static_cast<double>(type.shape.elements().At(rows)) *
                 static_cast<double>(DTypeSize(type.dtype));
    }
    return bytes;
  }

  void Outline(int level, const std::vector<int>& members) {
    Body& body = bodies_[level];
    for (const int i : members) Copy(i, level, &body);
    for (const auto& [ref, input] : body.captured) body.inputs.push_back(ref);
    for (const ValueRef& ref : body.inputs) body.graph.inputs.push_back(body.captured.at(ref));
  }

  int Copy(int i, int level, Body* body) {
    if (const auto found = body->copied.find(i); found != body->copied.end()) return found->second;
    Node node = graph_.node(i);
    node.control_inputs.clear();
    for (ValueRef& in : node.inputs) in = Inside(in, level, body);
    return body->copied[i] = body->graph.Add(std::move(node));
  }

  ValueRef Inside(ValueRef ref, int level, Body* body) {
    if (InIsland(ref.node, level) || place_[ref.node] == Place::kKnown)
      return {Copy(ref.node, level, body), ref.output};
    const auto [found, fresh] = body->captured.emplace(ref, -1);
    if (fresh) {
      Node input;
      input.name = TensorNameOf(graph_.node(ref.node).name, ref.output);
      input.op = FindOp("Input");
      found->second = body->graph.Add(std::move(input));
    }
    return {found->second, 0};
  }

  // By host nodes and outputs, and by known nodes that these read.
  std::set<ValueRef> ReadOnHost() const {
    std::set<ValueRef> read(graph_.outputs.begin(), graph_.outputs.end());
    std::vector<bool> needed(graph_.size(), false);
    for (const ValueRef& out : graph_.outputs) needed[out.node] = true;
    for (int i = graph_.size() - 1; i >= 0; --i) {
      if (place_[i] == Place::kDevice || (place_[i] == Place::kKnown && !needed[i])) continue;
      for (const ValueRef& in : graph_.node(i).inputs) {
        read.insert(in);
        needed[in.node] = true;
      }
    }
    return read;
  }

  // The island's node is in the place of its last member; the others are left without a reader.
  void Replace(const std::vector<int>& members, const std::set<ValueRef>& read, Body* body,
               Graph* result, std::map<ValueRef, ValueRef>* moved) const {
    Node island;
    island.name = absl::StrCat("island ", (level_[members.front()] + 1) / 2);
    island.op = FindOp("OnDevice");
    island.inputs = body->inputs;
    for (const int i : members) {
      for (int k = 0; k < graph_.node(i).num_outputs; ++k) {
        if (!read.contains({i, k})) continue;
        (*moved)[{i, k}] = {members.back(), static_cast<int>(body->graph.outputs.size())};
        body->graph.outputs.push_back({body->copied.at(i), k});
      }
      Node& left = result->mutable_node(i);
      left.inputs.clear();
      left.control_inputs.clear();
    }
    island.num_outputs = static_cast<int>(body->graph.outputs.size());
    island.subgraphs = {std::make_shared<const Graph>(std::move(body->graph))};
    result->mutable_node(members.back()) = std::move(island);
  }

  const Graph& graph_;
  const Analysis& analysis_;
  std::vector<Place> place_;
  std::vector<int> level_;      // of device nodes
  std::map<int, Body> bodies_;  // by level
};

// As a request settles what the types leave open, but for the rows: a size stands for all dims that
// are. Whatever it is, the same nodes have shapes that follow from those of the inputs.
absl::StatusOr<Analysis> AnalyzeAsBound(const Graph& graph, absl::Span<const TensorType> inputs,
                                        const KernelOptions& options) {
  for (const int64_t size : {224, 64, 32, 16, 8, 4, 2, 1}) {
    bool open = false;
    std::vector<TensorType> settled(inputs.begin(), inputs.end());
    for (TensorType& type : settled) {
      for (int d = 1; type.shape.rank_known() && d < type.shape.rank(); ++d) {
        if (type.shape.dim(d).known() || type.shape.dim(d).has_rows()) continue;
        type.shape.set_dim(d, size);
        open = true;
      }
    }
    if (!open) break;
    auto analysis = AnalyzeWithRows(graph, settled, options);
    if (analysis.ok()) return analysis;
  }
  return AnalyzeWithRows(graph, inputs, options);
}

}  // namespace

std::string WhyOnHost(const Node& node, absl::Span<const ValueInfo> inputs,
                      absl::Span<const ValueInfo> outputs, const KernelOptions& options) {
  if (!node.subgraphs.empty()) return "control flow";
  if (node.op->stateful || HasEffect(node)) return "it has a state or an effect";
  if (!node.control_inputs.empty()) return "it waits for a branch";
  std::string why = WhyNotThere(inputs);
  if (why.empty()) why = WhyNotThere(outputs);
  if (why.empty() && node.op->allocates) why = "its shape depends on values";
  if (!why.empty() || node.op->alias || node.op->name == "Const") return why;
  const DType dtype = KernelDType(node, inputs);
  if (FindKernel(node.op->name, options.device, dtype) == nullptr) {
    return KernelDTypes(node.op->name, options.device).empty()
               ? "no kernel"
               : absl::StrCat("no kernel for ", DTypeName(dtype));
  }
  return CanCompute({node, inputs, options}) ? "" : "no kernel for these shapes or attributes";
}

absl::Status PlaceOnDevice(Graph* graph, absl::Span<const TensorType> inputs,
                           const KernelOptions& options, const Placement& placement) {
  KernelOptions there = options;
  there.device = placement.device;
  FLOE_ASSIGN_OR_RETURN(const Analysis analysis, AnalyzeAsBound(*graph, inputs, options));
  Placer placer(*graph, analysis, there);
  if (!placement.all) placer.DropSmallIslands(placement);
  Graph placed = placer.Run();
  if (!SortTopologically(&placed)) return absl::InternalError("an island made a cycle");
  Prune(&placed);
  *graph = std::move(placed);
  return absl::OkStatus();
}

}  // namespace floe
