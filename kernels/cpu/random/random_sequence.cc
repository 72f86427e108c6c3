#include "kernels/cpu/random/random_sequence.h"

#include <chrono>

namespace floe::kernels {

uint64_t SeedOf(const Attrs& attrs) {
  const auto a = static_cast<uint64_t>(attrs.Int("seed")),
             b = static_cast<uint64_t>(attrs.Int("seed2"));
  if (a != 0 || b != 0) return a * 0xD1B54A32D192ED03u + b;
  static std::atomic<uint64_t> models{0};
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return static_cast<uint64_t>(now) + models.fetch_add(0x632BE59BD9B4E019u);
}

}  // namespace floe::kernels
