#include "model/ops/op_util.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace floe::ops {

TensorType UnknownVector(DType dtype) { return {dtype, {Dim::Unknown()}}; }

Dim DimOf(const InferContext& c, int i, int axis) {
  const SymShape& shape = c.shape(i);
  return shape.rank_known() && axis < shape.rank() ? shape.dim(axis) : Dim::Unknown();
}

absl::StatusOr<Types> InferNothing(const InferContext&) { return Types(); }

SymShape UnknownDims(int rank) {
  constexpr int kMaxRank = 254;  // more are refused once they are known
  if (rank < 0 || rank > kMaxRank) return SymShape::UnknownRank();
  SymShape shape;
  for (int i = 0; i < rank; ++i) shape.push_back(Dim::Unknown());
  return shape;
}

DType TypeAttr(const InferContext& c, const std::string& name, DType otherwise) {
  return c.attrs().Type(name, otherwise);
}

bool ConstantInts(const ValueInfo& value, std::vector<int64_t>* out) {
  if (!value.has_constant()) return false;
  auto values = IntegerValues(value.constant.view());
  if (!values.ok()) return false;
  *out = *std::move(values);
  return true;
}

absl::StatusOr<SymShape> Merge(const SymShape& a, const SymShape& b) {
  if (!a.rank_known()) return b;
  if (!b.rank_known()) return a;
  const auto contradiction = [&] {
    return Bad(absl::StrCat("shapes ", a.ToString(), " and ", b.ToString(), " must be equal"));
  };
  if (a.rank() != b.rank()) return contradiction();
  SymShape merged = a;
  for (int i = 0; i < a.rank(); ++i) {
    if (a.dim(i) == b.dim(i) || !b.dim(i).known()) continue;
    if (!a.dim(i).known()) {
      merged.set_dim(i, b.dim(i));
    } else if (a.dim(i).concrete() && b.dim(i).concrete()) {
      return contradiction();
    } else {
      merged.set_dim(i, Dim::Unknown());
    }
  }
  return merged;
}

absl::Status ExpectType(const InferContext& c, int input, DType dtype) {
  if (c.dtype(input) == dtype) return absl::OkStatus();
  return Bad(absl::StrCat("input ", input, " is ", DTypeName(c.dtype(input)), ", expected ",
                          DTypeName(dtype)));
}

absl::Status ExpectOneType(const InferContext& c, int first) {
  for (int i = first + 1; i < c.num_inputs(); ++i)
    FLOE_RETURN_IF_ERROR(ExpectType(c, i, c.dtype(first)));
  return absl::OkStatus();
}

absl::Status CheckFusedBias(const InferContext& c, Dim channels) {
  const int input = EpilogueOf(c.attrs()).bias;
  if (input < 0) return absl::OkStatus();
  FLOE_RETURN_IF_ERROR(ExpectRank(c, input, 1));
  const SymShape& bias = c.shape(input);
  if (bias.rank_known() && Differ(bias.dim(0), channels))
    return Bad(absl::StrCat("bias ", bias.ToString(), " for ", channels.size(), " channels"));
  return absl::OkStatus();
}

absl::Status ExpectInputs(const InferContext& c, int count) {
  if (c.num_inputs() == count) return absl::OkStatus();
  return Bad(absl::StrCat("has ", c.num_inputs(), " inputs, expected ", count));
}

absl::StatusOr<DType> TypeAttrOf(const InferContext& c, const std::string& name, DType otherwise,
                                 std::initializer_list<DType> allowed) {
  const DType dtype = TypeAttr(c, name, otherwise);
  std::string names;
  for (const DType one : allowed) {
    if (dtype == one) return dtype;
    absl::StrAppend(&names, names.empty() ? "" : ", ", DTypeName(one));
  }
  return Bad(
      absl::StrCat("attribute ", name, " is ", DTypeName(dtype), ", expected one of ", names));
}

absl::StatusOr<DType> IndexTypeAttr(const InferContext& c, const std::string& name,
                                    DType otherwise) {
  return TypeAttrOf(c, name, otherwise, {DType::kInt32, DType::kInt64});
}

absl::Status ExpectRank(const InferContext& c, int input, int rank) {
  const int found = RankOf(c, input);
  if (found < 0 || found == rank) return absl::OkStatus();
  return Bad(absl::StrCat("input ", input, " has shape ", c.shape(input).ToString(),
                          ", expected rank ", rank));
}

