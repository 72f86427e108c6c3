// KServe v2's infer in JSON, with binary tensors behind it: a body to an Inference, outputs to a
// reply.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "server/api/infer_call.h"

namespace floe::server {

// What a body says beside its tensors.
struct InferJsonForm {
  std::string id;
  std::optional<int> priority;
  std::chrono::microseconds timeout{0};  // 0: none
  absl::InlinedVector<bool, kUsualTensors>
      binary;  // of the outputs in their order: behind the JSON
};

// Fills `*asked` from a body of `json_bytes` of JSON and binary tensors behind them, into which
// inputs may be views: who calls keeps it alive. kJsonPadding readable bytes follow the body.
// `spec` names the model. Errors beside those of `find`, ChooseSignature, ChooseOutputs and
// PlaceInputs: INVALID_ARGUMENT names the value's path.
absl::Status DecodeInferJson(std::string_view body, size_t json_bytes, const ModelSpec& spec,
                             const MemoryBudget* memory, FindServed find, Inference* asked,
                             InferJsonForm* form);

// The reply, in place of what `*reply` holds; its first `*json_bytes` are JSON. INVALID_ARGUMENT:
// strings that are no UTF-8 would be in the JSON. Its memory beyond the outputs' is taken of
// `memory` as long as it is made.
absl::Status EncodeInferJson(const Inference& asked, Outputs outputs, const InferJsonForm& form,
                             const MemoryBudget* memory, std::string* reply, size_t* json_bytes);

}  // namespace floe::server
