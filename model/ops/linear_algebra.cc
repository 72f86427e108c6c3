// Ops on the matrices in the last two dims of their inputs: solving and decompositions.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

bool Known(const InferContext& c, int i) { return c.shape(i).rank_known(); }
// Dim of input i, counted from the last one; unknown where the rank is.
Dim FromEnd(const InferContext& c, int i, int k) {
  return Known(c, i) ? c.shape(i).dim(c.shape(i).rank() - 1 - k) : Dim::Unknown();
}

absl::Status ExpectMatrices(const InferContext& c, int i) {
  if (!Known(c, i) || c.shape(i).rank() >= 2) return absl::OkStatus();
  return Bad(
      absl::StrCat("input ", i, " has shape ", c.shape(i).ToString(), ", expected matrices"));
}
// Every op here but those of three diagonals. Complex matrices have no kernels (matrices.h).
absl::Status ExpectRealMatrices(const InferContext& c, int i) {
  if (c.dtype(i) == DType::kComplex64 || c.dtype(i) == DType::kComplex128) {
    return absl::UnimplementedError(absl::StrCat(
        "matrices of ", DTypeName(c.dtype(i)),
        ": floe solves and decomposes real matrices alone; do it before the request, or put real "
        "and imaginary parts into one real matrix [[re, -im], [im, re]]"));
  }
  return ExpectMatrices(c, i);
}
absl::Status ExpectSquare(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ExpectRealMatrices(c, 0));
  if (!ops::Differ(FromEnd(c, 0, 0), FromEnd(c, 0, 1))) return absl::OkStatus();
  return Bad(absl::StrCat("matrices of ", c.shape(0).ToString(), " are not square"));
}

// The dims before the last two.
SymShape BatchOf(const SymShape& shape) {
  if (!shape.rank_known()) return shape;
  SymShape batch;
  for (int i = 0; i + 2 < shape.rank(); ++i) batch.push_back(shape.dim(i));
  return batch;
}
TensorType With(const InferContext& c, const SymShape& batch, std::initializer_list<Dim> dims) {
  SymShape shape = batch;
  if (shape.rank_known()) {
    for (Dim dim : dims) shape.push_back(dim);
  }
  return {c.dtype(0), std::move(shape)};
}

// Smaller of the two; unknown where that is not known.
Dim Least(Dim a, Dim b) {
  if (a == b) return a;
  return a.concrete() && b.concrete() ? Dim(std::min(a.size(), b.size())) : Dim::Unknown();
}

absl::StatusOr<Types> InferSquare(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ExpectSquare(c));
  return InferSame(c);
}

absl::StatusOr<Types> InferDeterminant(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ExpectSquare(c));
  return ops::One(c.dtype(0), BatchOf(c.shape(0)));
}
absl::StatusOr<Types> InferLogDeterminant(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(Types types, InferDeterminant(c));
  types.push_back(types[0]);
  return types;
}

// The batch dims of inputs 0 and 1, whose numbers of rows must agree.
absl::StatusOr<SymShape> SystemBatch(const InferContext& c, bool broadcasts) {
  FLOE_RETURN_IF_ERROR(ops::ExpectOneType(c));
  FLOE_RETURN_IF_ERROR(ExpectRealMatrices(c, 0));
  FLOE_RETURN_IF_ERROR(ExpectMatrices(c, 1));
  if (ops::Differ(FromEnd(c, 0, 1), FromEnd(c, 1, 1))) {
    return Bad(absl::StrCat("matrices of ", c.shape(0).ToString(), " and right sides of ",
                            c.shape(1).ToString(), " have different numbers of rows"));
  }
  const SymShape a = BatchOf(c.shape(0)), b = BatchOf(c.shape(1));
  if (!broadcasts) return ops::Merge(a, b);
  if (!a.rank_known() || !b.rank_known()) return SymShape::UnknownRank();
  return BroadcastShapes(a, b);
}

template <bool kBroadcasts>
absl::StatusOr<Types> InferSolve(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ExpectSquare(c));
  FLOE_ASSIGN_OR_RETURN(const SymShape batch, SystemBatch(c, kBroadcasts));
  return Types{With(c, batch, {FromEnd(c, 0, 0), FromEnd(c, 1, 0)})};
}

