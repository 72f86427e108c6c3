// Whether a box overlaps with others, one implementation for every ISA.
#pragma once

#include <cstddef>

namespace floe::kernels {

struct Corners {
  float y0, x0, y1, x1;  // y0 <= y1, x0 <= x1
  float area;
};

// Boxes in columns. Places without a box have no size, and overlap with nothing.
struct BoxGroup {
  static constexpr size_t kBoxes = 16;
  float y0[kBoxes] = {}, x0[kBoxes] = {}, y1[kBoxes] = {}, x1[kBoxes] = {}, area[kBoxes] = {};
};

// Whether the intersection of `box` with one in `groups` is more than `iou` of their union. The
// bits of each quotient are those of plain C++. iou >= 0; NaN overlaps with nothing.
using OverlapsF32 = bool (*)(const BoxGroup* groups, size_t n, const Corners& box, float iou);
OverlapsF32 PickOverlapsF32();  // for this CPU; call once, when the kernel is made

}  // namespace floe::kernels
