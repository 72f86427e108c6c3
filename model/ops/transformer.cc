// Ops that passes make of the parts of transformer models; no file holds them.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"
#include "model/ops/time_major.h"

namespace floe {
namespace {

double GeluFlops(const Node&, absl::Span<const TensorType>, absl::Span<const TensorType> out,
                 int64_t rows) {
  return out[0].shape.known() ? 5.0 * static_cast<double>(out[0].shape.At(rows).elements()) : 0;
}

OpDef Activation(const std::string& name) {
  return {.name = name,
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = InferSame,
          .rows = RowsElementwise,
          .time_major = ops::TimeMajorElementwise,
          .in_place = true,
          .flops = GeluFlops};
}

const OpRegistrar kGelu[] = {
    OpRegistrar(Activation("Gelu")),      // x times the normal distribution's integral up to x
    OpRegistrar(Activation("GeluTanh")),  // its approximation by tanh
};

}  // namespace
}  // namespace floe
