// InputReader: what the codecs have in common when they turn the tensors of a message into inputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "model/shape.h"
#include "model/tensor.h"
#include "server/request/inference.h"
#include "server/request/value_list.h"

namespace floe::server {

inline constexpr size_t kMaxNames = 4096;  // of inputs and outputs in a request

// A tensor that is right, though its values may have to be decoded yet.
struct CheckedTensor {
  TensorView view;       // data: in the message, or null where it must be decoded
  int64_t bytes = 0;     // that decoding takes beside the message
  bool repeats = false;  // few values, or none, stand for all: filling, not decoding
};

// INVALID_ARGUMENT: "input 'x': " and that.
absl::Status BadInput(std::string_view key, const std::string& what);
// The elements of a shape. INVALID_ARGUMENT where it is negative or too large, also in bytes.
absl::StatusOr<int64_t> ElementsOf(std::string_view key, DType dtype, const Shape& shape);
// INVALID_ARGUMENT: bytes of bools, from that field, that are not 0 or 1. Other dtypes are fine.
absl::Status CheckBools(std::string_view key, const char* field, DType dtype,
                        std::string_view bytes);

// Fills the inputs of an inference, which has its signature and room for them. Inputs that are
// large to decode, or stand for much more than was sent, are left to the worker that runs it.
class InputReader {
 public:
  explicit InputReader(Inference* asked) : asked_(*asked) {}

  // INVALID_ARGUMENT: input `index` of the signature takes another dtype; `name` says how the
  // caller's protocol calls dtypes.
  absl::Status CheckDType(std::string_view key, size_t index, DType sent,
                          const char* (*name)(DType)) const;
  // The tensor as input `index`. INVALID_ARGUMENT: the signature takes another shape.
  // RESOURCE_EXHAUSTED: its values would take too much.
  absl::Status Take(size_t index, const CheckedTensor& checked, ValueList&& values);
  // Once all are taken.
  absl::Status Decode();

 private:
  // An input whose values do not lie in the message as they are needed.
  struct Encoded {
    ValueList values;
    size_t index;
  };
  static absl::Status DecodeAll(absl::Span<const Encoded> inputs, Inference* asked);

  Inference& asked_;
  std::vector<Encoded> now_, later_;
};

}  // namespace floe::server
