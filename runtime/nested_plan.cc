#include "runtime/nested_plan.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/predicate.h"

namespace floe {
namespace {

int64_t RowsOf(const CompiledSignature& program, absl::Span<const Shape> shapes) {
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (program.InputHasRows(static_cast<int>(i)) && shapes[i].rank() > 0) return shapes[i].dim(0);
  }
  return 1;
}

ListTypePtr ListAt(const ListTypePtr& list, int64_t rows) {
  if (list == nullptr || !list->element.rank_known()) return nullptr;
  auto result = std::make_shared<ListType>(*list);
  result->size = Dim::Unknown();  // plans need not differ in it
  for (int i = 0; i < list->element.rank(); ++i) {
    const Dim dim = list->element.dim(i);
    if (dim.has_rows()) result->element.set_dim(i, dim.At(rows));
  }
  return result;
}

}  // namespace

absl::StatusOr<NestedPlan> BindNested(const CompiledSignature& program,
                                      absl::Span<const Shape> shapes,
                                      absl::Span<const ListTypePtr> lists) {
  FLOE_RETURN_IF_ERROR(program.refused());
  FLOE_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, program.BindSubgraph(shapes, lists));
  const int64_t rows = plan->has_rows() ? RowsOf(program, shapes) : 1;
  return NestedPlan{std::move(plan), rows};
}

absl::Span<const int> HandedSlots(const Plan& plan, const Step& step) {
  const Node& node = plan.graph().node(step.node);
  if (node.op->name == "While") return step.outputs;
  const absl::Span<const int> inputs = step.inputs;
  return HasPredicate(node) ? inputs.subspan(1) : inputs;
}

std::vector<ListTypePtr> ListsAt(const Plan& plan, absl::Span<const int> slots, int64_t rows) {
  std::vector<ListTypePtr> lists;
  lists.reserve(slots.size());
  for (const int slot : slots) lists.push_back(ListAt(plan.slots()[slot].type.list, rows));
  return lists;
}

absl::StatusOr<NestedPlan> BindAhead(const Plan& plan, const Step& step, size_t i, int64_t rows) {
  const absl::Span<const int> handed = HandedSlots(plan, step);
  std::vector<Shape> shapes;
  for (const int slot : handed) {
    const SymShape& shape = plan.slots()[slot].type.shape;
    if (!shape.known()) return absl::NotFoundError("only a run tells the shapes");
    shapes.push_back(shape.At(rows));
  }
  return BindNested(*(*step.programs)[i], shapes, ListsAt(plan, handed, rows));
}

std::string SubgraphName(const Node& node, size_t i) {
  if (node.op->name == "While") return i == 0 ? "condition" : "body";
  return absl::StrCat("branch ", i);
}

}  // namespace floe
