// What a RaggedTensorToVariant handle holds: one ragged tensor, or one component of a batch.
#pragma once

#include <utility>
#include <vector>

#include "model/handle.h"
#include "model/tensor.h"

namespace floe {

// Written once, before it is shared.
class RaggedObject final : public Object {
 public:
  RaggedObject(std::vector<Tensor> nested_splits, Tensor dense_values)
      : splits(std::move(nested_splits)), values(std::move(dense_values)) {}

  const std::vector<Tensor> splits;  // outermost first, int32 or int64; checked by nobody
  const Tensor values;               // rank >= 1 where there are splits
};

}  // namespace floe
