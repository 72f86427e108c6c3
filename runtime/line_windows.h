// Joins and splits along the last dimension without copies: a part is a window of the whole, whose
// lines lie apart.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "model/graph.h"
#include "runtime/step.h"

namespace floe {

// Shorter lines are copied: a run of each costs more than it saves. Elements.
inline constexpr int64_t kShortestWindowLine = 16;

// Makes windows of the parts of concatenations where the step that makes a part writes spaced
// lines, and of splits and slices; all steps that read a part must read them. A concatenation of
// concatenations is one whole, so the whole that holds a part may be a window itself. `outputs`:
// slots that are read after the run, as they are.
void MakeLineWindows(const Graph& graph, absl::Span<const int> outputs, std::vector<Slot>* slots,
                     std::vector<Step>* steps);

// Bytes of the step's parts that lie where they are wanted already, so that it does not move them.
int64_t BytesInPlace(const std::vector<Slot>& slots, const Step& step, int64_t rows);

}  // namespace floe
