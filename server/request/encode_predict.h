// Outputs -> PredictResponse, and inputs -> PredictRequest, written straight from their buffers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "model/tensor.h"
#include "server/request/inference.h"
#include "server/request/model_spec.h"

namespace floe::server {

// How a reply holds its numbers: in lists of their type, or as bytes.
enum class ReplyEncoding : uint8_t { kTyped, kContent };

// The reply to a Predict: the outputs that are asked for, of those that its run gave.
// INTERNAL when the run gave others than the signature has; otherwise as EncodePredictReply.
absl::Status EncodePredict(const Inference& asked, Outputs outputs, ReplyEncoding encoding,
                           std::string* reply);

// What was asked by any door, as the bytes of a tensorflow.serving.PredictRequest of the newest
// version. Its inputs are decoded.
absl::Status EncodeAsked(const Inference& asked, std::string* request);

struct ReplyOutput {
  std::string_view key;
  TensorView value;
};

// Puts the bytes of a tensorflow.serving.PredictResponse, outputs in the given order, in place of
// what `*reply` holds.
//
// kTyped uses the lists TF Serving uses (float_val and so on); kContent uses
// tensor_content for everything but strings. OUT_OF_RANGE beyond 2 GiB, which no protobuf message
// may exceed.
absl::Status EncodePredictReply(const ReplySpec& spec, absl::Span<const ReplyOutput> outputs,
                                ReplyEncoding encoding, std::string* reply);

}  // namespace floe::server
