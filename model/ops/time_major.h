// OpDef::time_major rules: what ops do to values whose dim 1 holds request rows ([time, rows,
// ...]), and which ops bring rows there or back. Anything not shown here loses them.
#pragma once

#include "model/op_def.h"

namespace floe::ops {

// Dim 0 and every other dim but dim 1 a number, dim 1 the rows.
bool RowsInDim1(const SymShape& shape);

// As RowsInDim1, with dim 1 = k * rows, k > 0: block i of it depends on request row i alone. Rules
// that do not ask for this lose such values.
bool BlocksInDim1(const SymShape& shape);

// Reshape and its like: leading rows may go behind a dim of 1, and back. The bytes stay as they
// are, and on both sides the rows' blocks lie one after the other.
RowMark TimeMajorSameBytes(const RowContext& c);
RowMark TimeMajorElementwise(
    const RowContext& c);  // broadcasting; constants may not differ along dim 1
RowMark TimeMajorSame(
    const RowContext& c);  // one input, the same shape, elements stay where they are
RowMark TimeMajorTranspose(const RowContext& c);
RowMark TimeMajorStridedSlice(
    const RowContext& c);  // slices of time; a single step of it has rows in dim 0
RowMark TimeMajorReverse(const RowContext& c);  // ReverseV2 along any axis but 1
RowMark TimeMajorPack(const RowContext& c);     // leading rows side by side along a new dim 0
RowMark TimeMajorUnpack(const RowContext& c);   // and taken apart again
RowMark TimeMajorConcat(const RowContext& c);   // ConcatV2 along any axis but 1

}  // namespace floe::ops
