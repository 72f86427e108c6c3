// CompiledSignature: a graph with symbolic shapes, chosen kernels and packed weights, made once per
// model version. Plan: the same bound to non-batch dimensions, with the number of rows left open.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "base/budget.h"
#include "base/mutex.h"
#include "kernels/kernel.h"
#include "model/graph.h"
#include "runtime/kernel_key.h"
#include "runtime/passes/place_on_device.h"
#include "runtime/step.h"
#include "runtime/weight_store.h"

namespace floe {

class CompiledSignature;

// What compilations of one model share: kernels, so that weights are packed once, and signatures
// that compute the same. Threading: one thread at a time.
class KernelCache {
 public:
  std::shared_ptr<const Kernel> Find(const KernelKey& key) const {
    const auto it = entries_.find(key.hash);
    return it == entries_.end() ? nullptr : it->second.kernel;
  }
  // Constants that a key knows by address live as long as the cache.
  void Keep(const KernelKey& key, std::shared_ptr<const Kernel> kernel,
            absl::Span<const ValueInfo> inputs) {
    Entry& entry = entries_[key.hash];
    entry.kernel = std::move(kernel);
    if (key.of_content) return;
    for (const ValueInfo& input : inputs) entry.constants.push_back(input.constant);
  }

  // By a key of the graph and the inputs' types before the passes.
  std::shared_ptr<const CompiledSignature> FindSignature(const std::string& key) const {
    const auto it = signatures_.find(key);
    return it == signatures_.end() ? nullptr : it->second;
  }
  void KeepSignature(const std::string& key, std::shared_ptr<const CompiledSignature> compiled) {
    signatures_[key] = std::move(compiled);
  }

