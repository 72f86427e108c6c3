// What every inference RPC has in common, whatever its messages are.
#pragma once

#include <string>
#include <string_view>

#include "server/api/api.h"
#include "server/request/request.h"

namespace floe::server {

// All that an RPC adds. Knows nothing of calls, queues and models' names.
struct InferCodec {
  // Bytes to the request's model, signature, inputs and outputs, as DecodePredict.
  absl::Status (*decode)(std::string_view message, FindModel find, Request* request);
  // Outputs to bytes, as EncodePredict.
  absl::Status (*encode)(const Request& request, Outputs outputs, ReplyEncoding encoding,
                         std::string* reply);
};

// A unary inference RPC. Its caller may set the metadata floe-priority and floe-reply. Errors and
// lines about slow requests name the request's id. The reply may come from a worker's thread.
Method InferMethod(const ApiContext& context, const InferCodec& codec);

}  // namespace floe::server
