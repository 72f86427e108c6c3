#include "runtime/input_shape.h"

#include "absl/strings/str_cat.h"
#include "base/quoted.h"

namespace floe {

absl::Status CheckInputShape(const SignatureTensor& input, const Shape& shape) {
  const SymShape& wanted = input.type.shape;
  if (!wanted.rank_known()) return absl::OkStatus();
  bool fits = shape.rank() == wanted.rank();
  for (int axis = 0; fits && axis < wanted.rank(); ++axis)
    fits = !wanted.dim(axis).known() || wanted.dim(axis) == Dim(shape.dim(axis));
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("input ", Quoted(input.key), " has shape ",
                                                 shape.ToString(), ", the model takes ",
                                                 wanted.ToString()));
}

}  // namespace floe
