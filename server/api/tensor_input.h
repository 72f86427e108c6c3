// A sent tensor -> a TensorView that can be fed.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/memory_budget.h"
#include "model/tensor.h"
#include "server/api/predict_request.h"

namespace floe::server {

// Memory for values that do not lie in the message as they are needed. Bounded, because a few bytes
// may stand for many (a short list repeats its last value). Threading: one thread at a time.
class InputStorage {
 public:
  // `memory` pays for large values; null: nobody does.
  explicit InputStorage(int64_t max_bytes, const MemoryBudget* memory = nullptr)
      : max_(max_bytes), left_(max_bytes), memory_(memory) {}

  // Before memory is allocated. RESOURCE_EXHAUSTED when the request's bound is passed.
  absl::Status Charge(int64_t bytes);
  // Uninitialised. What is not to be had is thrown (CatchOutOfMemory).
  void* Allocate(int64_t bytes);
  std::string* AllocateStrings(int64_t count);  // empty ones
  // Bytes that are held elsewhere, or will be. Throws std::bad_alloc where `memory` has them not.
  void Pay(int64_t bytes);
  int64_t charged() const { return max_ - left_; }

 private:
  const int64_t max_;
  int64_t left_;
  const MemoryBudget* const memory_;
  MemoryShare paid_;
  std::vector<std::unique_ptr<std::byte[]>> buffers_;
  std::vector<std::unique_ptr<std::string[]>> strings_;
};

// The tensor's dtype, or INVALID_ARGUMENT naming input and number.
absl::StatusOr<DType> SentDtype(std::string_view key, const SentTensor& sent);

// A sent tensor that is right, though its values may have to be decoded yet.
struct CheckedTensor {
  TensorView view;       // data: in the message, or null where DecodeTensor has to provide it
  int64_t bytes = 0;     // that decoding takes beside the message
  bool repeats = false;  // few values, or none, stand for all: filling, not decoding
};

// Allocates nothing, however large a shape was sent. INVALID_ARGUMENT, naming the input and what
// was expected, for: a shape of unknown rank, negative or too large; tensor_content of another size
// than the shape's; more values than elements; values in another list than the dtype's, or in
// several places.
absl::StatusOr<CheckedTensor> CheckTensor(std::string_view key, const SentTensor& sent);

// Gives the view of a checked tensor its data, in `storage`, where it has none; no values at all
// mean zeros, as in TensorFlow. Its bytes are charged. The data may be unaligned.
void DecodeTensor(const SentTensor& sent, InputStorage* storage, TensorView* view);

// Both at once.
absl::StatusOr<TensorView> ReadTensor(std::string_view key, const SentTensor& sent,
                                      InputStorage* storage);

}  // namespace floe::server
