// What a bound plan is made of.
#pragma once

#include <memory>
#include <vector>

#include "kernels/kernel.h"
#include "model/graph.h"

namespace floe {

class CompiledSignature;

// bytes = base + per_row * rows.
struct AffineBytes {
  int64_t base = 0, per_row = 0;
  int64_t At(int64_t rows) const { return base + per_row * rows; }
};

// Where one value lives during a run.
struct Slot {
  enum class Home : uint8_t {
    kNone,      // never computed: only its type matters
    kInput,     // the caller's
    kConstant,  // the plan's
    kArena,     // at `offset`
    kDynamic,   // its size is known only during the run; from the context's pool
  };
  TensorType type;
  Home home = Home::kNone;
  int root = -1;  // the slot whose bytes these are; itself when its own
  // A window of the root's value: its first line begins so many bytes behind the root's, and its
  // lines lie so many elements apart. 0: the bytes of the root, line behind line.
  int64_t window_offset = 0, line_stride = 0;
  AffineBytes offset;  // of an arena root: in the fixed region, or (per_row != 0) in the region
                       // that grows with rows
  Tensor constant;
  // Of integers that are affine in rows: their value is constant + per_row * rows, and a frame
  // writes it into their place in the arena when it is prepared.
  Tensor per_row;
};

// Whether the bytes of `part` are some of each line of `whole`.
inline bool IsWindowOf(const Slot& part, const Slot& whole) {
  const SymShape& shape = whole.type.shape;
  if (part.line_stride == 0 || part.root != whole.root || shape.rank() == 0) return false;
  const int64_t ahead = part.window_offset - whole.window_offset,
                line = shape.dim(shape.rank() - 1).size() *
                       static_cast<int64_t>(DTypeSize(whole.type.dtype));
  return ahead >= 0 && ahead < line;
}

struct Step {
  int node = -1;                   // in the compiled signature's graph
  const Kernel* kernel = nullptr;  // null: an alias of unknown shape, or control flow
  const std::vector<std::shared_ptr<const CompiledSignature>>* programs =
      nullptr;                        // subgraphs of an If, Case, While or OnDevice
  std::vector<int> inputs, outputs;   // slots
  int first_arg = 0;                  // of the frame's argument views: inputs, then outputs
  std::vector<int64_t> line_strides;  // of the same; empty: none is a window
  bool dynamic = false;               // shapes are settled during the run
  uint64_t last_reads =
      0;  // bit k: nobody reads input k after this step (inputs past 63 never count)
  AffineBytes scratch_bytes, scratch_offset;
  // Its scratch is not known to be an affine function of rows. The shapes of each run say how much
  // it is, and it lies behind everything else in the arena.
  bool scratch_by_run = false;
};

}  // namespace floe
