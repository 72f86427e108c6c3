// FarmHash's Fingerprint64, by which TensorFlow puts strings into buckets; it never changes.
#pragma once

#include <cstdint>
#include <string>

namespace floe::kernels {

// github.com/google/farmhash, the function called farmhashna::Hash64 there.
uint64_t Fingerprint64(const std::string& text);

}  // namespace floe::kernels
