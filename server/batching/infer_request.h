// One caller's inference on its way through a model's queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/recycled.h"
#include "runtime/model.h"

namespace floe::server {

// Models with no more inputs than this, and no more outputs, are served without allocating.
inline constexpr size_t kUsualTensors = 8;

// Priorities: 1 is served first, kPriorities last. A step is worth kPriorityAgeing of waiting: a
// request goes before those one step more urgent that came that much later, so that none starves.
inline constexpr int kPriorities = 9;
inline constexpr int kDefaultPriority = 5;
inline constexpr Duration kPriorityAgeing = std::chrono::milliseconds(200);

// Inputs whose values are not there yet: a few bytes of a message may stand for many of them. Who
// runs the request has them decoded. Threading: any thread.
class PendingInputs {
 public:
  // `decode` gives the request's inputs their data. It may throw what CatchOutOfMemory catches.
  explicit PendingInputs(std::function<void()> decode) : decode_(std::move(decode)) {}

  // Returns when they are there. RESOURCE_EXHAUSTED when their memory is not to be had.
  absl::Status Decode();

 private:
  Mutex mutex_;
  std::function<void()> decode_ ABSL_GUARDED_BY(mutex_);  // null once it was called
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

struct InferRequest {
  static void* operator new(size_t) { return BlocksOf<InferRequest>().Take(); }
  static void operator delete(void* memory) { BlocksOf<InferRequest>().Give(memory); }

  ModelHandle model;                     // keeps `signature` and the plans alive
  const Signature* signature = nullptr;  // of `model`
  // One per signature input, in its order; dtype kInvalid: not fed. Dtypes are right, bytes match
  // the shapes; the shapes have not been compared with the model's. Data may be unaligned, and null
  // until `pending` has decoded it.
  absl::InlinedVector<TensorView, kUsualTensors> inputs;
  std::unique_ptr<PendingInputs> pending;  // null: all are there
  std::shared_ptr<const void> owner;       // keeps the inputs' bytes alive
  // The memory it takes while the request waits; not known: 0, and the inputs' sizes are counted.
  size_t owner_bytes = 0;
  TimePoint deadline = TimePoint::max();
  std::shared_ptr<CancelToken> cancel;  // may be null
  int priority = kDefaultPriority;      // larger and smaller values count as the nearest
  uint64_t caller = 0;                  // tells callers apart; 0: not known

  // Called exactly once: on a worker thread, on the queue's timer thread where the request is late
  // or cancelled, inside Submit, or inside the queue's Stop. The outputs (this caller's rows alone,
  // in the order of the signature) are valid only during the call and empty unless the status is
  // OK. Only where it throws what CatchOutOfMemory catches, as the memory of a large reply may, is
  // it called once more, with that as the status.
  std::function<void(const absl::Status&, absl::Span<const TensorView> outputs)> done;
  // Called once after `done`, there or on another thread: what takes time and needs no outputs, as
  // sending does, so that the next batch need not wait for it. May be null.
  std::function<void()> send;
};

}  // namespace floe::server
