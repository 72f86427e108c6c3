// CRC-32C (Castagnoli polynomial, reflected; RFC 3720 appendix B.4), the checksum of stored files.
#pragma once

#include <cstddef>
#include <cstdint>

namespace floe {

// The checksum of `size` bytes. `before` is that of the bytes in front of them, so that data may
// come in pieces. Any thread. Some gigabytes a second
// where the CPU has an instruction for it, else about one.
uint32_t Crc32c(const void* data, size_t size, uint32_t before = 0);
// The same without that instruction, for tests.
uint32_t Crc32cByTables(const void* data, size_t size, uint32_t before = 0);

}  // namespace floe
