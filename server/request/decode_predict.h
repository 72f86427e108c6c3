// PredictRequest -> ParsedRequest: where the parts of a message lie, nothing compared with a model
// yet.
#pragma once

#include <optional>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "server/request/parsed_tensor.h"
#include "server/request/request.h"

namespace floe::server {

struct ParsedInput {
  std::string_view key;
  ParsedTensor tensor;
};

// Views point into the message.
struct ParsedRequest {
  std::string_view model;
  std::optional<int64_t> version;
  std::string_view version_label;
  std::string_view signature;
  absl::InlinedVector<ParsedInput, kUsualTensors> inputs;  // of equal keys the last one counts
  absl::InlinedVector<std::string_view, kUsualTensors> output_filter;
};

// Reads what protobuf's own classes would read, without them: they copy, and take up to a hundred
// times the bytes of a message. Names are not checked to be UTF-8. INVALID_ARGUMENT: the bytes are
// no PredictRequest, or name more inputs and outputs than any model has.
absl::Status DecodePredict(std::string_view message, ParsedRequest* request);

}  // namespace floe::server
