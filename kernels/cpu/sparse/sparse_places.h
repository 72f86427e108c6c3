// The places of a sparse tensor's values.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "kernels/cpu/move/grid_copy.h"

namespace floe::kernels {

// Indices of `count` values in a space of the shape; all are inside it.
struct SparsePlaces {
  IntList indices, shape;
  int64_t count = 0;

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  const int64_t* At(int64_t i) const { return indices.data() + i * rank(); }
  // -1, 0 or 1: how value i stands to value k of another one, in row-major order.
  int Compare(int64_t i, const SparsePlaces& other, int64_t k) const {
    for (int64_t d = 0; d < rank(); ++d) {
      if (At(i)[d] != other.At(k)[d]) return At(i)[d] < other.At(k)[d] ? -1 : 1;
    }
    return 0;
  }
};

// INVALID_ARGUMENT unless there is an index inside the shape for every value.
absl::Status ReadPlaces(const TensorView& indices, const TensorView& values,
                        const TensorView& shape, SparsePlaces* places);

}  // namespace floe::kernels
