#include "kernels/cpu/isa.h"

#include <hwy/nanobenchmark.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "kernels/cpu/hwy_targets.h"

// Stands in for libhwy's. When Debian's libhwy is loaded, it measures the clock of its benchmarks
// with this function, for 5 ms. Nothing here uses that clock.
uint64_t hwy::platform::TimerResolution() { return 1; }

namespace floe::kernels {
namespace {

struct IsaLevel {
  const char* name;
  int64_t target;
};
constexpr IsaLevel kIsaLevels[] = {{"avx512", HWY_AVX3},   {"avx2", HWY_AVX2},
                                   {"sse4", HWY_SSE4},     {"neon", HWY_NEON},
                                   {"scalar", HWY_SCALAR}, {"scalar", HWY_EMU128}};

// The best level among `targets`: Highway numbers better targets lower.
const char* BestName(int64_t targets) {
  const int64_t usable = targets & HWY_TARGETS;
  const int64_t best = usable & -usable;
  for (const IsaLevel& level : kIsaLevels) {
    if (level.target == best) return level.name;
  }
  return "scalar";
}

// The bits that a forced level rules out; 0 when nothing is forced.
int64_t TargetsRuledOut(const char* forced) {
  if (forced == nullptr || *forced == '\0') return 0;
  const int64_t supported = hwy::SupportedTargets() & HWY_TARGETS;
  for (const IsaLevel& level : kIsaLevels) {
    // The fallback is always there, though the CPU's mask may not list it.
    const bool here = (level.target & (supported | HWY_SCALAR | HWY_EMU128) & HWY_TARGETS) != 0;
    if (std::string(forced) == level.name && here) return level.target - 1;
  }
  std::fprintf(stderr, "FLOE_FORCE_ISA=%s is not a level of this CPU (its best is %s); ignored\n",
               forced, BestName(supported));
  return 0;
}

// Of the target that Highway has chosen; null: nobody has asked.
std::atomic<const char*> chosen_name{nullptr};

}  // namespace

void ChooseIsa() {
  static const bool forced = [] {
    if (const int64_t ruled_out = TargetsRuledOut(std::getenv("FLOE_FORCE_ISA")))
      hwy::DisableTargets(ruled_out);
    return true;
  }();
  (void)forced;
  // Asking the CPU takes microseconds, in a virtual machine many: only at first, and after tests
  // have narrowed the supported targets, which takes the choice back.
  hwy::ChosenTarget& chosen = hwy::GetChosenTarget();
  if (chosen.IsInitialized() && chosen_name != nullptr) return;
  // Where Highway detects the CPU, it chooses the best target at once, whatever level is forced.
  const int64_t targets = hwy::SupportedTargets();
  chosen.Update(targets);
  chosen_name = BestName(targets);
}

std::string IsaName() {
  ChooseIsa();
  return chosen_name.load();
}

}  // namespace floe::kernels
