// RequestLog: requests with their answers, as TensorFlow Serving's PredictionLog in TFRecord files,
// which warm versions up and can be sent again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/request/door.h"
#include "server/request/inference.h"

namespace floe::server {

// Threading: any thread.
class RequestLog {
 public:
  // Gets each record as the bytes of a TFRecord file, and must not block.
  using Write = std::function<void(const std::string& model, std::string record)>;
  explicit RequestLog(Write write) : write_(std::move(write)) {}

  // Whether a request by this door is to be written, of a model of whose requests one in `one_in`
  // is, at random; 0: none. Those of Classify and Regress over REST are not: their Examples are not
  // kept. Nor are those of MultiInference, whose tasks are requests of their own.
  static bool Takes(Door door, int64_t one_in);
  // Whether its messages are those of a PredictionLog. Others are written by AddAsPredict.
  static bool HasOwnMessages(Door door) {
    return door == Door::kPredict || door == Door::kClassify || door == Door::kRegress;
  }
  // What was asked by another door and what came of it, as a Predict has it. OUT_OF_RANGE: that is
  // too large for a message.
  absl::Status AddAsPredict(const Inference& asked, Outputs outputs) const;
  // The messages of a request and of its reply.
  void Add(Door door, const std::string& model, std::string_view request,
           std::string_view reply) const;

 private:
  const Write write_;
};

}  // namespace floe::server
