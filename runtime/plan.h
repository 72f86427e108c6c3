// CompiledSignature: a graph with symbolic shapes, chosen kernels and packed weights, made once per model version.
// Plan: the same bound to concrete inner shapes, with the number of rows left open.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "kernels/kernel.h"
#include "model/graph.h"

namespace floe {

struct CompileOptions {
  KernelOptions kernels;
  size_t max_plans = 64;             // bound of the plan cache, entries
  bool fold_constants = true;        // passes; tests compare with and without
  bool fuse = true;
};

// The shapes a request binds a plan to: one per signature input. With `rows` the first dim of every input that has
// one is left open; otherwise all dims count.
struct PlanKey {
  std::vector<Shape> shapes;  // inner dims only for inputs with rows
  bool rows = true;
  bool operator<(const PlanKey& o) const;
};

struct Step;  // runtime/step.h

// Threading: immutable, shared by all workers.
class Plan {
 public:
  ~Plan();
  // True when a run of several requests' rows gives each the bits it would get alone.
  bool batchable() const { return why_not_batchable_.empty(); }
  const std::string& why_not_batchable() const { return why_not_batchable_; }  // names the node
  bool has_rows() const { return has_rows_; }
  // Types with Dim::Rows() as dim 0 where rows are open.
  const std::vector<TensorType>& input_types() const { return input_types_; }
  const std::vector<TensorType>& output_types() const { return output_types_; }
  const std::vector<Step>& steps() const { return steps_; }
  int64_t ArenaBytes(int64_t rows) const { return arena_base_ + arena_per_row_ * rows; }
  double Flops(int64_t rows) const;

 private:
  friend class Binder;
  friend class ExecContext;
  friend class Executor;
  friend struct Frame;
  Plan();
  std::vector<Step> steps_;
  std::vector<TensorType> input_types_, output_types_;
  std::vector<int> input_slots_, output_slots_;
  struct Slot;
  std::vector<Slot> slots_;
  int64_t arena_base_ = 0, arena_per_row_ = 0;
  std::string why_not_batchable_;
  bool has_rows_ = false;
  std::shared_ptr<const class CompiledSignature> signature_;  // keeps kernels and weights
};

// Threading: immutable but for its plan cache, which locks. Shared by all workers.
class CompiledSignature : public std::enable_shared_from_this<CompiledSignature> {
 public:
  // Passes, kernel choice and weight packing. `graph.inputs` are in the order of `signature.inputs`.
  // Errors name the node: UNIMPLEMENTED listing every op without a kernel, INVALID_ARGUMENT for contradictions.
  static absl::StatusOr<std::shared_ptr<const CompiledSignature>> Compile(Graph graph, SignatureDef signature, const CompileOptions& options);
  ~CompiledSignature();

  const SignatureDef& signature() const { return signature_; }
  const Graph& graph() const { return graph_; }
  size_t weight_bytes() const;  // constants and packed weights

  // A plan for requests of these full input shapes (dim 0 of inputs with rows may differ from call to call and is ignored).
  // Cached, least recently used dropped. INVALID_ARGUMENT names the input, what came and what the model takes.
  absl::StatusOr<std::shared_ptr<const Plan>> Bind(absl::Span<const Shape> input_shapes) const;

  // Whether input i carries request rows in dim 0 (its declared dim 0 is unknown and its rank is not 0).
  bool InputHasRows(int i) const { return input_has_rows_[i]; }

 private:
  friend class Compiler;
  friend class Binder;
  CompiledSignature();
  absl::Status CheckShapes(absl::Span<const Shape> shapes) const;

  SignatureDef signature_;
  Graph graph_;
  CompileOptions options_;
  std::vector<bool> input_has_rows_;
  std::vector<std::unique_ptr<Kernel>> kernels_;  // by node index; null for inputs, constants, aliases
  std::vector<Tensor> constants_;                 // by node index; valid for constants
  size_t packed_bytes_ = 0;

  mutable Mutex mutex_;
  struct Cached {
    PlanKey key;
    std::shared_ptr<const Plan> plan;
  };
  mutable std::list<Cached> plans_ ABSL_GUARDED_BY(mutex_);  // most recent first
  mutable std::map<PlanKey, std::list<Cached>::iterator> index_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace floe