absl::StatusOr<int> AxisFrom(const InferContext& c, int i, int rank) {
  std::vector<int64_t> axis;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.IntsOf(i, &axis));
  if (!known) return -1;
  if (axis.size() == 1) return NormalizeAxis(axis[0], rank);
  return Bad(absl::StrCat("the axis has ", axis.size(), " elements, expected 1"));
}

absl::StatusOr<Dim> NumberFrom(const InferContext& c, int i, const char* what, int64_t least) {
  std::vector<int64_t> value;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.IntsOf(i, &value));
  if (!known) return Dim::Unknown();
  if (value.size() == 1 && value[0] >= least) return Dim(value[0]);
  return Bad(absl::StrCat(what, " is no number of at least ", least));
}

absl::StatusOr<SymShape> ShapeFrom(const InferContext& c, int i) {
  std::vector<Dim> dims;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.DimsOf(i, &dims));
  if (!known) {
    const SymShape& shape = c.shape(i);
    if (!shape.rank_known() || shape.rank() != 1 || !shape.dim(0).concrete())
      return SymShape::UnknownRank();
    return UnknownDims(static_cast<int>(shape.dim(0).size()));
  }
  SymShape shape;
  for (Dim d : dims) {
    if (d.concrete() && d.size() < 0)
      return Bad(absl::StrCat("dimension ", d.size(), " is negative"));
    shape.push_back(d);
  }
  return shape;
}

bool LeadingRows(const TensorType& type) {
  const SymShape& shape = type.shape;
  if (!shape.rank_known() || shape.rank() == 0) return false;
  const Dim rows = shape.dim(0);
  if (!rows.has_rows() || rows.base() != 0 || rows.per_row() <= 0) return false;
  for (int i = 1; i < shape.rank(); ++i) {
    if (!shape.dim(i).concrete()) return false;
  }
  return true;
}

bool DependsOnRows(const TensorType& type) { return !type.shape.concrete(); }

RowMark Checked(RowMark mark, const RowContext& c) {
  if (mark == RowMark::kRows && !LeadingRows(c.outputs[0])) return RowMark::kMixed;
  if (mark == RowMark::kConstant) {
    for (const TensorType& type : c.outputs) {
      if (DependsOnRows(type)) return RowMark::kMixed;
    }
  }
  return mark;
}

RowMark Lost(const RowContext& c) {
  const bool unknown =
      std::find(c.marks.begin(), c.marks.end(), RowMark::kUnknown) != c.marks.end();
  return unknown ? RowMark::kUnknown : RowMark::kMixed;
}

RowMark NoRows(const RowContext& c) { return Checked(RowsNever(c), c); }

RowMark MarkOfData(const RowContext& c, int data, bool keeps) {
  RowMark mark = c.marks[data];
  if (mark == RowMark::kRows && !keeps) mark = RowMark::kMixed;
  return Checked(mark, c);
}

bool PairedRows(const RowContext& c, int rank0, int rank1) {
  const SymShape &a = c.inputs[0].type.shape, &b = c.inputs[1].type.shape;
  return c.OthersConstant(2) && c.marks[0] == RowMark::kRows && c.marks[1] == RowMark::kRows &&
         a.rank_known() && b.rank_known() && a.rank() == rank0 && b.rank() == rank1 &&
         a.dim(0) == b.dim(0);
}

OpDef Simple(const std::string& name, InferFunction infer, RowRule rows) {
  return {.name = name, .infer = infer, .rows = rows};
}

OpDef MixingRows(const std::string& name, std::vector<std::string> outputs, InferFunction infer) {
  return {.name = name, .output_names = std::move(outputs), .infer = infer, .rows = RowsNever};
}

OpDef Allocating(const std::string& name, std::vector<std::string> outputs, InferFunction infer) {
  OpDef def = MixingRows(name, std::move(outputs), infer);
  def.allocates = true;
  return def;
}

Family::Family(std::initializer_list<const char*> names, const OpDef& def) {
  for (const char* name : names) {
    OpDef one = def;
    one.name = name;
    OpRegistrar(std::move(one));
  }
}

Synonyms::Synonyms(std::vector<std::string> names, OpDef def) {
  def.name = names[0];
  def.tensorflow = std::move(names);
  OpRegistrar(std::move(def));
}

}  // namespace floe::ops
