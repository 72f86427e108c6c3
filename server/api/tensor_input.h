// A sent tensor -> a TensorView that can be fed.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "model/tensor.h"
#include "server/api/predict_request.h"

namespace floe::server {

// Memory for values that do not lie in the message as they are needed. Bounded, because a few bytes
// may stand for many (a short list repeats its last value). Threading: one thread at a time.
class InputStorage {
 public:
  explicit InputStorage(int64_t max_bytes) : max_(max_bytes), left_(max_bytes) {}

  // Uninitialised. RESOURCE_EXHAUSTED when the requests's bound is passed.
  absl::StatusOr<void*> Allocate(int64_t bytes);
  // Empty strings.
  absl::StatusOr<std::string*> AllocateStrings(int64_t count);
  // Counts bytes that are held elsewhere.
  absl::Status Charge(int64_t bytes);
  int64_t used() const { return max_ - left_; }

 private:
  const int64_t max_;
  int64_t left_;
  std::vector<std::unique_ptr<std::byte[]>> buffers_;
  std::vector<std::unique_ptr<std::string[]>> strings_;
};

// The tensor's dtype, or INVALID_ARGUMENT naming input and number.
absl::StatusOr<DType> SentDtype(std::string_view key, const SentTensor& sent);

// The view points into the message, or into `storage` where values had to be decoded or repeated;
// it may be unaligned. No values at all mean zeros, as in TensorFlow. INVALID_ARGUMENT, naming the
// input and what was expected, for: a shape of unknown rank, negative or too large; tensor_content
// of another size than the shape's; more values than elements; values in another list than the
// dtype's, or in several places.
absl::StatusOr<TensorView> ReadTensor(std::string_view key, const SentTensor& sent,
                                      InputStorage* storage);

}  // namespace floe::server
