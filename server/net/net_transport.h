// The transport of our own: HTTP/2 and gRPC on epoll loops.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/api/http.h"
#include "server/api/rpc.h"
#include "server/net/ends.h"
#include "server/transport/transport.h"

namespace floe::server {

// gRPC's channel arguments, of which docs/transport.md says what they do here.
using ChannelArguments = std::vector<std::pair<std::string, std::string>>;

class NetTransport : public Transport {
 public:
  // How many connections ended, by their reasons.
  virtual const EndCounts& ends() const = 0;
};

// `methods` and `routes` are complete and outlive the transport; without routes, HTTP/1.1 is not
// spoken. Methods are called on the loops' threads.
// `arguments` override the limits that follow from the options.
std::unique_ptr<NetTransport> MakeNetTransport(const MethodTable& methods,
                                               const TransportOptions& options,
                                               const ChannelArguments& arguments = {},
                                               const HttpRoutes* routes = nullptr);

}  // namespace floe::server
