// Outputs -> KServe v2's ModelInferResponse, written straight from their buffers.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/request/inference.h"

namespace floe::server {

struct InferReplyForm {
  std::string_view id;  // of the request
  // Values in `contents`, where each asked output's dtype has a list there; otherwise in
  // raw_output_contents.
  bool typed = false;
  bool in_stream = false;  // a ModelStreamInferResponse around it
};

// The reply to a ModelInfer, in place of what `*reply` holds: the outputs that are asked for, of
// those that its run gave. INTERNAL when the run gave others than the signature has; OUT_OF_RANGE
// beyond 2 GiB.
absl::Status EncodeInfer(const Inference& asked, Outputs outputs, const InferReplyForm& form,
                         std::string* reply);

}  // namespace floe::server
