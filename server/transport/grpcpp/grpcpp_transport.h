// The transport over grpc++'s callback API.
#pragma once

#include <memory>

#include "server/api/rpc.h"
#include "server/transport/transport.h"

namespace floe::server {

// `methods` is complete and outlives the transport. Methods are called on gRPC's threads.
std::unique_ptr<Transport> MakeGrpcppTransport(const MethodTable& methods,
                                               TransportOptions options);

}  // namespace floe::server
