#include "model/ops/diagonal.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace ops {

absl::StatusOr<Diagonals> DiagonalsOf(const Node& node, absl::Span<const int64_t> k) {
  Diagonals band;
  if (k.size() > 2) return Bad(absl::StrCat("k has ", k.size(), " elements, expected 1 or 2"));
  if (!k.empty()) {
    band.lower = k.front();
    band.upper = k.back();
  }
  if (band.lower > band.upper)
    return Bad(absl::StrCat("the band from ", band.lower, " to ", band.upper, " is empty"));
  const std::string& name = node.op->name;
  const bool v3 = name.size() > 2 && name.substr(name.size() - 2) == "V3";
  const std::string align = v3 ? node.attrs.String("align", "RIGHT_LEFT") : "LEFT_LEFT";
  band.left_super = align.substr(0, 4) == "LEFT";
  band.left_sub = align.size() > 5 && align.substr(align.size() - 4) == "LEFT";
  return band;
}

absl::Status MatrixSize(const Diagonals& band, int64_t longest, int64_t* rows, int64_t* cols) {
  const int64_t least_rows = longest - std::min<int64_t>(band.upper, 0);
  const int64_t least_cols = longest + std::max<int64_t>(band.lower, 0);
  if (*rows == -1 && *cols == -1) {
    *rows = *cols = std::max(least_rows, least_cols);
  } else if (*rows == -1) {
    *rows = least_rows;
  } else if (*cols == -1) {
    *cols = least_cols;
  }
  if (*rows < least_rows || *cols < least_cols) {
    return Bad(absl::StrCat("a matrix of ", *rows, " x ", *cols, " is too small for a diagonal of ",
                            longest));
  }
  return absl::OkStatus();
}

}  // namespace ops

namespace {

// Leaves *known false when a needed value is not.
absl::StatusOr<ops::Diagonals> Band(const InferContext& c, int k_input, bool* known) {
  std::vector<int64_t> k;
  *known = true;
  if (c.num_inputs() > k_input) {
    FLOE_ASSIGN_OR_RETURN(*known, c.IntsOf(k_input, &k));
  }
  if (!*known) return ops::Diagonals{};
  return ops::DiagonalsOf(c.node, k);
}

absl::StatusOr<Types> InferDiag(const InferContext& c) {
  const SymShape& in = c.shape(0);
  bool known = false;
  FLOE_ASSIGN_OR_RETURN(const ops::Diagonals band, Band(c, 1, &known));
  std::vector<int64_t> rows = {-1}, cols = {-1};
  if (c.num_inputs() > 3) {
    FLOE_ASSIGN_OR_RETURN(const bool rows_known, c.IntsOf(2, &rows));
    FLOE_ASSIGN_OR_RETURN(const bool cols_known, c.IntsOf(3, &cols));
    known = known && rows_known && cols_known && rows.size() == 1 && cols.size() == 1;
  }
  if (!in.rank_known() || !known) return ops::One(c.dtype(0), SymShape::UnknownRank());
  const int outer = in.rank() - (band.count() > 1 ? 2 : 1);
  if (outer < 0) return Bad(absl::StrCat("diagonals of shape ", in.ToString()));
  SymShape out;
  for (int i = 0; i < outer; ++i) out.push_back(in.dim(i));
  const Dim longest = in.dim(in.rank() - 1);
  if (longest.concrete()) {
    FLOE_RETURN_IF_ERROR(ops::MatrixSize(band, longest.size(), &rows[0], &cols[0]));
    out.push_back(rows[0]);
    out.push_back(cols[0]);
  } else {
    out.push_back(Dim::Unknown());
    out.push_back(Dim::Unknown());
  }
  return ops::One(c.dtype(0), std::move(out));
}

absl::StatusOr<Types> InferDiagPart(const InferContext& c) {
  const SymShape& in = c.shape(0);
  bool known = false;
  FLOE_ASSIGN_OR_RETURN(const ops::Diagonals band, Band(c, 1, &known));
  if (!in.rank_known() || !known) return ops::One(c.dtype(0), SymShape::UnknownRank());
  if (in.rank() < 2)
    return Bad(absl::StrCat("input has shape ", in.ToString(), ", expected matrices"));
  SymShape out;
  for (int i = 0; i + 2 < in.rank(); ++i) out.push_back(in.dim(i));
  if (band.count() > 1) out.push_back(band.count());
  const Dim rows = in.dim(in.rank() - 2), cols = in.dim(in.rank() - 1);
  const bool numbers = rows.concrete() && cols.concrete();
  const int64_t longest = numbers ? band.Longest(rows.size(), cols.size()) : 0;
  if (longest < 0)
    return Bad(
        absl::StrCat("diagonal ", band.lower, " to ", band.upper, " is outside ", in.ToString()));
  out.push_back(numbers ? Dim(longest) : Dim::Unknown());
  return ops::One(c.dtype(0), std::move(out));
}

RowMark DiagRows(const RowContext& c) {
  std::vector<int64_t> k;
  const bool band = c.inputs.size() > 1 &&
                    !(ops::ConstantInts(c.inputs[1], &k) && !k.empty() && k.front() == k.back());
  return band ? ops::RowsFromRankAlone<3>(c) : ops::RowsFromRankAlone<2>(c);
}
// Both the matrices and their diagonals may come by rows.
RowMark SetDiagRows(const RowContext& c) {
  const SymShape &in = c.inputs[0].type.shape, &diagonal = c.inputs[1].type.shape;
  for (RowMark mark : c.marks) {
    if (mark == RowMark::kUnknown || mark == RowMark::kMixed) return mark;
  }
  if (c.marks[0] == RowMark::kConstant && c.marks[1] == RowMark::kConstant)
    return ops::Checked(RowMark::kConstant, c);
  const bool rows = c.marks[0] == RowMark::kRows && c.marks[1] == RowMark::kRows &&
                    in.rank_known() && in.rank() >= 3 && diagonal.rank_known() &&
                    diagonal.rank() > 0 && in.dim(0) == diagonal.dim(0);
  return rows ? ops::Checked(RowMark::kRows, c) : RowMark::kMixed;
}

absl::StatusOr<Types> InferMatrix(const InferContext& c) {
  if (c.shape(0).rank_known() && c.shape(0).rank() < 2)
    return Bad(absl::StrCat("input has shape ", c.shape(0).ToString(), ", expected matrices"));
  return InferSame(c);
}

const OpRegistrar kDiagonals[] = {
    OpRegistrar(ops::Simple("MatrixDiag", InferDiag, DiagRows), "T"),
    OpRegistrar(ops::Simple("MatrixDiagPart", InferDiagPart, ops::RowsFromRankAlone<3>), "T"),
    OpRegistrar(ops::Simple("MatrixSetDiag", InferMatrix, SetDiagRows), "T T"),
    OpRegistrar(ops::Simple("MatrixBandPart", InferMatrix, ops::RowsFromRankAlone<3>), "T i i"),
};
const ops::Family kDiag({"MatrixDiagV2", "MatrixDiagV3"},
                        {.infer = InferDiag,
                         .rows = DiagRows,
                         .input_types = "T int32 int32 int32 T[]"});
const ops::Family kDiagPart({"MatrixDiagPartV2", "MatrixDiagPartV3"},
                            {.infer = InferDiagPart,
                             .rows = ops::RowsFromRankAlone<3>,
                             .input_types = "T int32 T[]"});
const ops::Family kSetDiag({"MatrixSetDiagV2", "MatrixSetDiagV3"},
                           {.infer = InferMatrix, .rows = SetDiagRows, .input_types = "T T int32"});

}  // namespace
}  // namespace floe
