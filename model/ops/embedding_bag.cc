// EmbeddingBag: the sum, or the mean, of the rows of a table that each bag of indices names. A pass
// makes it of a Gather and a reduction; no file holds it.
//
// Inputs: table float32[entries, features], indices of integers [..., bag]. Output: float32[...,
// features]. Attribute "mean".
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

absl::StatusOr<Types> InferEmbeddingBag(const InferContext& c) {
  const SymShape &table = c.shape(0), &indices = c.shape(1);
  if (!table.rank_known() || !indices.rank_known())
    return ops::One(c.dtype(0), SymShape::UnknownRank());
  if (indices.rank() == 0) return Bad("the indices are a scalar");
  SymShape out = indices;
  out.set_dim(indices.rank() - 1, table.dim(1));
  return ops::One(c.dtype(0), std::move(out));
}

// Bags of one request row each or more.
RowMark EmbeddingBagRows(const RowContext& c) {
  const SymShape& indices = c.inputs[1].type.shape;
  const bool keeps =
      c.marks[0] == RowMark::kConstant && indices.rank_known() && indices.rank() >= 2;
  return ops::MarkOfData(c, 1, keeps);
}

double EmbeddingBagFlops(const Node&, absl::Span<const TensorType> in, absl::Span<const TensorType>,
                         int64_t rows) {
  if (!in[0].shape.known() || !in[1].shape.known()) return 0;
  return static_cast<double>(in[1].shape.At(rows).elements()) *
         static_cast<double>(in[0].shape.At(rows).dim(1));
}

const OpRegistrar kEmbeddingBag({.name = "EmbeddingBag",
                                 .infer = InferEmbeddingBag,
                                 .rows = EmbeddingBagRows,
                                 .flops = EmbeddingBagFlops,
                                 .input_types = "T[_,_] U",
                                 .tensorflow = {ops::kNotInFiles}});

}  // namespace
}  // namespace floe
