// MatMul of two matrices and BatchMatMul with broadcast batch dims. Both may carry a bias and an
// activation, as an Epilogue.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

// Dims that are numbers and differ can never be multiplied.
bool Contradict(Dim a, Dim b) { return a.concrete() && b.concrete() && a != b; }

absl::Status CheckArity(const InferContext& c) {
  return ops::ExpectInputs(c, 2 + EpilogueOf(c.attrs()).inputs());
}

absl::Status CheckBias(const InferContext& c, Dim columns) {
  const int input = EpilogueOf(c.attrs()).bias;
  if (input < 0) return absl::OkStatus();
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, input, 1));
  const SymShape& bias = c.shape(input);
  if (bias.rank_known() && Contradict(bias.dim(0), columns)) {
    return Bad(absl::StrCat("bias ", bias.ToString(), " for ", columns.ToString(), " columns"));
  }
  return absl::OkStatus();
}

Dim InnerDim(const SymShape& shape, bool from_end, bool transposed) {
  if (!shape.rank_known()) return Dim::Unknown();
  return shape.dim(shape.rank() - (from_end != transposed ? 1 : 2));
}

// Rows, columns and the agreement of the inner dims of the last two dims.
absl::Status InferMatrix(const InferContext& c, bool transpose_a, bool transpose_b, Dim* rows,
                         Dim* columns) {
  const Dim inner_a = InnerDim(c.shape(0), true, transpose_a),
            inner_b = InnerDim(c.shape(1), false, transpose_b);
  if (Contradict(inner_a, inner_b)) {
    return Bad(absl::StrCat("inner dims ", inner_a.ToString(), " and ", inner_b.ToString(), " of ",
                            c.shape(0).ToString(), transpose_a ? " (transposed)" : "", " and ",
                            c.shape(1).ToString(), transpose_b ? " (transposed)" : "", " differ"));
  }
  *rows = InnerDim(c.shape(0), false, transpose_a);
  *columns = InnerDim(c.shape(1), true, transpose_b);
  return CheckBias(c, *columns);
}

absl::StatusOr<Types> InferMatMul(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(CheckArity(c));
  FLOE_RETURN_IF_ERROR(ops::ExpectOneType(c));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 0, 2));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 1, 2));
  Dim rows, columns;
  FLOE_RETURN_IF_ERROR(InferMatrix(c, c.attrs().Bool("transpose_a"), c.attrs().Bool("transpose_b"),
                                   &rows, &columns));
  return ops::One(c.dtype(0), {rows, columns});
}

SymShape BatchDims(const SymShape& shape) {
  SymShape batch;
  for (int i = 0; i + 2 < shape.rank(); ++i) batch.push_back(shape.dim(i));
  return batch;
}

// Small integers multiply to int32, and weights of theirs with bfloat16 to bfloat16; otherwise all
// types are one.
absl::StatusOr<DType> BatchMatMulType(const InferContext& c) {
  const auto small = [](DType type) { return type == DType::kInt8 || type == DType::kUInt8; };
  const DType a = c.dtype(0), b = c.num_inputs() > 1 ? c.dtype(1) : a;
  const DType out = ops::TypeAttr(c, "Tout", a);
  const bool mixed = (small(a) && b == DType::kBFloat16) || (a == DType::kBFloat16 && small(b));
  const bool known = small(a) && small(b) ? out == DType::kInt32
                     : mixed              ? out == DType::kBFloat16
                                          : a == b && out == a;
  if (known) return out;
  return Bad(absl::StrCat(DTypeName(a), " times ", DTypeName(b), " cannot give ", DTypeName(out)));
}

absl::StatusOr<Types> InferBatchMatMul(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const DType type, BatchMatMulType(c));
  FLOE_RETURN_IF_ERROR(CheckArity(c));
  for (int i = 0; i < 2; ++i) {
    if (c.shape(i).rank_known() && c.shape(i).rank() < 2) {
      return Bad(absl::StrCat("input ", i, " has shape ", c.shape(i).ToString(),
                              ", expected at least two dims"));
    }
  }
  Dim rows, columns;
  FLOE_RETURN_IF_ERROR(
      InferMatrix(c, c.attrs().Bool("adj_x"), c.attrs().Bool("adj_y"), &rows, &columns));
  if (!c.shape(0).rank_known() || !c.shape(1).rank_known())
    return ops::One(type, SymShape::UnknownRank());
  FLOE_ASSIGN_OR_RETURN(SymShape out,
                        BroadcastShapes(BatchDims(c.shape(0)), BatchDims(c.shape(1))));
  out.push_back(rows);
  out.push_back(columns);
  return ops::One(type, std::move(out));
}

RowMark MatMulRows(const RowContext& c) {
  return c.node.attrs.Bool("transpose_a") ? RowsNever(c) : RowsOfInput0(c);
}

// Whether input i, a constant, is the same for every row of an output of `rank` dims.
bool SameForEveryRow(const RowContext& c, int i, int rank) {
  const SymShape& shape = c.inputs[i].type.shape;
  return shape.rank_known() && (shape.rank() < rank || shape.dim(0) == Dim(1));
}

RowMark BatchMatMulRows(const RowContext& c) {
  const RowMark worst = RowsNever(c);
  if (worst != RowMark::kMixed) return worst;  // constant or unknown
  const SymShape &a = c.inputs[0].type.shape, &b = c.inputs[1].type.shape,
                 &out = c.outputs[0].shape;
  if (!a.rank_known() || !b.rank_known() || !out.rank_known()) return RowMark::kMixed;
  if (c.inputs.size() > 2 && c.marks[2] != RowMark::kConstant) return RowMark::kMixed;
  if (out.rank() == 2) return c.node.attrs.Bool("adj_x") ? RowMark::kMixed : RowsOfInput0(c);
  bool any = false;
  for (int i = 0; i < 2; ++i) {
    const SymShape& in = c.inputs[i].type.shape;
    if (c.marks[i] == RowMark::kConstant) {
      if (!SameForEveryRow(c, i, out.rank())) return RowMark::kMixed;
    } else if (c.marks[i] == RowMark::kRows && in.rank() == out.rank() && in.dim(0) == out.dim(0)) {
      any = true;
    } else {
      return RowMark::kMixed;
    }
  }
  return any ? RowMark::kRows : RowMark::kMixed;
}

double MatMulFlops(const Node& node, absl::Span<const TensorType> in,
                   absl::Span<const TensorType> out, int64_t rows) {
  if (!out[0].shape.known() || !in[0].shape.known() || in[0].shape.rank() < 2) return 0;
  const bool transposed = node.attrs.Bool("transpose_a") || node.attrs.Bool("adj_x");
  const double inner = static_cast<double>(InnerDim(in[0].shape, true, transposed).At(rows));
  return 2 * inner * static_cast<double>(out[0].shape.At(rows).elements());
}

const OpRegistrar kMatMul({.name = "MatMul",
                           .min_inputs = 2,
                           .max_inputs = 3,
                           .infer = InferMatMul,
                           .rows = MatMulRows,
                           .flops = MatMulFlops,
                           .input_types = "T T"});
const OpRegistrar kBatchMatMul({.name = "BatchMatMul",
                                .min_inputs = 2,
                                .max_inputs = 3,
                                .infer = InferBatchMatMul,
                                .rows = BatchMatMulRows,
                                .flops = MatMulFlops,
                                .input_types = "T U",
                                .tensorflow = {"BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"}});

}  // namespace
}  // namespace floe
