// The transport over grpc++'s callback API.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/api/rpc.h"
#include "server/transport/transport.h"

namespace floe::server {

// gRPC's channel arguments. A value that is an integer is passed as one.
using GrpcArguments = std::vector<std::pair<std::string, std::string>>;

// `methods` is complete and outlives the transport. Methods are called on gRPC's threads.
// `arguments` override the arguments that follow from the options.
std::unique_ptr<Transport> MakeGrpcppTransport(const MethodTable& methods,
                                               const TransportOptions& options,
                                               GrpcArguments arguments = {});

}  // namespace floe::server
