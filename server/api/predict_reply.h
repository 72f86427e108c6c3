// PredictResponse, written straight from output buffers.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/tensor.h"
#include "server/registry/registry.h"

namespace floe::server {

struct ReplySpec {
  std::string_view model;
  int64_t version = 0;
  std::string_view signature;
};

struct ReplyOutput {
  std::string_view key;
  TensorView value;
};

// The bytes of a tensorflow.serving.PredictResponse, outputs in the given order. kTyped uses the
// lists TF Serving uses (float_val and so on); kContent uses tensor_content for everything but
// strings. OUT_OF_RANGE beyond 2 GiB, which no protobuf message may exceed.
absl::StatusOr<std::string> EncodePredictReply(const ReplySpec& spec,
                                               absl::Span<const ReplyOutput> outputs,
                                               ReplyEncoding encoding);

}  // namespace floe::server
