// Importing within limits: where allocations that cannot return an error end.
#pragma once

#include "base/budget.h"

namespace floe {

// What `import`, which gives a status or a StatusOr, returns with a budget of these limits as the
// thread's; RESOURCE_EXHAUSTED when memory runs out.
template <typename Body>
auto WithinLimits(const ResourceLimits& limits, const Body& import) -> decltype(import()) {
  Budget budget(limits);
  const BudgetScope scope(&budget);
  return CatchOutOfMemory(import);
}

}  // namespace floe