// Diagonals [..., k, n] and right sides [..., n, m].
absl::StatusOr<Types> InferBandedSolve(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectOneType(c));
  FLOE_RETURN_IF_ERROR(ExpectRealMatrices(c, 0));
  FLOE_RETURN_IF_ERROR(ExpectMatrices(c, 1));
  const Dim bands = FromEnd(c, 0, 1), n = FromEnd(c, 0, 0);
  if (bands == Dim(0) || (bands.concrete() && n.concrete() && bands.size() > n.size()))
    return Bad(
        absl::StrCat("the bands of ", c.shape(0).ToString(), " are not 1 to ", n.ToString()));
  if (ops::Differ(n, FromEnd(c, 1, 1)))
    return Bad(absl::StrCat("bands of ", c.shape(0).ToString(), " and right sides of ",
                            c.shape(1).ToString(), " have different lengths"));
  const SymShape a = BatchOf(c.shape(0)), b = BatchOf(c.shape(1));
  SymShape batch = SymShape::UnknownRank();
  if (a.rank_known() && b.rank_known()) {
    FLOE_ASSIGN_OR_RETURN(batch, BroadcastShapes(a, b));
  }
  return Types{With(c, batch, {n, FromEnd(c, 1, 0)})};
}

absl::StatusOr<Types> InferSolveLs(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectType(c, 2, DType::kFloat64));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 2, 0));
  const InferContext system{c.node, c.inputs.subspan(0, 2)};
  FLOE_ASSIGN_OR_RETURN(const SymShape batch, SystemBatch(system, false));
  return Types{With(c, batch, {FromEnd(c, 0, 0), FromEnd(c, 1, 0)})};
}

absl::StatusOr<Types> InferLu(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ExpectSquare(c));
  FLOE_ASSIGN_OR_RETURN(const DType index, ops::IndexTypeAttr(c, "output_idx_type", DType::kInt32));
  TensorType permutation = With(c, BatchOf(c.shape(0)), {FromEnd(c, 0, 0)});
  permutation.dtype = index;
  return Types{{c.dtype(0), c.shape(0)}, permutation};
}

absl::StatusOr<Types> InferQr(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ExpectRealMatrices(c, 0));
  const Dim m = FromEnd(c, 0, 1), n = FromEnd(c, 0, 0);
  const Dim inner = c.attrs().Bool("full_matrices") ? m : Least(m, n);
  const SymShape batch = BatchOf(c.shape(0));
  return Types{With(c, batch, {m, inner}), With(c, batch, {inner, n})};
}

// Vectors that are not asked for have no elements, but rows.
absl::StatusOr<Types> InferSvd(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ExpectRealMatrices(c, 0));
  const Dim m = FromEnd(c, 0, 1), n = FromEnd(c, 0, 0), least = Least(m, n);
  const SymShape batch = BatchOf(c.shape(0));
  const TensorType s = With(c, batch, {least}), none = With(c, batch, {Dim(0)});
  if (!c.attrs().Bool("compute_uv", true)) return Types{s, none, none};
  const bool full = c.attrs().Bool("full_matrices");
  return Types{s, With(c, batch, {m, full ? m : least}), With(c, batch, {n, full ? n : least})};
}

absl::StatusOr<Types> InferEigen(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ExpectSquare(c));
  const TensorType values = With(c, BatchOf(c.shape(0)), {FromEnd(c, 0, 0)});
  if (c.attrs().Bool("compute_v", true)) return Types{values, {c.dtype(0), c.shape(0)}};
  return Types{values, With(c, BatchOf(c.shape(0)), {Dim(0)})};
}

// Complex ones of any square matrix.
absl::StatusOr<Types> InferGeneralEigen(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(
      const DType dtype,
      ops::TypeAttrOf(c, "Tout", DType::kComplex64, {DType::kComplex64, DType::kComplex128}));
  FLOE_ASSIGN_OR_RETURN(Types types, InferEigen(c));
  for (TensorType& type : types) type.dtype = dtype;
  return types;
}

absl::StatusOr<Types> InferCross(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectOneType(c));
  FLOE_ASSIGN_OR_RETURN(SymShape shape, ops::Merge(c.shape(0), c.shape(1)));
  if (!shape.rank_known()) return ops::One(c.dtype(0), std::move(shape));
  if (shape.rank() == 0 || ops::Differ(shape.dim(shape.rank() - 1), Dim(3)))
    return Bad(absl::StrCat("inputs of ", shape.ToString(), " are not vectors of 3 elements"));
  return ops::One(c.dtype(0), std::move(shape));
}

