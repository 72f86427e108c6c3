#include "model/import/graphdef/functions.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "model/effects.h"
#include "model/op_def.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace floe {
namespace {

// How many tensors an output argument stands for: "name" for one, "name:attr" as the attribute
// says.
int64_t Tensors(const tensorflow::NodeDef& node, const std::string& output) {
  const size_t colon = output.find(':');
  if (colon == std::string::npos) return 1;
  const auto attr = node.attr().find(output.substr(colon + 1));
  if (attr == node.attr().end()) return 0;
  constexpr int64_t kMost = 65536;
  return std::clamp<int64_t>(
      attr->second.has_list() ? attr->second.list().type_size() : attr->second.i(), 0, kMost);
}

}  // namespace

FunctionLibrary::FunctionLibrary(tensorflow::FunctionDefLibrary* library,
                                 const VariableValues* variables)
    : variables_(variables) {
  for (tensorflow::FunctionDef& def : *library->mutable_function())
    functions_[def.signature().name()].def = &def;
}

const Tensor* FunctionLibrary::VariableOf(const tensorflow::NodeDef& node) const {
  if (variables_ == nullptr || node.op() != "Const") return nullptr;
  const auto attr = node.attr().find(kVariableAttr);
  if (attr == node.attr().end()) return nullptr;
  const auto found = variables_->find(attr->second.s());
  return found == variables_->end() ? nullptr : &found->second;
}

std::shared_ptr<const Graph> WithoutIdleEffects(std::shared_ptr<const Graph> graph,
                                                const std::vector<int>& controls) {
  std::vector<bool> needed(graph->size(), false);
  for (const ValueRef& out : graph->outputs) needed[out.node] = true;
  for (int control : controls) needed[control] = true;
  std::vector<int> idle;
  for (int i = graph->size() - 1; i >= 0; --i) {
    const Node& node = graph->node(i);
    if (!needed[i]) {
      if (HasEffect(node)) idle.push_back(i);
      continue;
    }
    for (const ValueRef& in : node.inputs) needed[in.node] = true;
    for (int control : node.control_inputs) needed[control] = true;
  }
  if (idle.empty()) return graph;
  auto rest = std::make_shared<Graph>(*graph);
  for (int i : idle) {
    Node& node = rest->mutable_node(i);
    node.op = FindOp("NoOp");
    node.inputs.clear();
    node.subgraphs.clear();
  }
  return rest;
}

int CountOutputs(const tensorflow::NodeDef& node, const OpDef& op) {
  if (op.outputs >= 0) return op.outputs;
  int64_t count = 0;
  for (const std::string& output : op.output_names) count += Tensors(node, output);
  return static_cast<int>(count);
}

absl::StatusOr<int> OutputArgument(const tensorflow::NodeDef& node, const std::string& argument) {
  const OpDef* op = FindTensorFlowOp(node.op());
  if (op == nullptr || op->output_names.empty()) return 0;
  int64_t first = 0;
  for (const std::string& output : op->output_names) {
    if (output.substr(0, output.find(':')) == argument) return static_cast<int>(first);
    first += Tensors(node, output);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(Escaped(node.op()), " has no output argument ", Quoted(argument)));
}

absl::StatusOr<int> FunctionLibrary::ResultNumber(const std::string& function,
                                                  const std::string& result) const {
  const auto found = functions_.find(function);
  if (found != functions_.end()) {
    const auto& results = found->second.def->signature().output_arg();
    for (int k = 0; k < results.size(); ++k) {
      if (results.Get(k).name() == result) return k;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("function ", Quoted(function), " has no result ", Quoted(result)));
}

}  // namespace floe
