// Loops that take one request row after the other, as tf.map_fn over the batch makes them. Each
// iteration handles the row of its number alone, so batching rows changes nothing for any of them.
#pragma once

#include <vector>

#include "model/op_def.h"

namespace floe {

// Whether a While counts from 0 up to the number of request rows by one, and by nothing else ends.
// If so, the marks of its variables become those of its body: kRowNumber of what counts, kRowList
// of lists that are still empty. What else changes from iteration to iteration is kMixed: it could
// hand something from one row to the next.
bool MarkLoopOverRows(const Node& loop, absl::Span<const ValueInfo> inputs,
                      std::vector<RowMark>* marks);

}  // namespace floe
