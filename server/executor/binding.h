// Binding: what an executor knows of an inference before it runs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/plan.h"
#include "server/request/inference.h"

namespace floe::server {

// What an inference runs on. Inferences may share a run when their keys are equal and the inputs
// named in `fixed` are equal byte for byte.
struct Binding {
  std::shared_ptr<const Plan> plan;
  const CompiledSignature* variant = nullptr;  // kept alive by the inference's model
  const std::vector<int>* input_of = nullptr;  // input i of the plan is this input of the inference
  const void* key = nullptr;                   // of something that `plan` or the model keeps alive
  TensorIndices fixed;                         // inputs of the inference without a batch dimension
  int64_t rows = 1;                            // its batch dimension
  int64_t max_rows = 0;                        // of one run with its key; 0: the queue's limit
  size_t bytes = 0;                            // of all inputs
  int64_t output_bytes = 0;                    // where it is splittable
  bool unbatchable = false;                    // never shares a run
  bool splittable = false;                     // its rows may be computed by several runs
  bool part = false;                           // of a larger one, by TakePart
  bool quick = false;                          // short enough for the thread that brought it
  bool estimated = false;  // its shapes are those that the estimate at load is of
  double batch_gain = 1;   // times the rows a second that the best batch brings
};

// An inference that can run.
struct Bound {
  const Inference* asked = nullptr;  // outlives this
  Binding binding;                   // what Executor::Bind said of it
};

// Makes of rows [first, first + rows) of one that is splittable, and that outlives it, an inference
// of their own. `*asked` is empty, and stays where it is.
void TakePart(const Bound& whole, int64_t first, int64_t rows, Inference* asked, Binding* binding);

}  // namespace floe::server
