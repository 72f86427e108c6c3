#include "base/content_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <random>

namespace floe {
namespace {

using Secret = std::array<std::random_device::result_type, 48>;
static_assert(sizeof(Secret) >= XXH3_SECRET_SIZE_MIN);

Secret DrawSecret() {
  std::random_device source;
  Secret secret;
  for (auto& word : secret) word = source();
  return secret;
}

}  // namespace

absl::uint128 ContentHash(const void* data, size_t size) {
  static const Secret secret = DrawSecret();
  const XXH128_hash_t hash = XXH3_128bits_withSecret(data, size, secret.data(), sizeof secret);
  return absl::MakeUint128(hash.high64, hash.low64);
}

}  // namespace floe
