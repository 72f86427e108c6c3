// tensorflow.TensorProto -> a TensorView that can be fed: found in the message, checked, decoded.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "base/memory_budget.h"
#include "model/shape.h"
#include "model/tensor.h"
#include "server/request/tensor_fields.h"

namespace floe::server {

// A tensor as sent, nothing compared with a model yet. Views point into the message.
struct ParsedTensor {
  int dtype = 0;  // TensorFlow's number, unchecked
  Shape shape;    // dims may be negative or too large
  bool unknown_rank = false;
  std::string_view content;               // tensor_content
  TensorField list = TensorField::kNone;  // the list with values; kNone when there is none
  bool several_lists = false;             // values in more than one list
  int64_t values = 0;                     // in the list; a complex number is two
  int64_t value_bytes = 0;                // of them on the wire
  std::string_view last;                  // of a list of strings
  std::string_view packed;                // the list's values, where they lie in one piece
  // The TensorProto, which may come in pieces; values that do, too, are read there.
  absl::InlinedVector<std::string_view, 1> messages;
};

// False for bytes that are no TensorProto. A tensor read twice is merged, as by protobuf.
bool ParseTensor(std::string_view message, ParsedTensor* tensor);

// The request's inputs take more memory than one message may (--grpc_max_message_bytes).
absl::Status TooMuchUnfolded();

// Memory for values that do not lie in the message as they are needed. Bounded, because a few bytes
// may stand for many (a short list repeats its last value). Threading: one thread at a time.
class InputStorage {
 public:
  // `memory` pays for large values; null: nobody does.
  explicit InputStorage(int64_t max_bytes, const MemoryBudget* memory = nullptr)
      : max_(max_bytes), left_(max_bytes), memory_(memory) {}

  // Before memory is allocated. RESOURCE_EXHAUSTED when the request's bound is passed.
  absl::Status Charge(int64_t bytes);
  // Before that, too: takes it from `memory`, whose refusal names the numbers.
  absl::Status Pay(int64_t bytes);
  // Uninitialised. What is not to be had is thrown (CatchOutOfMemory).
  void* Allocate(int64_t bytes);
  std::string* AllocateStrings(int64_t count);  // empty ones
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
absl::StatusOr<DType> DTypeOf(std::string_view key, const ParsedTensor& tensor);

// A tensor that is right, though its values may have to be decoded yet.
struct CheckedTensor {
  TensorView view;       // data: in the message, or null where DecodeTensor has to provide it
  int64_t bytes = 0;     // that decoding takes beside the message
  bool repeats = false;  // few values, or none, stand for all: filling, not decoding
};

// Allocates nothing, however large a shape was sent. INVALID_ARGUMENT, naming the input and what
// was expected, for: a shape of unknown rank, negative or too large; tensor_content of another size
// than the shape's; more values than elements; values in another list than the dtype's, or in
// several places.
absl::StatusOr<CheckedTensor> CheckTensor(std::string_view key, const ParsedTensor& tensor);

// Gives the view of a checked tensor its data, in `storage`, where it has none; no values at all
// mean zeros, as in TensorFlow. Its bytes are charged, and paid for here. The data may be
// unaligned.
absl::Status DecodeTensor(const ParsedTensor& tensor, InputStorage* storage, TensorView* view);

}  // namespace floe::server
