// The plans of subgraphs: which one a step's subgraph runs, at how many rows.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/plan.h"

namespace floe {

struct NestedPlan {
  std::shared_ptr<const Plan> plan;
  int64_t rows = 1;
};

// The plan of a subgraph for inputs of these shapes. `lists`: by input, as of
// CompiledSignature::BindSubgraph; empty: none is a list. Errors are those of binding.
absl::StatusOr<NestedPlan> BindNested(const CompiledSignature& program,
                                      absl::Span<const Shape> shapes,
                                      absl::Span<const ListTypePtr> lists);

// The slots whose types hold for what the subgraphs of the step are handed: all inputs but a
// predicate, and of a While its variables as they are in every iteration.
absl::Span<const int> HandedSlots(const Plan& plan, const Step& step);
// What is known of the elements of lists in these slots, in a run of so many rows; null: nothing.
std::vector<ListTypePtr> ListsAt(const Plan& plan, absl::Span<const int> slots, int64_t rows);

// The plan of the step's subgraph number `i`, from the step's types alone. NOT_FOUND: only a run
// tells the shapes.
absl::StatusOr<NestedPlan> BindAhead(const Plan& plan, const Step& step, size_t i, int64_t rows);

// What to call subgraph number `i` of a node: "body" of a While, "branch 1".
std::string SubgraphName(const Node& node, size_t i);

}  // namespace floe
