// KServe v2's ModelInferRequest -> Inference, without protobuf's classes.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "model/shape.h"
#include "server/request/inference.h"
#include "server/request/value_list.h"

namespace floe::server {

// What a request says beside its tensors. Views point into the message.
struct InferWishes {
  std::string_view id;
  bool typed = false;  // its values were in `contents`, so that the reply's are
  std::optional<int> priority;
  std::chrono::microseconds timeout{0};  // 0: none
};

// Fills `*asked` from the message, into which inputs may be views: who calls keeps it alive.
// raw_input_contents are never copied, nor are fp32_contents and fp64_contents. Errors beside those
// of `find`, ChooseSignature, ChooseOutputs and PlaceInputs: INVALID_ARGUMENT names the input and
// what was expected. RESOURCE_EXHAUSTED for values that would take too much.
absl::Status DecodeInfer(std::string_view message, FindModel find, Inference* asked,
                         InferWishes* wishes);

inline constexpr int kMostInferDims = 254;  // as TensorFlow

// The parts of a message, as views into it.
struct InferFields {
  struct Input {
    std::string_view name, datatype;
    Shape shape;
    bool shape_too_long = false;
    bool shared_memory = false;  // its values lie elsewhere
    ValueList contents;
  };
  std::string_view model, version;
  std::string_view signature;  // parameter signature_name
  absl::InlinedVector<Input, kUsualTensors> inputs;
  absl::InlinedVector<std::string_view, kUsualTensors> outputs;
  absl::InlinedVector<std::string_view, kUsualTensors> raw;
};

// DecodeInfer's first step. Names need not be UTF-8. INVALID_ARGUMENT: the bytes are no
// ModelInferRequest, name more inputs and outputs than any model has, or have parameters that are
// not understood.
absl::Status ReadInferFields(std::string_view message, InferFields* fields, InferWishes* wishes);

// "": the newest. INVALID_ARGUMENT: it is no number.
absl::StatusOr<std::optional<int64_t>> KServeVersion(std::string_view version);

}  // namespace floe::server
