// Tensors as JSON and as text.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "model/tensor.h"
#include "nlohmann/json.hpp"

namespace floe::cli {

// Nested lists (or one bare value) -> a tensor; nesting gives the shape. Numbers must fit `dtype`
// exactly where it is an integer; floats also take the strings "NaN", "Infinity" and "-Infinity";
// bool takes true and false; string takes strings and {"b64": "..."}. INVALID_ARGUMENT names the
// position.
absl::StatusOr<Tensor> TensorFromJson(const nlohmann::json& json, DType dtype);

// The other way. Floats print as the shortest decimal that reads back; NaN and infinities become
// strings; complex numbers [real, imaginary]; strings that are not UTF-8 {"b64": "..."}.
nlohmann::ordered_json TensorToJson(const TensorView& view);

// One element: "0.1", "true", "'text'".
std::string ElementText(const TensorView& view, int64_t index);

}  // namespace floe::cli
