// Where floed listens: addresses for the transport, words for the log.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace floe::server {

// "127.0.0.1:8500", "[::1]:8500"; IPv6 addresses may come with or without brackets.
std::string HostPort(const std::string& host, int64_t port);

// gRPC's spelling of every listener: "127.0.0.1:8500", "unix:/run/floe/grpc.sock",
// "unix-abstract:floe" for the path "@floe".
std::vector<std::string> ListenAddresses(const ListenConfig& config);

// Listening sockets that the service manager passed to this process (sd_listen_fds(3)), as
// "fd:3"; they stand in for those of the configuration. Once, and before any thread: it takes the
// manager's variables out of the environment.
std::vector<std::string> ActivatedListeners();

// One line a listener; a loopback one names the flags that open it to others.
std::vector<std::string> DescribeListeners(const ListenConfig& config);
std::vector<std::string> DescribeActivated(const std::vector<std::string>& bound);

}  // namespace floe::server
