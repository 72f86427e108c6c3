// The hashes by which TensorFlow puts strings into buckets; none ever changes.
#pragma once

#include <cstdint>
#include <string_view>

namespace floe::kernels {

// FarmHash's, of the library.
uint64_t Fingerprint64(std::string_view text);

// MurmurHash64A with TensorFlow's seed.
uint64_t Hash64(std::string_view text);

// SipHash-2-4 (Aumasson and Bernstein).
uint64_t SipHash(uint64_t key0, uint64_t key1, std::string_view text);

// Two fingerprints made one; the order matters.
uint64_t FingerprintCat64(uint64_t first, uint64_t second);

}  // namespace floe::kernels
