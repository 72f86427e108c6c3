// Numbers clipped, put together and taken apart: ClipByValue, Complex, Bitcast and their like.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

OpDef Elementwise(const std::string& name, int inputs,
                  absl::StatusOr<Types> (*infer)(const InferContext&)) {
  return ops::Simple(name, inputs, infer, RowsElementwise);
}

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

absl::StatusOr<Types> InferBitCount(const InferContext& c) {
  return ops::One(DType::kUInt8, c.shape(0));
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
OpDef Bitcast() {
  OpDef def = Elementwise("Bitcast", 1, InferBitcast);
  def.rows = BitcastRows;
  return def;
}
OpDef L2Loss() {
  OpDef def = Elementwise("L2Loss", 1, InferScalar);
  def.rows = RowsNever;
  return def;
}

// Two shapes -> the shape that they broadcast to.
absl::StatusOr<Types> InferBroadcastArgs(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 0, 1));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 1, 1));
  Dim rank = Dim::Unknown();
  if (ops::RankOf(c, 0) == 1 && ops::RankOf(c, 1) == 1 && c.shape(0).dim(0).concrete() &&
      c.shape(1).dim(0).concrete())
    rank = Dim(std::max(c.shape(0).dim(0).size(), c.shape(1).dim(0).size()));
  return ops::One(c.dtype(0), {rank});
}
OpDef BroadcastArgs() {
  OpDef def = Elementwise("BroadcastArgs", 2, InferBroadcastArgs);
  def.rows = ops::NoRows;
  return def;
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
OpDef Mixing(const std::string& name, absl::StatusOr<Types> (*infer)(const InferContext&)) {
  OpDef def = Elementwise(name, 1, infer);
  def.rows = ops::NoRows;
  return def;
}

const OpRegistrar kNumbers[] = {
    OpRegistrar(Mixing("Diag", InferTensorDiag)),
    OpRegistrar(Mixing("DiagPart", InferTensorDiagPart)),
    OpRegistrar(BroadcastArgs(), "i i"),
    OpRegistrar(Elementwise("ClipByValue", 3, InferClip), "T T T"),
    OpRegistrar(Elementwise("Complex", 2, InferComplex), "T T"),
    OpRegistrar(Elementwise("Angle", 1, InferAngle)),
    OpRegistrar(Elementwise("MulNoNan", 2, InferSameType), "T T"),
    OpRegistrar(Elementwise("NextAfter", 2, InferSameType), "T T"),
    OpRegistrar(Elementwise("Erfinv", 1, InferSame)),
    OpRegistrar(Elementwise("PopulationCount", 1, InferBitCount)),
    OpRegistrar(Elementwise("ApproximateEqual", 2, InferApproximate), "T T"),
    OpRegistrar(Bitcast()),
    OpRegistrar(L2Loss()),
};

}  // namespace
}  // namespace floe
