// Imports and compiles a file, and collects what `inspect` shows.
#include "cli/inspect_report.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "cli/signature_report.h"
#include "model/op_def.h"
#include "runtime/analyze.h"

namespace floe::cli {
namespace {

// The part of a graph that some tensors need, as a graph of its own.
Graph Needed(const Graph& graph, const std::vector<SignatureTensor>& outputs) {
  std::map<std::string, int> index;
  for (int i = 0; i < graph.size(); ++i) index[graph.node(i).name] = i;
  std::vector<bool> needed(graph.size(), false);
  for (const SignatureTensor& output : outputs) {
    const auto name = ParseTensorName(output.tensor_name);
    const auto found = name.ok() ? index.find(name->node) : index.end();
    if (found != index.end()) needed[found->second] = true;
  }
  for (int i = graph.size() - 1; i >= 0; --i) {
    if (!needed[i]) continue;
    for (const ValueRef& input : graph.node(i).inputs) needed[input.node] = true;
  }
  Graph part;
  std::vector<int> moved(graph.size(), -1);
  for (int i = 0; i < graph.size(); ++i) {
    if (!needed[i]) continue;
    Node node = graph.node(i);
    for (ValueRef& input : node.inputs) input.node = moved[input.node];
    node.control_inputs.clear();
    moved[i] = part.Add(std::move(node));
    if (part.node(moved[i]).op->name == "Input") part.inputs.push_back(moved[i]);
  }
  return part;
}

// The op's name; the file's own for ops that have no translation.
std::string OpName(const Node& node) {
  return node.op->name == "Unsupported" ? node.attrs.String("tensorflow_op", "Unsupported")
                                        : node.op->name;
}

void CountNodes(const Graph& graph, InspectReport* report) {
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "Const") {
      ++report->ops[OpName(node)];
      continue;
    }
    const Tensor* const value = node.attrs.Find<Tensor>("value");
    if (value != nullptr && IsFloating(value->dtype())) report->parameters += value->elements();
  }
}

// Of a file, or of all files of a directory; what cannot be looked at counts nothing.
int64_t BytesBelow(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    const auto size = fs::file_size(path, error);
    return error ? 0 : static_cast<int64_t>(size);
  }
  int64_t bytes = 0;
  for (fs::recursive_directory_iterator it(path, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code none;
    const auto size = it->is_regular_file(none) ? it->file_size(none) : 0;
    if (!none) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

std::string Join(const std::vector<ValueInfo>& values) {
  std::string text;
  for (const ValueInfo& value : values)
    absl::StrAppend(&text, text.empty() ? "" : ", ", TypeText(value.type));
  return text;
}

using InputTypes = std::map<std::string, TensorType>;  // by tensor name

// Nodes with their types, where these can be inferred from the inputs' types.
std::vector<InspectedNode> ListNodes(const Graph& graph, const InputTypes& input_types,
                                     const KernelOptions& options) {
  std::vector<ValueInfo> infos;
  for (const int input : graph.inputs) {
    const auto found = input_types.find(graph.node(input).name);
    ValueInfo info;
    if (found != input_types.end()) info.type = found->second;
    infos.push_back(info);
  }
  const std::vector<RowMark> marks(infos.size(), RowMark::kRows);
  // Fails for a graph with ops floe does not know; its nodes are worth listing all the same.
  const auto analysis = Analyze(graph, infos, marks, options);
  std::vector<InspectedNode> nodes;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    nodes.push_back({node.name, OpName(node), analysis.ok() ? Join(analysis->values[i]) : "?"});
  }
  return nodes;
}

// Of the plan for so many rows; one that is made for any number of them need not be made again.
std::optional<int64_t> ArenaBytes(const LocalModel& model, const MadeUpCall& made, int64_t rows,
                                  int64_t unknown_dim) {
  if (made.call.plan->has_rows() || made.made.rows == rows) return made.call.plan->ArenaBytes(rows);
  const auto other = MakeUpCall(*model.signature, {{rows}, unknown_dim});
  if (!other.ok()) return std::nullopt;
  return other->call.plan->ArenaBytes(rows);
}

absl::Status InspectPlan(const LocalModel& model, const InspectOptions& options,
                         InspectReport* report, InputTypes* input_types) {
  for (const SignatureTensor& input : model.def().inputs)
    (*input_types)[input.tensor_name] = input.type;
  MadeUpOptions wanted{{options.plan_rows}, options.unknown_dim};
  if (options.plan_rows == 0) wanted.rows = {1, options.rows, 2, 4, 8, 16, 32, 100, 128};
  FLOE_ASSIGN_OR_RETURN(const MadeUpCall made, MakeUpCall(*model.signature, wanted));
  const BoundCall& call = made.call;
  const Plan& plan = *call.plan;
  const int64_t planned_rows = plan.has_rows() ? 1 : made.made.rows;
  report->weight_bytes = static_cast<int64_t>(call.variant->weight_bytes());
  report->flops_per_row = plan.Flops(planned_rows) / static_cast<double>(planned_rows);
  report->rows = options.rows;
  report->arena_bytes_1 = ArenaBytes(model, made, 1, options.unknown_dim);
  report->arena_bytes_rows = ArenaBytes(model, made, options.rows, options.unknown_dim);
  report->why_not_batchable = plan.why_not_batchable();
  for (size_t i = 0; i < made.made.inputs.size(); ++i) {
    const Tensor& input = made.made.inputs[i];
    if (input.valid())
      report->planned.emplace_back(model.def().inputs[i].key,
                                   TensorType{input.dtype(), SymShape(input.shape())});
  }
  const SignatureDef& def = call.variant->signature();
  for (size_t i = 0; i < def.inputs.size(); ++i)
    (*input_types)[def.inputs[i].tensor_name] = plan.input_types()[i];
  const std::optional<Placement>& islands = options.local.compile.islands;
  KernelOptions inside = options.local.compile.kernels;
  if (islands.has_value()) inside.device = islands->device;
  report->plan =
      DescribePlan(*call.variant, plan, options.plan_rows, islands.has_value() ? &inside : nullptr);
  return absl::OkStatus();
}

}  // namespace

absl::Status Inspect(const std::string& path, const InspectOptions& options,
                     InspectReport* report) {
  report->file = path;
  report->file_bytes = BytesBelow(path);
  ImportOptions import;
  import.fetches = options.local.fetches;
  import.feeds = options.local.feeds;
  import.tags = options.local.tags;
  FLOE_ASSIGN_OR_RETURN(ImportedModel imported, ImportFile(path, import));
  report->format = imported.format;
  report->facts = imported.facts;
  report->signatures = imported.signatures;
  report->left_out = imported.left_out;
  const Graph file_graph = imported.graph;  // shares the weights

  LocalOptions local = options.local;
  local.any_signature = true;
  const auto compiled = CompileLocal(std::move(imported), path, local);
  InputTypes input_types;
  absl::Status status = compiled.status();
  const SignatureDef* def = report->signatures.empty() ? nullptr : &report->signatures.front();
  if (compiled.ok()) {
    report->signatures.clear();
    for (const auto& [name, signature] : compiled->model->signatures())
      report->signatures.push_back(signature.def());
    report->left_out = compiled->model->left_out();
    def = &compiled->def();
    report->signature = def->name;
    status = InspectPlan(*compiled, options, report, &input_types);
  }
  if (def == nullptr) return status;
  const Graph needed = Needed(file_graph, def->outputs);
  CountNodes(needed, report);
  report->nodes = ListNodes(needed, input_types, options.local.compile.kernels);
  return status;
}

}  // namespace floe::cli
