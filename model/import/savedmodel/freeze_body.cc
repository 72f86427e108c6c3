#include "model/import/savedmodel/freeze_body.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/import/graphdef/graphdef.h"
#include "model/import/savedmodel/node_names.h"
#include "model/op_def.h"

namespace floe {
namespace {

using tensorflow::DataType;
using tensorflow::NodeDef;

absl::Status FreezeError(const NodeDef& node, const std::string& reason) {
  return absl::InvalidArgumentError(
      absl::StrCat("node ", Quoted(node.name()), " (", Escaped(node.op()), ") ", reason));
}

bool AnyBound(const Binding& binding) {
  return std::any_of(binding.begin(), binding.end(),
                     [](DataType dtype) { return dtype != tensorflow::DT_INVALID; });
}

bool IsBackEdge(const NodeDef& to, const NodeDef& from) {
  return (to.op() == "Merge" || to.op() == "RefMerge") &&
         (from.op() == "NextIteration" || from.op() == "RefNextIteration");
}

// Passes its first input to all of its outputs.
bool PassesOn(const std::string& op) {
  static const std::set<std::string> kOps = {"Identity", "Switch", "Merge",
                                             "Enter",    "Exit",   "NextIteration"};
  return kOps.count(op) != 0;
}

// Ops that write to a variable, by what their names begin with.
bool Writes(const std::string& op) {
  for (const char* begin :
       {"Assign", "Scatter", "Apply", "SparseApply", "ResourceScatter", "ResourceApply",
        "ResourceSparseApply", "ResourceStridedSliceAssign", "StridedSliceAssign",
        "ResourceCountUpTo", "CountUpTo", "DestroyResource"}) {
    if (absl::StartsWith(op, begin)) return true;
  }
  return false;
}

absl::Status Refusal(const NodeDef& node) {
  if (Writes(node.op()))
    return FreezeError(node,
                       "assigns to a variable while a request is served; floe serves graphs that "
                       "only read: export the model with a signature that does not assign");
  return FreezeError(node, "uses a variable in a way that floe does not know");
}

void SetType(NodeDef* node, const char* attr, DataType dtype) {
  (*node->mutable_attr())[attr].set_type(dtype);
}

// What TensorFlow noted of a node is no longer so.
void DropNotes(NodeDef* node) {
  for (const char* attr : {"_output_shapes", "_handle_dtypes", "_handle_shapes"})
    node->mutable_attr()->erase(attr);
  node->clear_experimental_type();
}

// The types of a list attribute that were handles and are values now.
void Retype(NodeDef* node, const char* attr, const Binding& binding) {
  const auto found = node->mutable_attr()->find(attr);
  if (found == node->mutable_attr()->end()) return;
  auto* const types = found->second.mutable_list()->mutable_type();
  for (size_t k = 0; k < binding.size() && static_cast<int>(k) < types->size(); ++k) {
    if (binding[k] != tensorflow::DT_INVALID) types->Set(static_cast<int>(k), binding[k]);
  }
}

void ForgetShapes(NodeDef* node, const Binding& outputs) {
  DropNotes(node);
  const auto found = node->mutable_attr()->find("output_shapes");
  if (found == node->mutable_attr()->end()) return;
  auto* const list = found->second.mutable_list();
  for (size_t k = 0; k < outputs.size() && static_cast<int>(k) < list->shape_size(); ++k) {
    if (outputs[k] == tensorflow::DT_INVALID) continue;
    list->mutable_shape(static_cast<int>(k))->Clear();
    list->mutable_shape(static_cast<int>(k))->set_unknown_rank(true);
  }
}

// Drops all attributes but those.
void KeepAttrs(NodeDef* node, const std::set<std::string>& kept) {
  std::vector<std::string> dropped;
  for (const auto& [name, value] : node->attr()) {
    if (kept.count(name) == 0) dropped.push_back(name);
  }
  for (const std::string& name : dropped) node->mutable_attr()->erase(name);
  node->clear_experimental_type();
}

// Control edges only.
void DropValues(NodeDef* node) {
  auto* const inputs = node->mutable_input();
  inputs->erase(std::remove_if(inputs->begin(), inputs->end(),
                               [](const std::string& input) { return input[0] != '^'; }),
                inputs->end());
}

// A node's functions, by the attributes that name them.
std::vector<std::string> FunctionsOf(const NodeDef& node) {
  std::vector<std::string> names;
  for (const auto& [name, value] : node.attr()) {
    if (value.has_func()) names.push_back(value.func().name());
    for (const auto& function : value.list().func()) names.push_back(function.name());
  }
  return names;
}

bool IsBranch(const std::string& op) {
  return op == "If" || op == "StatelessIf" || op == "Case" || op == "StatelessCase";
}
bool IsLoop(const std::string& op) { return op == "While" || op == "StatelessWhile"; }

Binding Tail(const Binding& binding, size_t from) {
  return binding.size() <= from ? Binding() : Binding(binding.begin() + from, binding.end());
}

}  // namespace

BodyFreezer::BodyFreezer(NodeDefs* nodes, FunctionSource* functions, bool in_function)
    : nodes_(*nodes), functions_(*functions), in_function_(in_function) {
  for (int i = 0; i < nodes_.size(); ++i) index_.emplace(nodes_.Get(i).name(), i);
}

void BodyFreezer::BindArgument(const std::string& name, DataType dtype) {
  if (dtype != tensorflow::DT_INVALID) bound_[name] = {dtype};
}

// Nodes behind those they need, as far as they can be; what is in a cycle comes somewhere.
std::vector<int> BodyFreezer::Order() const {
  std::vector<int> order;
  std::vector<char> state(static_cast<size_t>(nodes_.size()), 0);  // 1: open, 2: done
  std::vector<std::pair<int, int>> stack;                          // node, next input
  for (int root = 0; root < nodes_.size(); ++root) {
    if (state[root] == 0) stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto& [i, next] = stack.back();
      state[i] = std::max<char>(state[i], 1);
      const NodeDef& node = nodes_.Get(i);
      if (next == node.input_size()) {
        if (state[i] != 2) order.push_back(i);
        state[i] = 2;
        stack.pop_back();
        continue;
      }
      const auto found = index_.find(std::string(SplitInput(node.input(next++)).node));
      if (found == index_.end() || state[found->second] != 0) continue;
      if (!IsBackEdge(node, nodes_.Get(found->second))) stack.emplace_back(found->second, 0);
    }
  }
  return order;
}

