#include "runtime/default_program.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "base/status.h"
#include "model/op_def.h"

namespace floe {
namespace {

// Of what keeps a state between its runs, lists and arrays begin anew in every run.
bool Draws(const OpDef& op) {
  return op.stateful && op.name != "Input" && op.name != "PlaceholderWithDefault" &&
         !absl::StartsWith(op.name, "TensorArray") && !absl::StartsWith(op.name, "TensorList");
}

// `seen`: graphs looked into already, which nodes may share.
bool Draws(const Node& node, std::set<const Graph*>* seen) {
  if (Draws(*node.op)) return true;
  return std::any_of(node.subgraphs.begin(), node.subgraphs.end(), [&](const auto& inner) {
    return seen->insert(inner.get()).second &&
           std::any_of(inner->nodes().begin(), inner->nodes().end(),
                       [&](const Node& of_inner) { return Draws(of_inner, seen); });
  });
}

bool IsAligned(const TensorView& view) {
  const size_t to = view.dtype == DType::kString ? alignof(std::string) : DTypeSize(view.dtype);
  return view.data != nullptr && (to == 0 || reinterpret_cast<uintptr_t>(view.data) % to == 0);
}

}  // namespace

absl::StatusOr<BoundDefault> BindDefault(const DefaultProgram& program,
                                         absl::Span<const TensorView> inputs) {
  absl::InlinedVector<Shape, 8> shapes;
  for (const int i : program.inputs) shapes.push_back(inputs[i].shape);
  BoundDefault bound;
  FLOE_ASSIGN_OR_RETURN(bound.plan, program.compiled->Bind(shapes));
  for (size_t k = 0; k < shapes.size() && bound.plan->has_rows(); ++k) {
    if (!program.compiled->InputHasRows(static_cast<int>(k)) || shapes[k].rank() == 0) continue;
    bound.rows = shapes[k].dim(0);
    break;
  }
  const SymShape& shape = bound.plan->output_types()[0].shape;
  if (shape.known()) bound.shape = shape.At(bound.rows);
  return bound;
}

absl::Status PrepareDefault(const DefaultProgram& program, absl::Span<const TensorView> inputs,
                            ExecContext* context) {
  FLOE_ASSIGN_OR_RETURN(const BoundDefault bound, BindDefault(program, inputs));
  FLOE_RETURN_IF_ERROR(context->Prepare(bound.plan, bound.rows));
  for (size_t k = 0; k < program.inputs.size(); ++k) {
    const TensorView& view = inputs[program.inputs[k]];
    if (IsAligned(view)) {
      context->BindInput(static_cast<int>(k), view.data);
    } else {
      CopyElements(view, context->Input(static_cast<int>(k)).data);
    }
  }
  return absl::OkStatus();
}

Needs NeedsOf(const Graph& graph, absl::Span<const ValueRef> targets,
              const std::set<ValueRef>& fed) {
  Needs needs{std::vector<bool>(graph.size(), false), {}};
  const auto need = [&](const ValueRef& value) {
    if (fed.count(value) != 0) {
      needs.fed.insert(value);
    } else {
      needs.nodes[value.node] = true;
    }
  };
  for (const ValueRef& target : targets) need(target);
  for (int i = graph.size() - 1; i >= 0; --i) {
    if (!needs.nodes[i]) continue;
    for (const ValueRef& in : graph.node(i).inputs) need(in);
    for (const int control : graph.node(i).control_inputs) need({control, 0});
  }
  return needs;
}

bool ShareRandomNumbers(const Graph& graph, absl::Span<const Needs> computations) {
  for (int i = 0; i < graph.size(); ++i) {
    const auto runs = std::count_if(computations.begin(), computations.end(),
                                    [i](const Needs& needs) { return needs.nodes[i]; });
    std::set<const Graph*> seen;
    if (runs > 1 && Draws(graph.node(i), &seen)) return true;
  }
  return false;
}

}  // namespace floe
