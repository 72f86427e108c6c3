// PredictRequest -> Inference, without protobuf's classes: they copy, and take up to a hundred
// times the bytes of a message.
#pragma once

#include <string_view>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "server/request/inference.h"
#include "server/request/parsed_tensor.h"

namespace floe::server {

// Fills `*asked` from the message, into which inputs may be views: who calls keeps it alive.
// Inputs that are large to decode, or stand for much more than was sent, are left pending. Nothing
// is allocated for them before names, dtypes and shapes are the signature's. Errors beside those of
// `find`, ChooseSignature, ChooseOutputs and PlaceInputs: INVALID_ARGUMENT for bytes that are no
// PredictRequest, and for inputs of another dtype or shape. RESOURCE_EXHAUSTED for those that would
// take too much.
absl::Status DecodePredict(std::string_view message, FindModel find, Inference* asked);

// The parts of a message, as views into it.
struct PredictFields {
  struct Input {
    std::string_view key;
    ParsedTensor tensor;
  };
  ModelSpec model;
  std::string_view signature;
  absl::InlinedVector<Input, kUsualTensors> inputs;  // of equal keys the last one counts
  absl::InlinedVector<std::string_view, kUsualTensors> output_filter;
};

// DecodePredict's first step. Reads what protobuf's own classes would read; names need not be
// UTF-8. INVALID_ARGUMENT: the bytes are no PredictRequest, or name more inputs and outputs than
// any model has.
absl::Status ReadPredictFields(std::string_view message, PredictFields* fields);

}  // namespace floe::server
