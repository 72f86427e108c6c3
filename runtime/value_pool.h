// ValuePool: memory for values whose size the run settles. Freed values leave their memory to the
// next ones, so that a context that has seen its largest request asks the system for nothing more.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "model/tensor.h"

namespace floe {

// Threading: any thread may allocate, and tensors may die on any thread, also after the pool.
class ValuePool {
 public:
  ValuePool();
  ~ValuePool();
  ValuePool(const ValuePool&) = delete;
  ValuePool& operator=(const ValuePool&) = delete;

  // Uninitialised numbers, empty strings or null handles. INVALID_ARGUMENT for an impossible shape,
  // RESOURCE_EXHAUSTED when memory is short.
  absl::StatusOr<Tensor> Allocate(DType dtype, const Shape& shape);

  absl::StatusOr<Tensor> Copy(const TensorView& view);

  size_t held_bytes() const;  // in use or kept for later, the rounding to block sizes included
  size_t used_bytes() const;  // in use
  // Gives back what is not in use. Returns how many bytes.
  size_t Trim();

 private:
  class Core;
  std::shared_ptr<Core> core_;  // tensors hold it too
};

}  // namespace floe
