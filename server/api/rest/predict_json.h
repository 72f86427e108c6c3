// TensorFlow Serving's predict in JSON: a body to an Inference, outputs to a reply.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/api/infer_call.h"

namespace floe::server {

// How a body holds its inputs, which is how the reply holds the outputs.
enum class JsonLayout : uint8_t {
  kRows,     // "instances": a value for each row, or an object with one for each input
  kColumns,  // "inputs": the tensor, or an object with all of them
};

// Fills `*asked` from a JSON body with kJsonPadding readable bytes behind it, into which no input
// is a view. `spec` names the model. Errors beside those of `find`, ChooseSignature and
// PlaceInputs: INVALID_ARGUMENT names the value's path.
absl::Status DecodePredictJson(std::string_view body, const ModelSpec& spec,
                               const MemoryBudget* memory, FindServed find, Inference* asked,
                               JsonLayout* layout);

// The reply, in place of what `*reply` holds. INVALID_ARGUMENT: in rows, where the outputs have
// none or differ in them. Its memory beyond the outputs' is taken of `memory` as long as it is
// made.
absl::Status EncodePredictJson(const Inference& asked, Outputs outputs, JsonLayout layout,
                               const MemoryBudget* memory, std::string* reply);

}  // namespace floe::server
