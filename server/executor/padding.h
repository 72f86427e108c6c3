// Padding: what fills up inputs of unequal non-batch dimensions, so that they may share a run.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/tensor.h"
#include "runtime/model.h"

namespace floe::server {

// Threading: made at load, then read by any thread.
class Padding {
 public:
  Padding() = default;  // of no variant
  // Of the model's variants whose inputs may differ in non-batch dimensions, with these values by
  // the input's key, and 0 for others. INVALID_ARGUMENT for a value that the input's dtype does not
  // have, or an input that the model does not have.
  static absl::StatusOr<Padding> Of(const Model& model,
                                    const std::map<std::string, double>& values);

  bool Has(const CompiledSignature* variant) const { return pads_.count(variant) > 0; }
  // Of an input with a batch dimension.
  const Tensor& Value(const CompiledSignature* variant, int input) const {
    return pads_.at(variant)[static_cast<size_t>(input)];
  }

 private:
  absl::Status Add(const CompiledSignature& variant, const std::map<std::string, double>& values);

  std::map<const CompiledSignature*, std::vector<Tensor>> pads_;
};

// A scalar of that dtype. INVALID_ARGUMENT when the value has none there (300 as uint8, 0.5 as an
// integer) and for dtypes that are not padded (strings, handles).
absl::StatusOr<Tensor> PadValue(DType dtype, double value);

// Raises the non-batch dimensions of `shape` to those of `other`; dim 0 stays. Ranks are equal.
void RaiseNonBatchDims(const Shape& other, Shape* shape);

// Copies `from` to the start of every axis of `to` and fills the rest with `pad`. Equal ranks,
// dtypes and dims 0; the other dims of `to` are not smaller.
void CopyPadded(const TensorView& from, const TensorView& to, const Tensor& pad);

}  // namespace floe::server
