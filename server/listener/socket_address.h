// Addresses of sockets as text.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

namespace floe::server {

// "127.0.0.1" or "::1" without the port; empty for other families. IPv4 inside IPv6 is IPv4.
std::string HostOf(const sockaddr_storage& address);

// Of TCP; 0 for other families.
uint16_t PortOf(const sockaddr_storage& address);

// Of a bound socket: "127.0.0.1:8500", "[::1]:8500", "[fe80::1%eth0]:8500", "unix:/path",
// "unix-abstract:name"; empty when it has none.
std::string LocalAddress(int fd);

}  // namespace floe::server
