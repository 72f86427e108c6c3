// Where floed listens: addresses for the transport, words for the log, a way in for the probe.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace floe::server {

// "127.0.0.1:8500", "[::1]:8500"; IPv6 addresses may come with or without brackets.
std::string HostPort(const std::string& host, int64_t port);

// gRPC's spelling of every listener: "127.0.0.1:8500", "unix:/run/floe/grpc.sock".
std::vector<std::string> ListenAddresses(const ListenConfig& config);

// One line a listener; a loopback one names the flags that open it to others.
std::vector<std::string> DescribeListeners(const ListenConfig& config);

// Where the process reaches itself.
std::string ProbeAddress(const ListenConfig& config);

}  // namespace floe::server
