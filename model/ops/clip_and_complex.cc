// Numbers clipped, put together and taken apart: ClipByValue, Complex, Bitcast and their like.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

// Bounds are scalars or have the shape of the values.
absl::StatusOr<Types> InferClip(const InferContext& c) {
  SymShape shape = c.shape(0);
  for (int i = 1; i < 3; ++i) {
    if (ops::RankOf(c, i) == 0) continue;
    FLOE_ASSIGN_OR_RETURN(shape, ops::Merge(shape, c.shape(i)));
  }
  return ops::One(c.dtype(0), std::move(shape));
}

absl::StatusOr<Types> InferSameType(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(SymShape shape, BroadcastShapes(c.shape(0), c.shape(1)));
  return ops::One(c.dtype(0), std::move(shape));
}

absl::StatusOr<Types> InferComplex(const InferContext& c) {
  const DType whole = c.dtype(0) == DType::kFloat64 ? DType::kComplex128 : DType::kComplex64;
  if (ops::TypeAttr(c, "Tout", whole) != whole)
    return Bad(absl::StrCat("attribute Tout is not ", DTypeName(whole)));
  FLOE_ASSIGN_OR_RETURN(Types types, InferSameType(c));
  types[0].dtype = whole;
  return types;
}

absl::StatusOr<Types> InferAngle(const InferContext& c) {
  const DType part = c.dtype(0) == DType::kComplex128 ? DType::kFloat64 : DType::kFloat32;
  if (ops::TypeAttr(c, "Tout", part) != part)
    return Bad(absl::StrCat("attribute Tout is not ", DTypeName(part)));
  return ops::One(part, c.shape(0));
}

absl::StatusOr<Types> InferApproximate(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(SymShape shape, ops::Merge(c.shape(0), c.shape(1)));
  return ops::One(DType::kBool, std::move(shape));
}

absl::StatusOr<Types> InferScalar(const InferContext& c) { return ops::One(c.dtype(0), {}); }

// Elements of another size take up, or make, a last dim.
absl::StatusOr<Types> InferBitcast(const InferContext& c) {
  const DType to = ops::TypeAttr(c, "type", DType::kInvalid);
  const size_t from_size = DTypeSize(c.dtype(0)), to_size = DTypeSize(to);
  for (const DType dtype : {to, c.dtype(0)}) {
    if (dtype == DType::kInvalid || dtype == DType::kString || dtype == DType::kBool ||
        DTypeSize(dtype) == 0)
      return Bad(
          absl::StrCat("cannot cast the bits of ", DTypeName(c.dtype(0)), " to ", DTypeName(to)));
  }
  SymShape shape = c.shape(0);
  if (!shape.rank_known() || from_size == to_size) return ops::One(to, std::move(shape));
  if (from_size > to_size) {
    shape.push_back(static_cast<int64_t>(from_size / to_size));
    return ops::One(to, std::move(shape));
  }
  const auto parts = static_cast<int64_t>(to_size / from_size);
  const Dim last = shape.rank() == 0 ? Dim(0) : shape.dim(shape.rank() - 1);
  if (last.known() && last != Dim(parts))
    return Bad(
        absl::StrCat("input has shape ", shape.ToString(), ", expected a last dim of ", parts));
  SymShape out;
  for (int i = 0; i + 1 < shape.rank(); ++i) out.push_back(shape.dim(i));
  return ops::One(to, std::move(out));
}
RowMark BitcastRows(const RowContext& c) {
  const SymShape &in = c.inputs[0].type.shape, &out = c.outputs[0].shape;
  return ops::MarkOfData(c, 0,
                         in.rank_known() && in.rank() > 0 && out.rank_known() && out.rank() > 0);
}

// Two shapes -> the shape that they broadcast to.
absl::StatusOr<Types> InferBroadcastArgs(const InferContext& c) {
  const Dim a = ops::DimOf(c, 0, 0), b = ops::DimOf(c, 1, 0);
  const bool known = a.concrete() && b.concrete();
  return ops::One(c.dtype(0), {known ? Dim(std::max(a.size(), b.size())) : Dim::Unknown()});
}

// A tensor on the diagonal of one with its dims twice; and back.
absl::StatusOr<Types> InferTensorDiag(const InferContext& c) {
  SymShape out = c.shape(0);
  if (!out.rank_known()) return ops::One(c.dtype(0), out);
  if (out.rank() == 0) return Bad("diagonal is a scalar");
  for (int i = 0; i < c.shape(0).rank(); ++i) out.push_back(c.shape(0).dim(i));
  return ops::One(c.dtype(0), std::move(out));
}
absl::StatusOr<Types> InferTensorDiagPart(const InferContext& c) {
  const SymShape& in = c.shape(0);
  if (!in.rank_known()) return ops::One(c.dtype(0), in);
  if (in.rank() == 0 || in.rank() % 2 != 0)
    return Bad(absl::StrCat("input has shape ", in.ToString(), ", expected an even rank"));
  SymShape out;
  for (int i = 0; i < in.rank() / 2; ++i) {
    if (ops::Differ(in.dim(i), in.dim(i + in.rank() / 2)))
      return Bad(absl::StrCat("input has shape ", in.ToString(), ", expected the same dims twice"));
    out.push_back(in.dim(i));
  }
  return ops::One(c.dtype(0), std::move(out));
}

OpDef Numbers(const char* name, ops::InferFunction infer) {
  return ops::Simple(name, infer, RowsElementwise);
}

const OpRegistrar kNumbers[] = {
    OpRegistrar(ops::Simple("Diag", InferTensorDiag, ops::NoRows), "T"),
    OpRegistrar(ops::Simple("DiagPart", InferTensorDiagPart, ops::NoRows), "T"),
    OpRegistrar(ops::Simple("BroadcastArgs", InferBroadcastArgs, ops::NoRows), "i[_] i[_]"),
    OpRegistrar(Numbers("ClipByValue", InferClip), "T T T"),
    OpRegistrar(Numbers("Complex", InferComplex), "T T"),
    OpRegistrar(Numbers("Angle", InferAngle), "T"),
    OpRegistrar(Numbers("MulNoNan", InferSameType), "T T"),
    OpRegistrar(Numbers("NextAfter", InferSameType), "T T"),
    OpRegistrar(Numbers("Erfinv", InferSame), "T"),
    OpRegistrar(Numbers("PopulationCount", ops::InferEach<DType::kUInt8>), "T"),
    OpRegistrar(Numbers("ApproximateEqual", InferApproximate), "T T"),
    OpRegistrar(ops::Simple("Bitcast", InferBitcast, BitcastRows), "T"),
    OpRegistrar(ops::Simple("L2Loss", InferScalar, RowsNever), "T"),
};

}  // namespace
}  // namespace floe
