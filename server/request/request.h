// Request: one inference on its way from its message to its answer.
#pragma once

#include <algorithm>
#include <boost/intrusive/list_hook.hpp>
#include <boost/intrusive/set_hook.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/memory_budget.h"
#include "base/mutex.h"
#include "runtime/model.h"
#include "server/request/tuning.h"

namespace floe::server {

// Models with no more inputs than this, and no more outputs, need no memory for lists of them.
inline constexpr size_t kUsualTensors = 8;
using TensorViews = absl::InlinedVector<TensorView, kUsualTensors>;
using TensorIndices = absl::InlinedVector<int, kUsualTensors>;
// In the order of the signature; valid during the call they are passed to.
using Outputs = absl::Span<const TensorView>;

// Priorities: 1 is served first, kPriorities last. A step is worth tuning::kPriorityAging of
// waiting, so that no request starves.
inline constexpr int kPriorities = 3;
inline constexpr int kDefaultPriority = 2;

// The model that a message names. Neither version nor label: the newest version.
struct ModelSpec {
  std::string_view name;
  std::optional<int64_t> version;
  std::string_view label;
};
using FindModel = absl::FunctionRef<absl::StatusOr<ModelHandle>(const ModelSpec&)>;

// Memory for values that do not lie in the message as they are needed. Bounded, because a few bytes
// may stand for many (a short list repeats its last value). Threading: one thread at a time.
class InputStorage {
 public:
  // `memory` pays for large values and outlives this; null: nobody does.
  explicit InputStorage(int64_t max_bytes = INT64_MAX, const MemoryBudget* memory = nullptr)
      : left_(max_bytes), memory_(memory) {}

  // Before memory is allocated. RESOURCE_EXHAUSTED when the request's bound is passed.
  absl::Status Charge(int64_t bytes);
  // Before that, too: takes it from `memory`, whose refusal names the numbers.
  absl::Status Pay(int64_t bytes);
  // Uninitialised. What is not to be had is thrown (CatchOutOfMemory).
  void* Allocate(int64_t bytes);
  std::string* AllocateStrings(int64_t count);  // empty ones

 private:
  int64_t left_;
  const MemoryBudget* memory_;
  MemoryShare paid_;
  std::vector<std::unique_ptr<std::byte[]>> buffers_;
  std::vector<std::unique_ptr<std::string[]>> strings_;
};

// A request's inputs take more memory than one message may (--grpc_max_message_bytes).
absl::Status TooMuchUnfolded();

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
  int64_t batch_rows = 0;   // of the run; 0: it never ran
  bool more_waits = false;  // for the thread that answers: what takes time is better done elsewhere
};

// What a request runs on. Requests may share a run when their keys are equal and the inputs named
// in `fixed` are equal byte for byte.
struct Binding {
  std::shared_ptr<const Plan> plan;
  const CompiledSignature* variant = nullptr;  // kept alive by the request's model
  const std::vector<int>* input_of = nullptr;  // input i of the plan is this input of the request
  const void* key = nullptr;                   // of something that `plan` or the model keeps alive
  TensorIndices fixed;                         // inputs of the request without a batch dimension
  int64_t rows = 1;                            // its batch dimension
  int64_t max_rows = 0;                        // of one run with its key; 0: the queue's limit
  size_t bytes = 0;                            // of all inputs
  int64_t output_bytes = 0;                    // where it is splittable
  bool unbatchable = false;                    // never shares a run
  bool splittable = false;                     // its rows may be computed by several runs
  bool quick = false;                          // short enough for the thread that brought it
  bool estimated = false;  // its shapes are those that the estimate at load is of
  double batch_gain = 1;   // times the rows a second that the best batch brings
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
  // One per signature input, in its order; dtype kInvalid: not fed. Names, dtypes and shapes are
  // the signature's. Data may be unaligned, and null until `pending` has decoded it.
  TensorViews inputs;
  TensorIndices outputs;                   // that are asked for, in the order of the reply
  std::unique_ptr<PendingInputs> pending;  // null: all are there
  InputStorage storage;                    // of inputs that were decoded

  // Who asks, by the call.
  std::shared_ptr<const void> owner;  // keeps the message alive, and who is answered
  TimePoint deadline = TimePoint::max();
  // Of its call, from when on the model's default timeout counts; max(): as it is submitted.
  TimePoint arrived = TimePoint::max();
  std::shared_ptr<CancelToken> cancel;  // may be null
  int priority = kDefaultPriority;      // larger and smaller values count as the nearest
  uint64_t principal = 0;               // the same for one caller's requests; 0: not known
  // Called exactly once, without a lock held: on a worker's thread, on that which ends what did not
  // run, inside Submit, or inside the scheduler's Stop. Only where it throws what CatchOutOfMemory
  // catches, as the memory of a large reply may, is it called once more, with that as the status.
  std::function<void(const absl::StatusOr<Outputs>&, const Timings&)> complete;

  size_t held_bytes = 0;  // while it waits: message and decoded inputs; 0: the inputs' sizes count
  Binding binding;        // by Executor::Bind

  // The scheduler's. Queued while `bucket` is set.
  Bucket* bucket = nullptr;
  boost::intrusive::list_member_hook<> arrival_hook, bucket_hook;
  boost::intrusive::set_member_hook<> deadline_hook;
  TimePoint enqueued;
  TimePoint flush_at;  // with a deadline: when it waits for no more rows
  uint64_t hash = 0;
  int64_t queued_rows = 0;           // as the queue's bound counts them
  uint64_t quarantine = 0;           // not 0: shares runs only with requests of this principal
  Duration work = Duration::zero();  // expected use of a worker, in full batches
  Duration run = Duration::zero();   // expected, of a run of its own
  Request* whole = nullptr;          // the large request of which this is a part (Join)
  bool awaits_turn = false;          // a large request none of whose parts was queued yet
  bool cancelled = false;            // its caller left after it was queued
  Outcome outcome = Outcome::kAnswered;
  absl::Status status;  // why there is no answer
  Timings timings;

  int level() const { return std::min(std::max(priority, 1), kPriorities) - 1; }
};

// For codecs, in this order. Errors name the model, the signature and what they have.
//
// Finds the signature; "" is the default one. FAILED_PRECONDITION: there is no such.
absl::Status ChooseSignature(ModelHandle model, std::string_view name, Request* request);
// The outputs of these names, or all. INVALID_ARGUMENT: unknown or named twice.
absl::Status ChooseOutputs(absl::Span<const std::string_view> names, Request* request);
// Makes room for the inputs, and says for each of the signature's which of `keys` it is; -1: it was
// not sent. Of equal keys the last one counts. INVALID_ARGUMENT: some are unknown or missing.
absl::Status PlaceInputs(absl::Span<const std::string_view> keys, Request* request,
                         TensorIndices* sent);
std::string ModelAndSignature(const Request& request);  // "model 'm' version 1, signature 's'"

// A request for rows [first, first + rows) of one that is bound, and that outlives it. Who asks for
// it adds what is to happen to its answer.
std::unique_ptr<Request> PartOf(Request* whole, int64_t first, int64_t rows);

// A view of rows [first, first + rows) of a tensor whose dim 0 is the batch dimension. Data may be
// null.
TensorView RowsOf(const TensorView& whole, int64_t first, int64_t rows);

}  // namespace floe::server
