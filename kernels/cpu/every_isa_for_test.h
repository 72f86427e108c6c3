// Running a test's body on each instruction set of this CPU.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernels/cpu/hwy_targets.h"

namespace floe {

// For hwy::SetSupportedTargetsForTest. Under a sanitizer, which makes kernels slow, the best and
// the simplest: in between the same source runs on other widths.
inline std::vector<int64_t> IsasToTest() {
  std::vector<int64_t> isas = hwy::SupportedAndGeneratedTargets();
#ifdef FLOE_SANITIZED
  if (isas.size() > 2) isas.erase(isas.begin() + 1, isas.end() - 1);
#endif
  return isas;
}

template <class Body>
void OnEveryIsa(const Body& body) {
  for (int64_t isa : IsasToTest()) {
    hwy::SetSupportedTargetsForTest(isa);
    SCOPED_TRACE(hwy::TargetName(isa));
    body();
    hwy::SetSupportedTargetsForTest(0);
  }
}

}  // namespace floe
