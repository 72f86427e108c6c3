// Inference: what one request asks of a model, as a codec reads it from a message.
#pragma once

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
#include "base/memory_budget.h"
#include "base/mutex.h"
#include "runtime/model.h"
#include "server/request/door.h"

namespace floe::server {

// Models with no more inputs than this, and no more outputs, need no memory for lists of them.
inline constexpr size_t kUsualTensors = 8;
using TensorViews = absl::InlinedVector<TensorView, kUsualTensors>;
using TensorIndices = absl::InlinedVector<int, kUsualTensors>;
// In the order of the signature; valid during the call they are passed to.
using Outputs = absl::Span<const TensorView>;

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
  // Keeps what was charged, paid for and allocated elsewhere.
  void Keep(std::unique_ptr<std::byte[]> buffer) { buffers_.push_back(std::move(buffer)); }
  void Keep(std::unique_ptr<std::string[]> strings) { strings_.push_back(std::move(strings)); }

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
  // `decode` gives the inputs of its Inference their data. It may throw what CatchOutOfMemory
  // catches.
  explicit PendingInputs(std::function<absl::Status()> decode) : decode_(std::move(decode)) {}

  // Returns when they are there. RESOURCE_EXHAUSTED when their memory is not to be had.
  absl::Status Decode();

 private:
  Mutex mutex_;
  std::function<absl::Status()> decode_ ABSL_GUARDED_BY(mutex_);  // null once it was called
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

// A codec fills it, for the call that keeps it. Whoever runs it has a const one, in which nothing
// changes but the data of pending inputs. It stays where it is: `pending` knows its address.
struct Inference {
  Door door = Door::kPredict;            // by which it came
  ModelHandle model;                     // keeps `signature` and the plans alive
  const Signature* signature = nullptr;  // of `model`
  // One per signature input, in its order; dtype kInvalid: not fed. Names, dtypes and shapes are
  // the signature's. Data may be unaligned, and null until `pending` has decoded it.
  TensorViews inputs;
  TensorIndices outputs;                   // that are asked for, in the order of the reply
  std::unique_ptr<PendingInputs> pending;  // null: all are there
  InputStorage storage;                    // of inputs that were decoded
  size_t held_bytes = 0;  // while it waits: message and decoded inputs; 0: the inputs' sizes count

  // Input i as a run takes it: what was fed, or else its default.
  const TensorView& Input(int i) const {
    const TensorView& fed = inputs[static_cast<size_t>(i)];
    return fed.dtype == DType::kInvalid ? signature->DefaultOf(i) : fed;
  }
};

// For codecs, in this order. Errors name the model, the signature and what they have.
//
// Finds the signature; "" is the default one. FAILED_PRECONDITION: there is no such.
absl::Status ChooseSignature(ModelHandle model, std::string_view name, Inference* asked);
// The outputs of these names, or all. INVALID_ARGUMENT: unknown or named twice.
absl::Status ChooseOutputs(absl::Span<const std::string_view> names, Inference* asked);
// Makes room for the inputs, and says for each of the signature's which of `keys` it is; -1: it was
// not sent. Of equal keys the last one counts. INVALID_ARGUMENT: some are unknown or missing.
absl::Status PlaceInputs(absl::Span<const std::string_view> keys, Inference* asked,
                         TensorIndices* sent);
std::string ModelAndSignature(const Inference& asked);  // "model 'm' version 1, signature 's'"

// A view of rows [first, first + rows) of a tensor whose dim 0 is the batch dimension. Data may be
// null.
TensorView RowsOf(const TensorView& whole, int64_t first, int64_t rows);

}  // namespace floe::server
