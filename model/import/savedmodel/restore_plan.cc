#include "model/import/savedmodel/restore_plan.h"

#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "model/import/savedmodel/node_names.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace floe {
namespace {

using tensorflow::NodeDef;

constexpr int kMaxRestoreDepth = 32;  // of calls

// Where a value comes from, as far as restoring goes.
struct Origin {
  enum class Kind : uint8_t { kOther, kRestored, kHandle, kConstant, kRestoreOp };
  Kind kind = Kind::kOther;
  RestoredTensor restored;        // kRestored
  const NodeDef* node = nullptr;  // kHandle: of a variable or table; kConstant; kRestoreOp
  int output = 0;                 // kRestoreOp: of the node
};

bool IsTable(const std::string& op) {
  return op.find("HashTable") != std::string::npos || op.find("DenseHashTable") == 0;
}

bool IsAssign(const std::string& op) { return op == "Assign" || op == "AssignVariableOp"; }
bool IsTableImport(const std::string& op) {
  return op == "LookupTableImport" || op == "LookupTableImportV2";
}

// Passes its first input on.
bool IsPassedThrough(const std::string& op) {
  return op == "Identity" || op == "Reshape" || op == "Cast" || op == "ReadVariableOp" ||
         op == "RefIdentity";
}

template <typename Nodes>
std::unordered_map<std::string_view, const NodeDef*> IndexOf(const Nodes& nodes) {
  std::unordered_map<std::string_view, const NodeDef*> index;
  for (const NodeDef& node : nodes) index.emplace(node.name(), &node);
  return index;
}

using Functions = std::unordered_map<std::string_view, const tensorflow::FunctionDef*>;

// The k-th string of a constant; what repeats is said once.
std::string StringOf(const Origin& constant, int k) {
  if (constant.kind != Origin::Kind::kConstant) return "";
  const auto value = constant.node->attr().find("value");
  if (value == constant.node->attr().end()) return "";
  const auto& strings = value->second.tensor().string_val();
  return k < strings.size() ? strings.Get(k) : "";
}

// The nodes of a graph or of one call.
class Scope {
 public:
  template <typename Nodes>
  Scope(const Nodes& nodes, const Functions& functions, int depth, RestorePlan* plan)
      : index_(IndexOf(nodes)), functions_(functions), depth_(depth), plan_(plan) {}

  void Bind(const std::string& argument, Origin origin) {
    arguments_[argument] = std::move(origin);
  }

  // What `node` and all above it restore.
  absl::Status Follow(std::string_view root) {
    std::vector<std::string_view> open = {root};
    while (!open.empty()) {
      const auto found = index_.find(open.back());
      open.pop_back();
      if (found == index_.end() || !seen_.insert(found->second).second) continue;
      FLOE_RETURN_IF_ERROR(Visit(*found->second));
      for (const std::string& input : found->second->input())
        open.push_back(SplitInput(input).node);
    }
    return absl::OkStatus();
  }

  absl::Status FollowAll() {
    for (const auto& [name, node] : index_) FLOE_RETURN_IF_ERROR(Follow(name));
    return absl::OkStatus();
  }

 private:
  absl::Status Visit(const NodeDef& node) {
    FLOE_RETURN_IF_ERROR(SpendVisits(1));
    if (IsAssign(node.op()) && node.input_size() >= 2) {
      const Origin to = OriginOf(node.input(0)), from = OriginOf(node.input(1));
      if (to.kind == Origin::Kind::kHandle && from.kind == Origin::Kind::kRestored)
        plan_->variables.emplace(SharedName(*to.node), from.restored);
    } else if (IsTableImport(node.op()) && node.input_size() >= 3) {
      const Origin to = OriginOf(node.input(0)), keys = OriginOf(node.input(1)),
                   values = OriginOf(node.input(2));
      if (to.kind == Origin::Kind::kHandle && keys.kind == Origin::Kind::kRestored &&
          values.kind == Origin::Kind::kRestored)
        plan_->tables.emplace(to.node->name(),
                              RestorePlan::Entries{keys.restored, values.restored});
    } else if (IsCallOp(node.op())) {
      return Call(node);
    }
    return absl::OkStatus();
  }

