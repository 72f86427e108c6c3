// RequestLog: requests with their answers, as TensorFlow Serving's PredictionLog in TFRecord files,
// which warm versions up and can be sent again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "server/request/door.h"

namespace floe::server {

// Threading: any thread.
class RequestLog {
 public:
  // Gets each record as the bytes of a TFRecord file, and must not block.
  using Write = std::function<void(const std::string& model, std::string record)>;
  explicit RequestLog(Write write) : write_(std::move(write)) {}

  // Whether a request by this door is to be written, of a model of whose requests one in `one_in`
  // is, at random; 0: none. A PredictionLog has no place for those of other doors than Predict,
  // Classify and Regress of gRPC.
  static bool Takes(Door door, int64_t one_in);
  // The messages of a request and of its reply.
  void Add(Door door, const std::string& model, std::string_view request,
           std::string_view reply) const;

 private:
  const Write write_;
};

}  // namespace floe::server
