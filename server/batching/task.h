// A request that was admitted to a queue, and the interface of what runs it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "server/batching/infer_request.h"

namespace floe::server {

struct Bucket;
struct Task;

// Membership in an intrusive list.
struct TaskLinks {
  Task* previous = nullptr;
  Task* next = nullptr;
};

struct Task {
  std::unique_ptr<InferRequest> request;

  // Filled by BatchRunner::Admit. Tasks may share a run when their keys are equal and their `fixed`
  // tensors are equal byte for byte.
  const void* key = nullptr;
  absl::InlinedVector<TensorView, 1> fixed;  // inputs without rows
  int64_t rows = 1;                          // what it adds to a batch
  size_t bytes = 0;                          // of all inputs
  bool alone = false;                        // never shares a run
  bool cheap = false;                        // short enough for the thread that brought it
  std::shared_ptr<const Plan> plan;
  const CompiledSignature* form = nullptr;  // kept alive by request->model
  const std::vector<int>* input_of = nullptr;

  // BatchQueue's, valid while `bucket` is set.
  Bucket* bucket = nullptr;
  TimePoint enqueued;
  uint64_t hash = 0;
  TaskLinks arrival, peers;
  size_t heap_index = 0;
};

using OutputViews = absl::InlinedVector<TensorView, 4>;

// Runs batches on one of a fixed number of slots (a slot is what one run occupies: an ExecContext).
// Threading: Admit from any thread; Run and Outputs by one thread at a time per slot.
class BatchRunner {
 public:
  virtual ~BatchRunner() = default;
  virtual int slots() const = 0;
  // Settles what the request runs on, or says why it cannot run (INVALID_ARGUMENT).
  virtual absl::Status Admit(Task* task) = 0;
  // Runs all rows at once. Not OK: no outputs.
  virtual absl::Status Run(int slot, absl::Span<Task* const> batch) = 0;
  // Rows [first_row, first_row + task.rows) of what the last OK Run(slot) computed. Valid until the
  // slot's next Run.
  virtual void Outputs(int slot, const Task& task, int64_t first_row, OutputViews* views) = 0;
  // Gives back memory that the slot keeps for runs like its last ones; it will be idle.
  virtual void Trim(int slot) { (void)slot; }
};

}  // namespace floe::server