  absl::Status Call(const NodeDef& node) {
    const auto attr = node.attr().find("f");
    const auto found =
        attr == node.attr().end() ? functions_.end() : functions_.find(attr->second.func().name());
    if (found == functions_.end()) return absl::OkStatus();
    if (depth_ >= kMaxRestoreDepth)
      return absl::ResourceExhaustedError(
          absl::StrCat("functions call each other deeper than ", kMaxRestoreDepth, " levels"));
    const tensorflow::FunctionDef& function = *found->second;
    FLOE_RETURN_IF_ERROR(SpendVisits(function.node_def_size()));
    Scope inner(function.node_def(), functions_, depth_ + 1, plan_);
    for (int k = 0; k < function.signature().input_arg_size() && k < node.input_size(); ++k)
      inner.Bind(function.signature().input_arg(k).name(), OriginOf(node.input(k)));
    return inner.FollowAll();
  }

  // What leads to `input` when ops that pass it on are skipped.
  Origin SourceOf(const std::string& input) const {
    std::string_view at = input;
    for (int steps = 0; steps < kMaxRestoreDepth; ++steps) {
      const InputName name = SplitInput(at);
      if (const auto argument = arguments_.find(std::string(name.node));
          argument != arguments_.end())
        return argument->second;
      const auto found = index_.find(name.node);
      if (found == index_.end()) return {};
      const NodeDef& node = *found->second;
      if (node.op() == "RestoreV2") return {Origin::Kind::kRestoreOp, {}, &node, name.number};
      if (IsVariableHandle(node.op()) || IsVariableReference(node.op()) || IsTable(node.op()))
        return {Origin::Kind::kHandle, {}, &node};
      if (node.op() == "Const") return {Origin::Kind::kConstant, {}, &node};
      if (!IsPassedThrough(node.op()) || node.input_size() == 0) return {};
      at = node.input(0);
    }
    return {};
  }

  // As SourceOf, and which tensor a RestoreV2 reads. The names must be constants: a graph may
  // restore its own names, without end.
  Origin OriginOf(const std::string& input) const {
    Origin source = SourceOf(input);
    if (source.kind != Origin::Kind::kRestoreOp) return source;
    if (source.node->input_size() < 3) return {};
    RestoredTensor restored;
    restored.name = StringOf(SourceOf(source.node->input(1)), source.output);
    restored.part = StringOf(SourceOf(source.node->input(2)), source.output);
    if (restored.name.empty()) return {};
    return {Origin::Kind::kRestored, std::move(restored), nullptr};
  }

  const std::unordered_map<std::string_view, const NodeDef*> index_;
  const Functions& functions_;
  const int depth_;
  RestorePlan* const plan_;
  std::map<std::string, Origin> arguments_;
  std::set<const NodeDef*> seen_;
};

}  // namespace

absl::StatusOr<RestorePlan> PlanRestore(const tensorflow::GraphDef& graph,
                                        const std::string& restore_op) {
  Functions functions;
  for (const tensorflow::FunctionDef& function : graph.library().function())
    functions.emplace(function.signature().name(), &function);
  RestorePlan plan;
  if (!restore_op.empty()) {
    Scope scope(graph.node(), functions, 0, &plan);
    FLOE_RETURN_IF_ERROR(scope.Follow(SplitInput(restore_op).node));
  }
  if (plan.variables.empty() && plan.tables.empty()) {
    Scope scope(graph.node(), functions, 0, &plan);
    FLOE_RETURN_IF_ERROR(scope.FollowAll());
  }
  return plan;
}

}  // namespace floe
