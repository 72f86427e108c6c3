// What a plan's arena is measured against in tests.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "runtime/plan.h"

namespace floe {

// Bytes of the two largest values that are alive during one step, at the worst step. Values that
// share memory (aliases, in-place results) count as one; a caller's inputs count while they are
// still to be read.
inline int64_t LargestLivePair(const Plan& plan, int64_t rows) {
  struct Life {
    int first = -1, last = -1;
    int64_t bytes = 0;
  };
  std::map<int, Life> lives;  // by root
  const auto cover = [&](int slot, int step) {
    const Slot& root = plan.slots()[plan.slots()[slot].root];
    if (root.home != Slot::Home::kArena && root.home != Slot::Home::kInput) return;
    const auto [life, fresh] = lives.try_emplace(root.root);
    if (fresh) {
      life->second.first = root.home == Slot::Home::kInput ? -1 : step;
      life->second.bytes =
          root.type.shape.elements().At(rows) * static_cast<int64_t>(DTypeSize(root.type.dtype));
    }
    life->second.last = std::max(life->second.last, step);
  };
  const int steps = static_cast<int>(plan.steps().size());
  for (int s = 0; s < steps; ++s) {
    for (int in : plan.steps()[s].inputs) cover(in, s);
    for (int out : plan.steps()[s].outputs) cover(out, s);
  }
  int64_t worst = 0;
  for (int s = 0; s < steps; ++s) {
    int64_t largest = 0, second = 0;
    for (const auto& [root, life] : lives) {
      if (life.first > s || life.last < s) continue;
      second = std::max(second, std::min(largest, life.bytes));
      largest = std::max(largest, life.bytes);
    }
    worst = std::max(worst, largest + second);
  }
  return worst;
}

}  // namespace floe
