// DefaultProgram: computes the default of one optional input of a signature, where the graph tells
// it from other inputs. A request that leaves the input out runs it first, and feeds what it gives.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "absl/types/span.h"
#include "runtime/exec_context.h"
#include "runtime/plan.h"

namespace floe {

// Threading: immutable, any thread.
struct DefaultProgram {
  int input = 0;            // whose default it is, counted as the signature does
  std::vector<int> inputs;  // of each input of `compiled`, the index in the signature's
  std::shared_ptr<const CompiledSignature> compiled;  // output 0 is the default; null: refused
  absl::Status refused;
};

// A program bound to the inputs of a request.
struct BoundDefault {
  std::shared_ptr<const Plan> plan;
  int64_t rows = 1;
  // Of the default; none where only the run tells.
  std::optional<Shape> shape;
};

// `inputs`: one for each of the signature's. Only their types are read. INVALID_ARGUMENT names the
// input that does not fit.
absl::StatusOr<BoundDefault> BindDefault(const DefaultProgram& program,
                                         absl::Span<const TensorView> inputs);

// Makes the context ready to run the program; `inputs` stay as they are until its output has been
// read.
absl::Status PrepareDefault(const DefaultProgram& program, absl::Span<const TensorView> inputs,
                            ExecContext* context);

// What a computation needs of a graph.
struct Needs {
  std::vector<bool> nodes;  // by node: it runs
  std::set<ValueRef> fed;   // what it reads of what is fed
};
Needs NeedsOf(const Graph& graph, absl::Span<const ValueRef> targets,
              const std::set<ValueRef>& fed);

// Whether two of the computations run a node that draws random numbers: run apart, they would not
// get the same ones.
bool ShareRandomNumbers(const Graph& graph, absl::Span<const Needs> computations);

}  // namespace floe
