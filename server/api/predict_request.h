// PredictRequest as views: where the parts of a message lie, nothing compared with a model yet.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "model/shape.h"
#include "server/api/tensor_fields.h"
#include "server/batching/infer_request.h"

namespace tensorflow {
class TensorProto;
}  // namespace tensorflow

namespace floe::server {

// A tensor as sent. Views point into the message, or into `SentPredict::parsed`.
struct SentTensor {
  int dtype = 0;  // TensorFlow's number, unchecked
  Shape shape;    // as sent: dims may be negative or too large
  bool unknown_rank = false;
  std::string_view content;  // tensor_content
  TensorField list =
      TensorField::kNone;      // the one typed list with values; kNone when there is none
  bool several_lists = false;  // values in more than one list
  std::string_view packed;     // the list's values as on the wire; unused when `proto` is set
  const tensorflow::TensorProto* proto =
      nullptr;  // the values' home when protobuf read the message
};

struct SentInput {
  std::string_view key;
  SentTensor tensor;
};

struct SentPredict {
  std::string_view model;
  std::optional<int64_t> version;
  std::string_view version_label;
  std::string_view signature;
  absl::InlinedVector<SentInput, kUsualTensors> inputs;  // keys differ
  absl::InlinedVector<std::string_view, kUsualTensors> output_filter;
  std::shared_ptr<const void> parsed;  // keeps what protobuf read; null after a walk
  size_t parsed_bytes = 0;             // that it takes
};

// Finds the parts in the wire format itself. False for anything malformed or unusual (a list not
// packed, string_val, a field written twice, text that is not ASCII): nothing is decided then and
// `out` is of no use.
bool WalkPredictRequest(std::string_view bytes, SentPredict* out);

// Whether walking takes no time to speak of, however large the message is: its values lie in
// tensor_content, or in lists of numbers of fixed size, or are few. True for bytes that are soon
// found to be no message.
bool IsQuickToWalk(std::string_view bytes);

// The same by protobuf. INVALID_ARGUMENT when the bytes are no PredictRequest.
absl::Status ParsePredictRequest(std::string_view bytes, SentPredict* out);

// Walks, and parses what could not be walked. INVALID_ARGUMENT also for more names of inputs and
// outputs than any model has; RESOURCE_EXHAUSTED for what protobuf would need more than
// `max_unfolded` bytes for.
absl::Status ReadPredictRequest(std::string_view bytes, int64_t max_unfolded, SentPredict* out);

}  // namespace floe::server
