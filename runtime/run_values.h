// RunValues: the values of a run whose sizes only the run itself settles.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "model/tensor.h"
#include "runtime/plan.h"
#include "runtime/value_pool.h"

namespace floe {

// By slot of a plan, in memory of a pool that other frames may use too. Threading: one thread.
class RunValues {
 public:
  explicit RunValues(std::shared_ptr<ValuePool> pool) : pool_(std::move(pool)) {}

  void Resize(size_t slots);  // for another plan; the values are gone
  // What the last run left is no part of the next one.
  void Clear();
  void FreeScratch() { scratch_ = Tensor(); }

  // Memory for the value of a slot. RESOURCE_EXHAUSTED when it is short.
  absl::StatusOr<TensorView> Allocate(int slot, DType dtype, const Shape& shape);
  // Takes a value that has memory already.
  TensorView Hold(int slot, Tensor value);
  // What kernels wrote into the strings of these slots is known, and paid for, only now.
  absl::Status PayForStrings(const std::vector<int>& slots);
  // Values that nobody reads after this step make room for the next ones.
  void Release(const Plan& plan, const Step& step);

  // Memory for one step; as large as the largest that was asked for.
  absl::StatusOr<std::byte*> Scratch(int64_t bytes);

  const std::shared_ptr<ValuePool>& pool() const { return pool_; }

 private:
  const std::shared_ptr<ValuePool> pool_;
  std::vector<Tensor> values_;  // none where the plan's steps are all static
  Tensor scratch_;
};

}  // namespace floe