// Which output of its node an input is; in a function an argument is its only one.
int BodyFreezer::OutputNumber(const std::string& input) const {
  const InputName name = SplitInput(input);
  if (!in_function_ || name.argument.empty()) return name.number;
  const auto found = index_.find(std::string(name.node));
  if (found == index_.end()) return name.number;
  const std::string& op = nodes_.Get(found->second).op();
  if (op == "Switch" && name.argument == "output_true") return 1;
  if (op == "Merge" && name.argument == "value_index") return 1;
  if (!functions_.Has(op)) return name.number;
  const int first = functions_.ResultNumber(op, name.argument);
  return first < 0 ? first : first + name.number;
}

DataType BodyFreezer::BoundTo(const std::string& input) const {
  const InputName name = SplitInput(input);
  if (name.control) return tensorflow::DT_INVALID;
  const auto found = bound_.find(std::string(name.node));
  if (found == bound_.end()) return tensorflow::DT_INVALID;
  const int output = OutputNumber(input);
  const Binding& outputs = found->second;
  return output >= 0 && output < static_cast<int>(outputs.size()) ? outputs[output]
                                                                  : tensorflow::DT_INVALID;
}

std::string BodyFreezer::Renamed(const std::string& input) const {
  if (!in_function_) return input;
  const InputName name = SplitInput(input);
  const auto found = renamed_.find(std::string(name.node));
  if (found == renamed_.end() || name.argument != found->second) return input;
  return absl::StrCat(std::string(name.node), ":", renamed_to_.at(found->first), ":", name.number);
}

absl::Status BodyFreezer::Run(std::map<std::string, absl::Status>* refused) {
  FLOE_RETURN_IF_ERROR(SpendVisits(nodes_.size() + 1));
  for (const int i : Order()) {
    absl::Status status = Visit(nodes_.Mutable(i));
    if (status.ok()) continue;
    if (refused == nullptr || absl::IsResourceExhausted(status)) return status;
    NodeDef* const node = nodes_.Mutable(i);
    refused->emplace(node->name(), status);
    // One that the importer takes for an op without a meaning.
    if (FindTensorFlowOp(node->op()) != nullptr || functions_.Has(node->op()))
      node->set_op("FloeRefused");
    node->clear_attr();
    node->clear_input();
  }
  for (NodeDef& node : nodes_) {
    for (std::string& input : *node.mutable_input()) input = Renamed(input);
    node.mutable_attr()->erase("_class");  // colocation with what may be gone
  }
  return absl::OkStatus();
}

