// FusedRecurrent: a whole recurrent layer in one step. Made by a pass; no file holds it.
//
// Inputs: x [batch, time, in], h [batch, units], for an LSTM c [batch, units], with "masked" a
// bool mask [batch, time], then weights: unless "projected" W [in, gates * units], R [units, gates
// * units], b [gates * units], for a reset-after GRU rb [units]. One row of x, h or c serves all.
#pragma once

#include <string>
#include <vector>

#include "model/op_def.h"

namespace floe::ops {

// By the order of their gates in the columns of W, R and b. s() are the functions of gates, t()
// those of values.
enum class RecurrentCell : uint8_t {
  kLstm,            // i, f, g, o: c = s(f) c + s(i) t(g), h = s(o) t(c)
  kGruResetAfter,   // z, r, n: n = t(x W + b + s(r) (h R + rb)), h = s(z) h + (1 - s(z)) n
  kGruResetBefore,  // z, r, n: n = t(x W + b + (s(r) h) R)
  kSimple,          // h = t(x W + b + h R)
};

enum class RecurrentFunction : uint8_t {
  kLinear,
  kSigmoid,
  kTanh,
  kRelu,
  kRelu6,
  kElu,
  kSelu,
  kLeakyRelu,  // scale: the slope below 0
  kSwish,
  kSoftplus,
  kSoftsign,
  kExp,
  kHardSigmoid,  // scale * x + shift, cut to [0, 1]
};

struct RecurrentGate {
  RecurrentFunction function = RecurrentFunction::kLinear;
  float scale = 1, shift = 0;
  bool operator==(const RecurrentGate& o) const {
    return function == o.function && scale == o.scale && shift == o.shift;
  }
};

// The attributes. Outputs: the sequence [batch, steps, units], or [batch, 0, units] when it is not
// wanted, the last h and the last c [batch, units]; the latter [batch, 0] without a c.
struct RecurrentSpec {
  RecurrentCell cell = RecurrentCell::kSimple;
  // Of i, f, g, o and of c in h; of z, r, n; of the only one.
  std::vector<RecurrentGate> gates;
  int64_t units = 0;
  int64_t steps = -1;      // -1: all of x
  bool backwards = false;  // begins with the last step of x; the sequence is in order of steps
  bool sequence = false;
  bool projected = false;  // x holds x W already
  bool masked = false;
  bool zero_output = false;  // where masked: the sequence is 0 there, not the output before

  // INVALID_ARGUMENT for attributes that do not fit together.
  static absl::StatusOr<RecurrentSpec> FromAttrs(const Attrs& attrs);
  void ToAttrs(Attrs* attrs) const;

  bool has_c() const { return cell == RecurrentCell::kLstm; }
  int columns() const;  // gates of W and R
  // Positions of inputs; -1: there is none.
  int c() const { return has_c() ? 2 : -1; }
  int mask() const { return masked ? 2 + has_c() : -1; }
  int weights() const { return 2 + has_c() + masked; }  // the first
  int w() const { return projected ? -1 : weights(); }
  int r() const { return weights() + !projected; }
  int b() const { return r() + 1; }
  int rb() const { return cell == RecurrentCell::kGruResetAfter ? r() + 2 : -1; }
  int inputs() const { return b() + 1 + (cell == RecurrentCell::kGruResetAfter); }
};

const char* RecurrentCellName(RecurrentCell cell);

// The function's name in the attributes: TensorFlow's op, where there is one.
const char* RecurrentFunctionName(RecurrentFunction function);

}  // namespace floe::ops
