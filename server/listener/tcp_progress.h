// How far a TCP connection's sending has come.
#pragma once

#include <cstdint>

namespace floe::server {

// Bytes that the other end has acknowledged so far; 0 where the descriptor is no TCP connection.
int64_t BytesAcknowledged(int fd);

}  // namespace floe::server