absl::Status BodyFreezer::Visit(NodeDef* node) {
  if (IsVariableHandle(node->op())) {
    const auto dtype = node->attr().find("dtype");
    if (dtype == node->attr().end()) return FreezeError(*node, "has no attribute 'dtype'");
    Bind(*node, {dtype->second.type()});
    BecomeConstant(node);
    return absl::OkStatus();
  }
  if (IsVariableReference(node->op())) {
    references_.insert(node->name());
    BecomeConstant(node);
    return absl::OkStatus();
  }
  absl::Status status;
  if (FreezeReference(node, &status)) return status;
  Binding inputs;
  for (const std::string& input : node->input()) {
    if (!SplitInput(input).control) inputs.push_back(BoundTo(input));
  }
  const bool calls = functions_.Has(node->op()) || !FunctionsOf(*node).empty();
  if (calls) return FreezeFunctions(node, inputs);
  return AnyBound(inputs) ? FreezeReader(node, inputs) : absl::OkStatus();
}

// True where it takes a variable by reference.
bool BodyFreezer::FreezeReference(NodeDef* node, absl::Status* status) {
  bool any = false;
  for (const std::string& input : node->input())
    any = any || (input[0] != '^' && references_.count(std::string(SplitInput(input).node)) != 0);
  if (absl::StartsWith(node->op(), "Ref") && PassesOn(node->op().substr(3))) {
    node->set_op(node->op().substr(3));
    DropNotes(node);
    if (any) references_.insert(node->name());
    return true;
  }
  if (!any) return false;
  if (node->op() == "IsVariableInitialized") {
    BecomeTrue(node);
    return true;
  }
  if (Writes(node->op())) *status = Refusal(*node);
  return !status->ok();
}

absl::Status BodyFreezer::FreezeReader(NodeDef* node, const Binding& inputs) {
  const std::string op = node->op();
  const DataType dtype = inputs.empty() ? tensorflow::DT_INVALID : inputs[0];
  if (PassesOn(op)) {
    if (dtype == tensorflow::DT_INVALID)
      return FreezeError(*node, "joins a variable with something else");
    SetType(node, "T", dtype);
    DropNotes(node);
    Bind(*node, op == "Switch" ? Binding{dtype, dtype} : Binding{dtype});
    return absl::OkStatus();
  }
  if (op == "IdentityN") {
    Retype(node, "T", inputs);
    DropNotes(node);
    Bind(*node, inputs);
    return absl::OkStatus();
  }
  if (dtype == tensorflow::DT_INVALID ||
      std::count_if(inputs.begin() + 1, inputs.end(),
                    [](DataType other) { return other != tensorflow::DT_INVALID; }) != 0)
    return Refusal(*node);
  if (op == "ReadVariableOp") {
    node->set_op("Identity");
    KeepAttrs(node, {});
    SetType(node, "T", dtype);
    renamed_[node->name()] = "value";
    renamed_to_[node->name()] = "output";
    return absl::OkStatus();
  }
  if (op == "ResourceGather" || op == "ResourceGatherNd") {
    BecomeGather(node, dtype);
    return absl::OkStatus();
  }
  if (op == "VariableShape") {
    node->set_op("Shape");
    KeepAttrs(node, {"out_type"});
    SetType(node, "T", dtype);
    return absl::OkStatus();
  }
  if (op == "VarIsInitializedOp") {
    renamed_[node->name()] = "is_initialized";
    renamed_to_[node->name()] = "output";
    BecomeTrue(node);
    return absl::OkStatus();
  }
  if (op == "DisableCopyOnRead") {
    node->set_op("NoOp");
    KeepAttrs(node, {});
    DropValues(node);
    return absl::OkStatus();
  }
  return Refusal(*node);
}

void BodyFreezer::BecomeGather(NodeDef* node, DataType dtype) {
  const bool nd = node->op() == "ResourceGatherNd";
  const auto batch = node->attr().find("batch_dims");
  const int64_t batch_dims = batch == node->attr().end() ? 0 : batch->second.i();
  node->set_op(nd ? "GatherNd" : "GatherV2");
  KeepAttrs(node, nd ? std::set<std::string>{"Tindices"}
                     : std::set<std::string>{"Tindices", "batch_dims"});
  SetType(node, "Tparams", dtype);
  if (nd) return;
  SetType(node, "Taxis", tensorflow::DT_INT32);
  std::string name = absl::StrCat(node->name(), "/axis");
  while (index_.count(name) != 0) name += "_";
  // Control inputs come last.
  auto* const inputs = node->mutable_input();
  int at = 0;
  while (at < inputs->size() && inputs->Get(at)[0] != '^') ++at;
  node->add_input(in_function_ ? absl::StrCat(name, ":output:0") : name);
  std::rotate(inputs->begin() + at, inputs->end() - 1, inputs->end());
  index_.emplace(name, nodes_.size());
  NodeDef* const axis = nodes_.Add();  // may move no node: they are pointers
  axis->set_name(name);
  axis->set_op("Const");
  SetType(axis, "dtype", tensorflow::DT_INT32);
  auto* const value = (*axis->mutable_attr())["value"].mutable_tensor();
  value->set_dtype(tensorflow::DT_INT32);
  value->mutable_tensor_shape();
  value->add_int_val(static_cast<int>(batch_dims));
}

