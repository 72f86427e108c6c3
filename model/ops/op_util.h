// What the op files share: reading constant inputs, joining shapes, and the parts row rules are
// made of.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "model/op_def.h"

namespace floe::ops {

inline Types One(DType dtype, SymShape shape) { return {TensorType{dtype, std::move(shape)}}; }

SymShape UnknownDims(int rank);
// A vector of a length that only the run tells.
TensorType UnknownVector(DType dtype);
// Dim `axis` of input i; unknown where its rank is, or is too low.
Dim DimOf(const InferContext& c, int i, int axis);
// Of ops without outputs.
absl::StatusOr<Types> InferNothing(const InferContext& c);
// A value of type `kDType` for each element of input 0.
template <DType kDType>
absl::StatusOr<Types> InferEach(const InferContext& c) {
  return One(kDType, c.shape(0));
}

// The attribute `name` as a dtype, or `otherwise`.
DType TypeAttr(const InferContext& c, const std::string& name, DType otherwise);

// Integers of a known value that does not depend on rows; false otherwise.
bool ConstantInts(const ValueInfo& value, std::vector<int64_t>* out);

// The shape that both describe: known dims win over unknown ones. INVALID_ARGUMENT when they
// contradict each other; a number against a dim in rows gives an unknown dim, since it may hold for
// some number of rows.
absl::StatusOr<SymShape> Merge(const SymShape& a, const SymShape& b);

// Sizes that cannot be equal for every number of rows. A rule that refuses them is asked again with
// the request's own sizes, and kernels may count on the two being equal.
inline bool Differ(Dim a, Dim b) { return a.known() && b.known() && a != b; }

// Rank of input i when known, otherwise -1.
inline int RankOf(const InferContext& c, int i) {
  return c.shape(i).rank_known() ? c.shape(i).rank() : -1;
}

// Dims of the integer vector input `i`; unknown dims when only its length is known.
absl::StatusOr<SymShape> ShapeFrom(const InferContext& c, int i);

// INVALID_ARGUMENT unless the rank is unknown or `rank`.
absl::Status ExpectRank(const InferContext& c, int input, int rank);

// That the bias of the epilogue, if there is one, holds one number for each of the channels.
absl::Status CheckFusedBias(const InferContext& c, Dim channels);
absl::Status ExpectInputs(const InferContext& c, int count);

// The axis that input i, one number, names of a value of this rank; -1 while it is not known.
absl::StatusOr<int> AxisFrom(const InferContext& c, int i, int rank);
// A number of at least `least` in input i; unknown while it is not known. `what`: in the error.
absl::StatusOr<Dim> NumberFrom(const InferContext& c, int i, const char* what, int64_t least = 0);

// INVALID_ARGUMENT unless input i is of type `dtype`.
absl::Status ExpectType(const InferContext& c, int input, DType dtype);
// INVALID_ARGUMENT unless all inputs from `first` on are of the type of input `first`.
absl::Status ExpectOneType(const InferContext& c, int first = 0);
// The attribute `name` (or `otherwise`) as the type of an output, which the kernel takes on trust:
// INVALID_ARGUMENT unless it is one of `allowed`.
absl::StatusOr<DType> TypeAttrOf(const InferContext& c, const std::string& name, DType otherwise,
                                 std::initializer_list<DType> allowed);
// The same for a type of indices: int32 or int64.
absl::StatusOr<DType> IndexTypeAttr(const InferContext& c, const std::string& name,
                                    DType otherwise);

// ---- row rules ----

// Dim 0 is k * rows, k > 0, and every other dim is a number.
bool LeadingRows(const TensorType& type);
bool DependsOnRows(const TensorType& type);  // some dim has rows, or is unknown

// Corrects a mark by the type of the outputs: kRows needs leading rows in output 0, kConstant a
// shape without rows. A constant whose shape has leading rows stays kMixed.
RowMark Checked(RowMark mark, const RowContext& c);
// Of an op whose outputs depend on every row.
RowMark NoRows(const RowContext& c);
// Of an op that no rule lets keep rows: kUnknown where an input is, else kMixed.
RowMark Lost(const RowContext& c);

// The mark of an op that rearranges input `data`; its other inputs are known now. `keeps`: rows of
// the data stay whole and in order.
RowMark MarkOfData(const RowContext& c, int data, bool keeps);

// Rows of input 0 stay rows where it has `kRank` dims or more.
template <int kRank>
RowMark RowsFromRank(const RowContext& c) {
  const SymShape& in = c.inputs[0].type.shape;
  return MarkOfData(c, 0, in.rank_known() && in.rank() >= kRank);
}
// The same, where the other inputs are constant.
template <int kRank>
RowMark RowsFromRankAlone(const RowContext& c) {
  return c.OthersConstant(1) ? RowsFromRank<kRank>(c) : RowsNever(c);
}
// Of ops that only a run tells what they give, such as random numbers.
inline RowMark AlwaysMixed(const RowContext&) { return RowMark::kMixed; }
// Whether inputs 0 and 1, of these ranks, have rows that go together; the others are constant.
bool PairedRows(const RowContext& c, int rank0, int rank1);

// ---- definitions ----

using InferFunction = absl::StatusOr<Types> (*)(const InferContext&);

// The only name of TensorFlow's that an op has which passes make.
inline constexpr char kNotInFiles[] = "";

OpDef Simple(const std::string& name, InferFunction infer, RowRule rows);
// Every output depends on all rows. `outputs`: OpDef::output_names.
OpDef MixingRows(const std::string& name, std::vector<std::string> outputs, InferFunction infer);
// The same, with outputs whose sizes the run settles.
OpDef Allocating(const std::string& name, std::vector<std::string> outputs, InferFunction infer);

// Registers ops that differ in nothing but their names.
class Family {
 public:
  Family(std::initializer_list<const char*> names, const OpDef& def);
};
// Registers one op that has other names of TensorFlow's, too.
class Synonyms {
 public:
  Synonyms(std::vector<std::string> names, OpDef def);
};

}  // namespace floe::ops