 private:
  struct Entry {
    std::shared_ptr<const Kernel> kernel;
    std::vector<Tensor> constants;
  };
  std::map<absl::uint128, Entry> entries_;
  std::map<std::string, std::shared_ptr<const CompiledSignature>> signatures_;
};

struct CompileOptions {
  KernelOptions kernels;
  std::optional<Placement> islands = {};  // none: all nodes are computed by the host
  size_t max_plans = 64;                  // bound of the plan cache, entries
  // Passes that do not run (runtime/passes/passes.h); tests compare with and without.
  std::vector<std::string> disabled_passes;
  // Of the model, between runs: what estimates of steps go by. Follows from its size.
  bool weights_stay_cached = true;
  bool line_windows = true;  // runtime/line_windows.h; tests compare with and without
  // While a model is compiled, and while a request's shapes are inferred. A run has its context's.
  ResourceLimits limits;
  // Packed weights that others may have too; null: of this model alone.
  std::shared_ptr<WeightStore> weights = nullptr;
};

// The shapes a request binds a plan to: one per signature input. With `rows` the first dim of every
// input that has one is left open; otherwise all dims count, and those of the elements of lists.
struct PlanKey {
  // Inner dims only for inputs with rows. Looking up a plan allocates nothing up to so many inputs.
  absl::InlinedVector<Shape, 8> shapes;
  bool rows = true;
  std::string lists = {};  // empty: of no list's elements anything is known
  bool operator<(const PlanKey& o) const;
};

class Binder;
class Compiler;
class Arena;
class DeviceWeights;
class SlotViews;
class StaticSteps;

// A layer that was offered to libraries of the device.
struct LayerByLibrary {
  std::string node;
  std::string route;    // "cublaslt, algorithm 3"; empty: floe's own kernel computes it
  std::string why_not;  // empty: it does
};

// An island as status shows it.
struct IslandInfo {
  std::string name;  // "island 1", or "loop/body/island 1" of one inside
  int nodes = 0;     // that compute something
  std::vector<LayerByLibrary> by_library = {};
};

// What a compiled signature and all its plans share: the graph after the passes, kernels, packed
// weights.
struct Program {
  Graph graph;
  std::vector<std::shared_ptr<const Kernel>>
      kernels;  // by node; null for inputs, constants, aliases, control flow
  std::vector<std::vector<std::shared_ptr<const CompiledSignature>>> subprograms;  // by node
  bool weights_stay_cached = true;                                                 // CompileOptions
  std::shared_ptr<const DeviceWeights> on_device = nullptr;  // of an island; null: on the host
  std::vector<LayerByLibrary> by_library = {};               // of an island
  // The same island for the host, where it computes what the device fails to; null: nothing does.
  std::shared_ptr<const CompiledSignature> on_host = nullptr;
};

// Floating-point operations of one node for inputs and outputs of these types, estimated: one for
// each element of output 0 where its op has no better rule. All shapes are known, but for rows.
double EstimateFlops(const Node& node, const Types& in, const Types& out, int64_t rows);

// Threading: immutable, shared by all workers. One class: nearly all are getters of one line.
class Plan {
 public:
  // True when a run of several requests' rows gives each the bits it would get alone.
  bool batchable() const { return why_not_batchable_.empty(); }
  const std::string& why_not_batchable() const { return why_not_batchable_; }  // names the node
  bool has_rows() const { return has_rows_; }
  bool has_dynamic_steps() const { return has_dynamic_; }  // shapes that depend on data
  // Types with Dim::Rows() as dim 0 where rows are open.
  const std::vector<TensorType>& input_types() const { return input_types_; }
  const std::vector<TensorType>& output_types() const { return output_types_; }
  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<Slot>& slots() const { return slots_; }
  int64_t ArenaBytes(int64_t rows) const {
    return arena_base_ + arena_per_row_ * rows + RunScratchBytes(rows);
  }
  int64_t ScratchBytes(const Step& step, int64_t rows) const;  // of a step that is not dynamic
  // Where it lies in the arena; none: the step needs none, or is dynamic.
  std::optional<int64_t> ScratchOffset(const Step& step, int64_t rows) const;
  double Flops(int64_t rows) const;
  double StepFlops(const Step& step, int64_t rows) const;  // 0 when only a request tells
  const Graph& graph() const { return program_->graph; }   // what Step::node counts in
  bool weights_stay_cached() const { return program_->weights_stay_cached; }
  int input_slot(int i) const { return input_slots_[i]; }
  int output_slot(int i) const { return output_slots_[i]; }
  // Whether output i is a constant of the plan, which all runs share.
  bool IsConstantOutput(int i) const {
    return slots_[slots_[output_slots_[i]].root].home == Slot::Home::kConstant;
  }

 private:
  friend class Binder;
  friend class Arena;
  friend class SlotViews;
  friend class StaticSteps;
  Plan() = default;
  int64_t RunScratchBytes(int64_t rows) const;  // the most that a step with scratch_by_run needs
  std::vector<Step> steps_;
  std::vector<Slot> slots_;
  std::vector<TensorType> input_types_, output_types_;
  std::vector<int> input_slots_, output_slots_;
  std::vector<std::vector<int>> input_views_;  // by input: slots that show its bytes
  std::vector<std::vector<int>> input_args_;   // by input: arguments that do
  std::vector<int> affine_slots_;              // with Slot::per_row, and a place in the arena
  std::vector<int> run_scratch_steps_;         // with Step::scratch_by_run
  int args_ = 0;
  int64_t arena_base_ = 0, arena_per_row_ = 0;
  std::string why_not_batchable_;
  bool has_rows_ = false, has_dynamic_ = false;
  std::shared_ptr<const Program> program_;  // not the signature, whose cache holds this plan
};

// Threading: immutable but for its plan cache, which locks. Shared by all workers. One class:
// nearly all are getters of one line.
class CompiledSignature {
 public:
  // Passes, kernel choice and weight packing; or the program of a signature in the cache that
  // computes the same. `graph.inputs` are in the order of `signature.inputs`. Errors name the node:
  // UNIMPLEMENTED listing every op without a kernel, INVALID_ARGUMENT for contradictions.
  static absl::StatusOr<std::shared_ptr<const CompiledSignature>> Compile(
      Graph graph, SignatureDef signature, const CompileOptions& options,
      KernelCache* cache = nullptr);