absl::StatusOr<Types> InferTridiagonal(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectOneType(c));
  FLOE_RETURN_IF_ERROR(ExpectMatrices(c, 0));
  FLOE_RETURN_IF_ERROR(ExpectMatrices(c, 1));
  if (ops::Differ(FromEnd(c, 0, 1), Dim(3)))
    return Bad(absl::StrCat("diagonals of ", c.shape(0).ToString(), " are not three"));
  if (ops::Differ(FromEnd(c, 0, 0), FromEnd(c, 1, 1))) {
    return Bad(absl::StrCat("diagonals of ", c.shape(0).ToString(), " and right sides of ",
                            c.shape(1).ToString(), " have different lengths"));
  }
  FLOE_ASSIGN_OR_RETURN(const SymShape batch, ops::Merge(BatchOf(c.shape(0)), BatchOf(c.shape(1))));
  return Types{With(c, batch, {FromEnd(c, 1, 1), FromEnd(c, 1, 0)})};
}

// Matrices of input 0 come by rows.
RowMark MatrixRows(const RowContext& c) {
  const SymShape& in = c.inputs[0].type.shape;
  return ops::MarkOfData(c, 0, in.rank_known() && in.rank() >= 3);
}

// Both inputs come by rows, of `kElement` dims each; where they broadcast, one may be the same for
// all rows.
template <int kElement, bool kBroadcasts>
RowMark PairRows(const RowContext& c) {
  const RowMark worst = RowsNever(c);
  const SymShape& out = c.outputs[0].shape;
  if (worst != RowMark::kMixed || !out.rank_known() || out.rank() <= kElement) return worst;
  bool any = false;
  for (size_t i = 0; i < 2; ++i) {
    const SymShape& in = c.inputs[i].type.shape;
    if (!in.rank_known()) return RowMark::kMixed;
    if (c.marks[i] == RowMark::kRows && in.rank() == out.rank() && in.dim(0) == out.dim(0)) {
      any = true;
    } else if (!kBroadcasts || c.marks[i] != RowMark::kConstant ||
               (in.rank() == out.rank() && in.dim(0) != Dim(1))) {
      return RowMark::kMixed;
    }
  }
  if (c.inputs.size() > 2 && c.marks[2] != RowMark::kConstant) return RowMark::kMixed;
  return any ? ops::Checked(RowMark::kRows, c) : RowMark::kMixed;
}

OpDef Op(const std::string& name, int inputs, absl::StatusOr<Types> (*infer)(const InferContext&),
         RowRule rows, std::vector<std::string> outputs = {}) {
  return {.name = name,
          .min_inputs = inputs,
          .max_inputs = inputs,
          .output_names = std::move(outputs),
          .infer = infer,
          .rows = rows};
}
// Three diagonals, matrices.
absl::StatusOr<Types> InferTridiagonalProduct(const InferContext& c) {
  if (c.shape(3).rank_known() && c.shape(3).rank() < 2)
    return Bad(absl::StrCat("rhs has shape ", c.shape(3).ToString(), ", expected matrices"));
  return ops::One(c.dtype(3), c.shape(3));
}

const OpRegistrar kMatrices[] = {
    OpRegistrar(Op("MatrixInverse", 1, InferSquare, MatrixRows)),
    OpRegistrar(Op("Cholesky", 1, InferSquare, MatrixRows)),
    OpRegistrar(Op("MatrixDeterminant", 1, InferDeterminant, MatrixRows)),
    OpRegistrar(Op("LogMatrixDeterminant", 1, InferLogDeterminant, MatrixRows,
                   {"sign", "log_abs_determinant"})),
    OpRegistrar(Op("Lu", 1, InferLu, MatrixRows, {"lu", "p"})),
    OpRegistrar(Op("Qr", 1, InferQr, MatrixRows, {"q", "r"})),
    OpRegistrar(Op("Svd", 1, InferSvd, MatrixRows, {"s", "u", "v"})),
    OpRegistrar(Op("SelfAdjointEigV2", 1, InferEigen, MatrixRows, {"e", "v"})),
    OpRegistrar(Op("Eig", 1, InferGeneralEigen, MatrixRows, {"e", "v"})),
    OpRegistrar(Op("BandedTriangularSolve", 2, InferBandedSolve, PairRows<2, true>)),
    OpRegistrar(Op("MatrixSolve", 2, InferSolve<false>, PairRows<2, false>)),
    OpRegistrar(Op("MatrixTriangularSolve", 2, InferSolve<true>, PairRows<2, true>)),
    OpRegistrar(Op("MatrixSolveLs", 3, InferSolveLs, PairRows<2, false>)),
    OpRegistrar(Op("TridiagonalSolve", 2, InferTridiagonal, PairRows<2, false>)),
    OpRegistrar(ops::Simple("TridiagonalMatMul", InferTridiagonalProduct, ops::NoRows), "T T T T"),
    OpRegistrar(Op("Cross", 2, InferCross, PairRows<1, false>)),
};

}  // namespace
}  // namespace floe
