// Running a test's body on each instruction set of this CPU.
#pragma once

#include <gtest/gtest.h>

#include "kernels/cpu/hwy_targets.h"

namespace floe {

template <class Body>
void OnEveryIsa(const Body& body) {
  for (int64_t isa : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(isa);
    SCOPED_TRACE(hwy::TargetName(isa));
    body();
    hwy::SetSupportedTargetsForTest(0);
  }
}

}  // namespace floe