  // The same of a subgraph: what it does for effect is kept, whether or not an output waits for it.
  // Types and constants that do not fit (IsErrorOfRun in runtime/analyze.h) are no error here: a
  // branch that is never taken refuses nothing. refused() is then why it cannot run.
  static absl::StatusOr<std::shared_ptr<const CompiledSignature>> CompileSubgraph(
      const Graph& graph, SignatureDef signature, const CompileOptions& options,
      KernelCache* cache);
  const absl::Status& refused() const { return refused_; }

  const SignatureDef& signature() const { return signature_; }
  // Whether the same runs for both, but for the names of inputs and outputs.
  bool SharesProgram(const CompiledSignature& other) const { return program_ == other.program_; }
  const Graph& graph() const { return program_->graph; }
  size_t weight_bytes() const { return weight_bytes_; }  // constants and packed weights
  const Kernel* kernel(int node) const { return program_->kernels[node].get(); }
  const std::vector<std::shared_ptr<const CompiledSignature>>& subprograms(int node) const {
    return program_->subprograms[node];
  }
  // Of an island whose device is there; else null.
  const std::shared_ptr<const DeviceWeights>& on_device() const { return program_->on_device; }
  const std::vector<LayerByLibrary>& by_library() const { return program_->by_library; }
  // What computes the island when its device fails (OnDeviceError::kCpu); else null.
  const CompiledSignature* on_host() const { return program_->on_host.get(); }

  // A plan for requests of these full input shapes (dim 0 of inputs with rows may differ from call
  // to call and is ignored). Cached, least recently used dropped; but as long as somebody holds a
  // plan, everybody gets that one. INVALID_ARGUMENT names the input, what came and what the model
  // takes.
  absl::StatusOr<std::shared_ptr<const Plan>> Bind(absl::Span<const Shape> input_shapes) const;
  // The same of a subgraph, to which the caller hands lists: for each input null, or what is known
  // of its elements, without rows. A plan with such lists is for these shapes alone.
  absl::StatusOr<std::shared_ptr<const Plan>> BindSubgraph(
      absl::Span<const Shape> input_shapes, absl::Span<const ListTypePtr> lists) const;

  // Whether input i carries request rows in dim 0 (its declared dim 0 is unknown and its rank is
  // not 0).
  bool InputHasRows(int i) const { return input_has_rows_[i]; }

 private:
  friend class Compiler;
  friend class Binder;
  CompiledSignature() = default;
  absl::Status CheckShapes(absl::Span<const Shape> shapes) const;
  std::shared_ptr<const Plan> FindPlan(const PlanKey& key) const;
  std::shared_ptr<const Plan> KeepPlan(const PlanKey& key, std::shared_ptr<const Plan> plan) const;
  absl::StatusOr<std::shared_ptr<const Plan>> BindConcrete(
      absl::Span<const Shape> shapes, absl::string_view why_not_rows,
      absl::Span<const ListTypePtr> lists = {}) const;

  SignatureDef signature_;
  absl::Status refused_;
  std::shared_ptr<Program> program_ = std::make_shared<Program>();
  CompileOptions options_;
  std::vector<bool> input_has_rows_;
  size_t weight_bytes_ = 0;

  mutable Mutex mutex_;
  struct Cached {
    PlanKey key;
    std::shared_ptr<const Plan> plan;
  };
  mutable std::list<Cached> plans_ ABSL_GUARDED_BY(mutex_);  // most recent first
  mutable std::map<PlanKey, std::list<Cached>::iterator> index_ ABSL_GUARDED_BY(mutex_);
  // Plans that somebody held when the cache dropped them.
  mutable std::map<PlanKey, std::weak_ptr<const Plan>> dropped_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace floe
