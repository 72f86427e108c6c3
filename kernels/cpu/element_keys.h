// Numbers that stand for elements where equal ones are looked for: such kernels need no template
// for each dtype.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "base/budget.h"
#include "base/status.h"
#include "model/tensor.h"

namespace floe::kernels {

// Elements of tensors of one dtype have the same key where they are equal, whatever tensor they are
// in. A NaN is equal to nothing, so that each has a key of its own. As in TensorFlow -0 and 0 are
// one, but of 16-bit floats, whose bits count, two. Strings must live as long as the object.
class ElementKeys {
 public:
  // UNIMPLEMENTED for dtypes other than floats, integers, bool and string.
  absl::StatusOr<BudgetVector<uint64_t>> Of(const TensorView& view);

 private:
  uint64_t nans_ = 0;
  absl::flat_hash_map<std::string_view, uint64_t> words_;  // seeded: none are slow on purpose
};

}  // namespace floe::kernels
