// OpDef::time_major rules: what ops do to values whose dim 1 holds request rows ([time, rows,
// ...]), and which ops bring rows there or back. Anything not shown here loses them.
#pragma once

#include "model/op_def.h"

namespace floe::ops {

// Dim 0 and every other dim but dim 1 a number, dim 1 the rows.
bool RowsInDim1(const SymShape& shape);

RowMark TimeMajorElementwise(
    const RowContext& c);  // broadcasting; constants may not differ along dim 1
RowMark TimeMajorSame(
    const RowContext& c);  // one input, the same shape, elements stay where they are
RowMark TimeMajorTranspose(const RowContext& c);
RowMark TimeMajorStridedSlice(
    const RowContext& c);  // slices of time; a single step of it has rows in dim 0
RowMark TimeMajorReverse(const RowContext& c);  // ReverseV2 along any axis but 1
RowMark TimeMajorConcat(const RowContext& c);   // ConcatV2 along any axis but 1

}  // namespace floe::ops
