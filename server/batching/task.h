// A request that was admitted to a queue, and the interface of what runs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "base/recycled.h"
#include "server/batching/infer_request.h"

namespace floe::server {

struct Bucket;
struct Task;

// Membership in an intrusive list.
struct TaskLinks {
  Task* previous = nullptr;
  Task* next = nullptr;
};

// What became of a request.
enum class Outcome : uint8_t {
  kAnswered,
  kFailed,
  kRefusedFull,
  kRefusedLate,
  kRefusedStopped,
  kExpired,
  kCancelled
};
inline constexpr size_t kOutcomes = 7;

struct Task {
  static void* operator new(size_t) { return BlocksOf<Task>().Take(); }
  static void operator delete(void* memory) { BlocksOf<Task>().Give(memory); }

  std::unique_ptr<InferRequest> request;

  // Filled by BatchRunner::Admit. Tasks may share a run when their keys are equal and their `fixed`
  // tensors are equal byte for byte.
  const void* key = nullptr;  // of something that `plan` or the model keeps alive
  absl::InlinedVector<TensorView, kUsualTensors> fixed;  // inputs without rows
  int64_t rows = 1;                                      // what it adds to a batch
  int64_t max_rows = 0;     // of one run of its kind; 0: the queue's limit
  size_t bytes = 0;         // of all inputs
  bool alone = false;       // never shares a run
  bool splittable = false;  // its rows may be computed by several runs
  bool cheap = false;       // short enough for the thread that brought it
  std::shared_ptr<const Plan> plan;
  const CompiledSignature* form = nullptr;  // kept alive by request->model
  const std::vector<int>* input_of = nullptr;

  // The batcher's. Not 0: shares runs only with requests of this caller.
  uint64_t apart = 0;
  Duration work = Duration::zero();  // expected use of a worker in full batches, of rows not taken
  Duration run = Duration::zero();   // expected, of its own rows or a slice

  // BatchQueue's, valid while `bucket` is set.
  Bucket* bucket = nullptr;
  TimePoint enqueued;
  TimePoint hurried;  // with a deadline: when it waits for no more rows
  uint64_t hash = 0;
  int level = 0;
  int64_t next_row = 0;     // rows before this one have been taken
  int64_t queued_rows = 0;  // what it adds to those that wait
  TaskLinks arrival, peers;
  size_t heap_index = 0;

  // The batcher's again, of a task that has been taken at least in part.
  int running = 0;    // slices in runs
  bool left = false;  // its caller cancelled
  Outcome outcome = Outcome::kAnswered;
  absl::Status failed;           // why there is no answer: of the first slice that failed
  bool told = false;             // `done` was called
  std::vector<Tensor> gathered;  // outputs of a task whose rows several runs compute
};

// Rows [first, first + rows) of a task, all of them unless it is split.
struct Slice {
  Task* task = nullptr;
  int64_t first = 0;
  int64_t rows = 0;

  bool partial() const { return rows != task->rows; }
};

using OutputViews = absl::InlinedVector<TensorView, kUsualTensors>;

// When a run is to be given up between two of its steps.
struct RunLimits {
  TimePoint deadline = TimePoint::max();
  const CancelToken* cancel = nullptr;  // null: none
  const Clock* clock = &Clock::Steady();
};

// Runs batches on one of a fixed number of slots (a slot is what one run occupies: an ExecContext).
// Threading: Admit, Expect, RunRows and Describe from any thread; Run and Outputs by one thread at
// a time per slot.
class BatchRunner {
 public:
  virtual ~BatchRunner() = default;
  virtual int slots() const = 0;
  // Settles what the request runs on, or says why it cannot run (INVALID_ARGUMENT).
  virtual absl::Status Admit(Task* task) = 0;
  // What a run of so many rows of the task's kind takes by what was measured at load; zero: not
  // known.
  virtual Duration Expect(const Task& task, int64_t rows) const {
    (void)task, (void)rows;
    return Duration::zero();
  }
  // How many rows are computed when the task's kind is run with so many.
  virtual int64_t RunRows(const Task& task, int64_t rows) const {
    (void)task;
    return rows;
  }
  // The task's kind, for statistics.
  virtual std::string Describe(const Task& task) const {
    (void)task;
    return "";
  }
  // What the slot's run is doing: "node 'y' (MatMul)"; empty: nothing, or not known. Any thread,
  // while the run's tasks are alive.
  virtual std::string Doing(int slot) const {
    (void)slot;
    return "";
  }
  // Runs all slices at once. Not OK: no outputs; CANCELLED or DEADLINE_EXCEEDED only by the limits.
  virtual absl::Status Run(int slot, absl::Span<const Slice> batch, const RunLimits& limits) = 0;
  // Rows [first_row, first_row + slice.rows) of what the last OK Run(slot) computed. Valid until
  // the slot's next Run.
  virtual void Outputs(int slot, const Slice& slice, int64_t first_row, OutputViews* views) = 0;
  // Gives back memory that the slot keeps for runs like its last ones; it will be idle.
  virtual void Trim(int slot) { (void)slot; }
};

}  // namespace floe::server