void BodyFreezer::BecomeConstant(NodeDef* node) {
  const std::string name = SharedName(*node);
  node->set_op("Const");
  KeepAttrs(node, {"dtype"});
  (*node->mutable_attr())[kVariableAttr].set_s(name);
}

void BodyFreezer::BecomeTrue(NodeDef* node) {
  node->set_op("Const");
  KeepAttrs(node, {});
  DropValues(node);
  SetType(node, "dtype", tensorflow::DT_BOOL);
  auto* const value = (*node->mutable_attr())["value"].mutable_tensor();
  value->set_dtype(tensorflow::DT_BOOL);
  value->mutable_tensor_shape();
  value->add_bool_val(true);
}

absl::Status BodyFreezer::FreezeFunctions(NodeDef* node, const Binding& inputs) {
  const std::string op = node->op();
  absl::Status status;
  if (functions_.Has(op)) {
    status = FreezeCall(node, op, inputs);
  } else if (IsCallOp(op)) {
    const auto f = node->attr().find("f");
    status = f == node->attr().end() ? absl::InvalidArgumentError("does not name its function 'f'")
                                     : FreezeCall(node, f->second.func().name(), inputs);
  } else if (IsBranch(op)) {
    status = FreezeBranches(node, inputs);
  } else if (IsLoop(op)) {
    status = FreezeLoop(node, inputs);
  } else {
    status = AnyBound(inputs) ? Refusal(*node) : KeepFunctions(*node);
  }
  return Annotate(status, absl::StrCat("node ", Quoted(node->name())));
}

absl::Status BodyFreezer::KeepFunctions(const NodeDef& node) {
  for (const std::string& name : FunctionsOf(node)) {
    if (functions_.Has(name)) FLOE_RETURN_IF_ERROR(functions_.Keep(name));
  }
  return absl::OkStatus();
}

absl::Status BodyFreezer::FreezeCall(NodeDef* node, const std::string& name,
                                     const Binding& inputs) {
  FLOE_ASSIGN_OR_RETURN(const FunctionSource::Frozen frozen, functions_.Freeze(name, inputs));
  if (node->op() == name) {
    node->set_op(frozen.name);
  } else {
    (*node->mutable_attr())["f"].mutable_func()->set_name(frozen.name);
    Retype(node, "Tin", inputs);
    Retype(node, "Tout", frozen.results);
    ForgetShapes(node, frozen.results);
  }
  Bind(*node, frozen.results);
  return absl::OkStatus();
}

absl::Status BodyFreezer::FreezeBranches(NodeDef* node, const Binding& inputs) {
  std::vector<std::string*> names;
  for (const char* attr : {"then_branch", "else_branch", "branches"}) {
    const auto found = node->mutable_attr()->find(attr);
    if (found == node->mutable_attr()->end()) continue;
    if (found->second.has_func()) names.push_back(found->second.mutable_func()->mutable_name());
    if (!found->second.has_list()) continue;
    for (auto& function : *found->second.mutable_list()->mutable_func())
      names.push_back(function.mutable_name());
  }
  const Binding passed = Tail(inputs, 1);
  Binding results;
  for (size_t k = 0; k < names.size(); ++k) {
    FLOE_ASSIGN_OR_RETURN(const FunctionSource::Frozen frozen,
                          functions_.Freeze(*names[k], passed));
    if (k != 0 && frozen.results != results)
      return absl::InvalidArgumentError(
          "its branches return variables of different types, or something else");
    *names[k] = frozen.name;
    results = frozen.results;
  }
  Retype(node, "Tin", passed);
  Retype(node, "Tout", results);
  ForgetShapes(node, results);
  Bind(*node, std::move(results));
  return absl::OkStatus();
}

absl::Status BodyFreezer::FreezeLoop(NodeDef* node, const Binding& inputs) {
  for (const char* attr : {"cond", "body"}) {
    const auto found = node->mutable_attr()->find(attr);
    if (found == node->mutable_attr()->end() || !found->second.has_func())
      return absl::InvalidArgumentError(absl::StrCat("does not name its function '", attr, "'"));
    std::string* const name = found->second.mutable_func()->mutable_name();
    FLOE_ASSIGN_OR_RETURN(const FunctionSource::Frozen frozen, functions_.Freeze(*name, inputs));
    if (std::string_view(attr) == "body" && frozen.results != inputs)
      return absl::InvalidArgumentError(
          "its body returns another thing in the place of a variable, or a variable for it");
    *name = frozen.name;
  }
  Retype(node, "T", inputs);
  ForgetShapes(node, inputs);
  Bind(*node, inputs);
  return absl::OkStatus();
}

}  // namespace floe
