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
          .in_place = 1,
          .flops = GeluFlops};
}

// Inputs: x, then scale and offset, a number for each place of x's last dim. Attribute epsilon.
absl::StatusOr<Types> InferLayerNorm(const InferContext& c) {
  for (const int i : {1, 2}) {
    FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, i, 1));
    if (!c.shape(0).rank_known() || ops::RankOf(c, i) != 1) continue;
    if (c.shape(0).rank() == 0 || !c.shape(i).dim(0).concrete() ||
        ops::Differ(c.shape(i).dim(0), c.shape(0).dim(c.shape(0).rank() - 1)))
      return Bad(absl::StrCat("input ", i, " has shape ", c.shape(i).ToString(), ", input 0 has ",
                              c.shape(0).ToString()));
  }
  return InferSame(c);
}

RowMark LayerNormRows(const RowContext& c) {
  const SymShape& x = c.inputs[0].type.shape;
  if (!c.OthersConstant(1)) return RowMark::kMixed;
  return ops::MarkOfData(c, 0, x.rank_known() && x.rank() >= 2);
}

// The request rows may lie in dim 1 unless that is the last.
RowMark LayerNormTimeMajor(const RowContext& c) {
  const SymShape& x = c.inputs[0].type.shape;
  const bool keeps = c.marks[0] == RowMark::kRowsDim1 && c.OthersConstant(1) &&
                     ops::BlocksInDim1(x) && x.rank() >= 3;
  return keeps ? RowMark::kRowsDim1 : ops::Lost(c);
}

double LayerNormFlops(const Node&, absl::Span<const TensorType>, absl::Span<const TensorType> out,
                      int64_t rows) {
  return out[0].shape.known() ? 8.0 * static_cast<double>(out[0].shape.At(rows).elements()) : 0;
}

const OpRegistrar kLayerNorm({.name = "LayerNorm",
                              .min_inputs = 3,
                              .max_inputs = 3,
                              .infer = InferLayerNorm,
                              .rows = LayerNormRows,
                              .time_major = LayerNormTimeMajor,
                              .in_place = 1,
                              .flops = LayerNormFlops,
                              .input_types = "T T T"});

const OpRegistrar kGelu[] = {
    OpRegistrar(Activation("Gelu")),      // x times the normal distribution's integral up to x
    OpRegistrar(Activation("GeluTanh")),  // its approximation by tanh
    OpRegistrar(Activation("Mish")),      // x * tanh(softplus(x))
};

}  // namespace
}  // namespace floe
