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

// Inputs: x, then scale and offset, a number for each place of x's last dim. Attribute epsilon.
absl::StatusOr<Types> InferLayerNorm(const InferContext& c) {
  for (const int i : {1, 2}) {
    if (!c.shape(0).rank_known() || ops::RankOf(c, i) != 1) continue;
    if (c.shape(0).rank() == 0 || !c.shape(i).dim(0).concrete() ||
        ops::Differ(c.shape(i).dim(0), c.shape(0).dim(c.shape(0).rank() - 1)))
      return Bad(absl::StrCat("input ", i, " has shape ", c.shape(i).ToString(), ", input 0 has ",
                              c.shape(0).ToString()));
  }
  return InferSame(c);
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
                              .infer = InferLayerNorm,
                              .rows = ops::RowsFromRankAlone<2>,
                              .time_major = LayerNormTimeMajor,
                              .in_place = 1,
                              .flops = LayerNormFlops,
                              .input_types = "T T[_] T[_]",
                              .tensorflow = {ops::kNotInFiles}});

// x times the normal distribution's integral up to x; its approximation by tanh; and
// x * tanh(softplus(x)).
const ops::Family kGelu({"Gelu", "GeluTanh", "Mish"}, {.infer = InferSame,
                                                       .rows = RowsElementwise,
                                                       .time_major = ops::TimeMajorElementwise,
                                                       .in_place = 1,
                                                       .flops = GeluFlops,
                                                       .input_types = "T",
                                                       .tensorflow = {ops::kNotInFiles}});

}  // namespace
}  // namespace floe
