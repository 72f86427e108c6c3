#include "model/import/graphdef/sinks.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "absl/strings/match.h"
#include "model/op_def.h"

namespace floe {
namespace {

// Ops of training that have outputs and no part in an answer, by what their names begin with.
constexpr const char* kTraining[] = {
    "Apply",
    "Assign",
    "FIFOQueue",
    "IsVariableInitialized",
    "Iterator",
    "MakeIterator",
    "MergeV2",
    "PaddingFIFOQueue",
    "QueueClose",
    "QueueEnqueue",
    "QueueIsClosed",
    "QueueSize",
    "RandomShuffleQueue",
    "Reader",
    "ResourceApply",
    "ResourceSparseApply",
    "Save",
    "Sharded",
    "SparseApply",
    "VarIsInitialized",
    "Variable",
};

// The file's op where floe does not have it; empty where it has.
std::string ForeignOp(const Node& node) {
  return node.op->name == "Unsupported" ? node.attrs.String("tensorflow_op") : "";
}

// Looks at values on the way to a log.
bool IsSummary(const Node& node) { return ForeignOp(node).find("Summary") != std::string::npos; }

bool IsLeftover(const Node& node) {
  const std::string op = ForeignOp(node);
  if (op.find("Dataset") != std::string::npos || IsSummary(node)) return true;
  return std::any_of(std::begin(kTraining), std::end(kTraining),
                     [&](const char* begin) { return absl::StartsWith(op, begin); });
}

}  // namespace

std::vector<std::string> SinkNames(const Graph& graph) {
  static const std::set<std::string> kNotOutputs = {"NoOp", "Assert", "Const", "Input",
                                                    "PlaceholderWithDefault"};
  std::vector<bool> consumed(graph.size(), false), varies(graph.size(), false);
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (IsSummary(node)) continue;  // consumes nothing
    varies[i] =
        node.op->stateful || node.op->name == "Input" || node.op->name == "PlaceholderWithDefault";
    for (const ValueRef& in : node.inputs) {
      consumed[in.node] = true;
      varies[i] = varies[i] || varies[in.node];
    }
    if (node.op->name == "NoOp") continue;  // a group of nodes consumes nothing
    for (int control : node.control_inputs) {
      consumed[control] = true;
      varies[i] = varies[i] || varies[control];
    }
  }
  std::vector<std::string> names, fixed;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (consumed[i] || kNotOutputs.count(node.op->name) != 0 || IsLeftover(node)) continue;
    for (int k = 0; k < node.num_outputs; ++k)
      (varies[i] ? names : fixed).push_back(TensorNameOf(node.name, k));
  }
  // Weights that freezing left behind an Identity are no answer, unless nothing else is.
  return names.empty() ? fixed : names;
}

}  // namespace floe
