// Where floed listens: addresses for the transport, lines for the log.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"
#include "server/transport/transport.h"

namespace floe::server {

// "127.0.0.1:8500", "[::1]:8500"; IPv6 addresses may come with or without brackets.
std::string HostPort(const std::string& host, int64_t port);

// The listeners of the configuration: "127.0.0.1:8500", "unix:/run/floe/grpc.sock",
// "unix-abstract:floe" for the path "@floe". Or `activated` in their place, unless there are none.
// All have the roles that the configuration says, and those that are no unix sockets this `tls`.
// Behind them that of admin_socket_path.
std::vector<ListenerSpec> ListenersOf(const ListenConfig& config,
                                      const std::vector<std::string>& activated,
                                      const TlsSpec& tls = {});

// Listening sockets that the service manager passed to this process (sd_listen_fds(3)), as "fd:3".
// They replace those of the configuration. Once, and before any thread, because it removes the
// manager's variables from the environment.
std::vector<std::string> ActivatedListeners();

// One line per listener; a loopback one names the flags that open it to others.
std::vector<std::string> DescribeListeners(const ListenConfig& config);
std::vector<std::string> DescribeActivated(const ListenConfig& config,
                                           const std::vector<std::string>& bound);

}  // namespace floe::server
