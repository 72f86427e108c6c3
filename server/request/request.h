// Request: one inference on its way from its message to its answer.
#pragma once

#include <algorithm>
#include <boost/intrusive/list_hook.hpp>
#include <boost/intrusive/set_hook.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "runtime/model.h"

namespace floe::server {

// Models with no more inputs than this, and no more outputs, need no memory for lists of them.
inline constexpr size_t kUsualTensors = 8;
using TensorViews = absl::InlinedVector<TensorView, kUsualTensors>;
// In the order of the signature; valid during the call they are passed to.
using Outputs = absl::Span<const TensorView>;

// Priorities: 1 is served first, kPriorities last. A step is worth kPriorityAging of waiting: a
// request goes before those one step more urgent that came that much later, so that none starves.
inline constexpr int kPriorities = 3;
inline constexpr int kDefaultPriority = 2;
inline constexpr Duration kPriorityAging = std::chrono::milliseconds(200);

// Inputs whose values are not there yet: a few bytes of a message may stand for many of them. Who
// runs the request has them decoded. Threading: any thread.
class PendingInputs {
 public:
  // `decode` gives the request's inputs their data. It may throw what CatchOutOfMemory catches.
  explicit PendingInputs(std::function<absl::Status()> decode) : decode_(std::move(decode)) {}

  // Returns when they are there. RESOURCE_EXHAUSTED when their memory is not to be had.
  absl::Status Decode();

 private:
  Mutex mutex_;
  std::function<absl::Status()> decode_ ABSL_GUARDED_BY(mutex_);  // null once it was called
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

// Where a request's time went.
struct Timings {
  Duration queue = Duration::zero();  // until its run began
  Duration run = Duration::zero();
  int64_t batch_rows = 0;  // of the run; 0: it never ran
};

// What a request runs on. Requests may share a run when their keys are equal and the inputs named
// in `fixed` are equal byte for byte.
struct Binding {
  std::shared_ptr<const Plan> plan;
  const CompiledSignature* variant = nullptr;  // kept alive by the request's model
  const std::vector<int>* input_of = nullptr;  // input i of the plan is this input of the request
  const void* key = nullptr;                   // of something that `plan` or the model keeps alive
  absl::InlinedVector<int, kUsualTensors> fixed;  // inputs of the request without a batch dimension
  int64_t rows = 1;                               // what it adds to a batch
  int64_t max_rows = 0;                           // of one run of its kind; 0: the queue's limit
  size_t bytes = 0;                               // of all inputs
  int64_t output_bytes = 0;                       // where it is splittable
  bool unbatchable = false;                       // never shares a run
  bool splittable = false;                        // its rows may be computed by several runs
  bool quick = false;                             // short enough for the thread that brought it
  double batch_gain = 1;  // times the rows a second that the best batch brings
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

struct Bucket;

struct Request {
  // What is asked, by a codec.
  ModelHandle model;                     // keeps `signature` and the plans alive
  const Signature* signature = nullptr;  // of `model`
  // One per signature input, in its order; dtype kInvalid: not fed. Dtypes are right, bytes match
  // the shapes; the shapes have not been compared with the model's. Data may be unaligned, and null
  // until `pending` has decoded it.
  TensorViews inputs;
  std::unique_ptr<PendingInputs> pending;  // null: all are there
  std::shared_ptr<const void> owner;       // keeps the inputs' bytes alive
  // The memory it takes while the request waits; not known: 0, and the inputs' sizes are counted.
  size_t owner_bytes = 0;
  TimePoint deadline = TimePoint::max();
  // Of its call, from when on the model's default timeout counts; max(): as it is submitted.
  TimePoint arrived = TimePoint::max();
  std::shared_ptr<CancelToken> cancel;  // may be null
  int priority = kDefaultPriority;      // larger and smaller values count as the nearest
  uint64_t principal = 0;               // tells callers apart; 0: not known
  // Called exactly once: on a worker's thread, on one that ends or sends what did not run, inside
  // Submit, or inside the scheduler's Stop. Only where it throws what CatchOutOfMemory catches, as
  // the memory of a large reply may, is it called once more, with that as the status.
  std::function<void(const absl::StatusOr<Outputs>&, const Timings&)> complete;
  // Called once after `complete`, there or on another thread: what takes time and needs no outputs,
  // as sending does, so that the next batch need not wait for it. May be null.
  std::function<void()> send;

  Binding binding;  // by Executor::Bind

  // The scheduler's. Queued while `bucket` is set.
  Bucket* bucket = nullptr;
  boost::intrusive::list_member_hook<> arrival_hook, bucket_hook;
  boost::intrusive::set_member_hook<> deadline_hook;
  TimePoint enqueued;
  TimePoint flush_at;  // with a deadline: when it waits for no more rows
  uint64_t hash = 0;
  int64_t held_rows = 0;    // not 0: it is computed in parts, and counts so much until its end
  int64_t queued_rows = 0;  // as the queue's bound counts them
  uint64_t quarantine = 0;  // not 0: shares runs only with requests of this principal
  Duration work = Duration::zero();  // expected use of a worker, in full batches
  Duration run = Duration::zero();   // expected, of a run of its own
  Request* whole = nullptr;          // the large request of which this is a part (Join)
  bool cancelled = false;            // its caller left after it was queued
  bool reported = false;             // `complete` was called
  Outcome outcome = Outcome::kAnswered;
  absl::Status status;  // why there is no answer
  Timings timings;

  int level() const { return std::min(std::max(priority, 1), kPriorities) - 1; }
};

// A request for rows [first, first + rows) of one that is bound, and that outlives it. Who asks for
// it adds what is to happen to its answer.
std::unique_ptr<Request> PartOf(Request* whole, int64_t first, int64_t rows);

// A view of rows [first, first + rows) of a tensor whose dim 0 counts rows. Data may be null.
TensorView RowsOf(const TensorView& whole, int64_t first, int64_t rows);

}  // namespace floe::server
