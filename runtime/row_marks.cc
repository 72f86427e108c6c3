#include "runtime/row_marks.h"

#include <algorithm>

#include "base/status.h"
#include "runtime/analyze.h"

namespace floe {
namespace {

// Rows of which each has dims of its own come from loops over rows alone; most rules ask for
// numbers there.
bool DimsAreKnown(RowMark mark, const ValueInfo& value) {
  const SymShape& shape = value.type.shape;
  return mark != RowMark::kRows || value.type.list != nullptr || !shape.rank_known() ||
         shape.known();
}

// Inside a loop over rows, and what its lists meet before and behind it.
RowMark RuleByRow(const RowContext& c, const NodeInputs& in) {
  const OpDef& op = *c.node.op;
  if (op.name == "Identity") return c.marks[0];
  if (in.Has(RowMark::kRowNumber) || in.Has(RowMark::kRowList))
    return op.by_row != nullptr ? op.by_row(c) : in.Lost();
  const bool of_row = std::all_of(in.marks.begin(), in.marks.end(), [](RowMark m) {
    return m == RowMark::kOfRow || m == RowMark::kConstant;
  });
  // A list is a value; arrays and random numbers have a state that all rows share.
  const bool shares =
      op.stateful && (op.by_row == nullptr || c.inputs[0].type.dtype == DType::kResource);
  return of_row && !shares ? RowMark::kOfRow : in.Lost();
}

// Dim 0 is the rows, every other dim a number.
bool OneForEachRow(const SymShape& shape) {
  if (!shape.rank_known() || shape.rank() == 0 || shape.dim(0) != Dim::Rows()) return false;
  return std::all_of(shape.dims().begin() + 1, shape.dims().end(),
                     [](Dim dim) { return dim.concrete(); });
}

// The same, where a dim 0 that is not known is the rows.
bool SetRows(TensorType* type) {
  SymShape& shape = type->shape;
  if (!shape.rank_known() || shape.rank() == 0) return false;
  if (!shape.dim(0).known()) shape.set_dim(0, Dim::Rows());
  return OneForEachRow(shape);
}

bool HasElements(FlatKind kind) {
  return kind == FlatKind::kElements || kind == FlatKind::kRowIds || kind == FlatKind::kIndices;
}

class FlatRows {
 public:
  FlatRows(const Node& node, const NodeInputs& in, std::vector<ValueInfo>* values,
           std::vector<RowMark>* marks, std::vector<Flat>* flats)
      : node_(node), in_(in), values_(*values), marks_(*marks), flats_(*flats) {}

  void AskRule(FlatRule rule, int node_number) {
    const int fresh = node_number * kMostDivisions;
    std::vector<FlatOutput> said(values_.size());
    rule({node_, in_.marks, in_.infos, in_.flats, values_, fresh}, absl::MakeSpan(said));
    for (size_t k = 0; k < said.size(); ++k) {
      if (marks_[k] == RowMark::kMixed) Take(said[k], k);
    }
  }

  // Every row rule says of rows what is true of elements as well: how many there are changes
  // nothing for any of them.
  absl::Status TakeElementsForRows(const KernelOptions& options) {
    NodeInputs as_rows;
    int division = -1;
    for (size_t k = 0; k < in_.flats.size(); ++k) {
      const Flat& flat = in_.flats[k];
      if (HasElements(flat.kind) || flat.kind == FlatKind::kSizes) {
        if (division >= 0 && division != flat.division) return absl::OkStatus();
        division = flat.division;
        as_rows.infos.push_back(flat.as_rows);
        as_rows.marks.push_back(flat.kind == FlatKind::kElements ? RowMark::kRows
                                                                 : RowMark::kMixed);
      } else if (in_.marks[k] == RowMark::kConstant) {
        as_rows.infos.push_back(in_.infos[k]);
        as_rows.marks.push_back(RowMark::kConstant);
      } else {
        return absl::OkStatus();
      }
    }
    if (division < 0) return absl::OkStatus();
    auto outputs = InferNode(node_, as_rows.infos, options);
    if (!outputs.ok()) return IsErrorOfRun(outputs.status()) ? absl::OkStatus() : outputs.status();
    Types types;
    for (const ValueInfo& out : *outputs) types.push_back(out.type);
    const bool rows = MarkOfNode(node_, as_rows, types) == RowMark::kRows;
    for (size_t k = 0; k < outputs->size(); ++k) TakeAsRows((*outputs)[k], rows, division, k);
    return absl::OkStatus();
  }

 private:
  static constexpr int kMostDivisions = 1 << 10;  // of one node

  void Take(const FlatOutput& said, size_t k) {
    ValueInfo& value = values_[k];
    const bool integers = value.type.dtype == DType::kInt32 || value.type.dtype == DType::kInt64;
    if (said.rows) {
      TensorType type = value.type;
      if (!SetRows(&type)) return;
      value.type = type;
      marks_[k] = RowMark::kRows;
    }
    if (said.row_count && integers && value.type.shape == SymShape()) {
      const bool narrow = value.type.dtype == DType::kInt32;
      value.constant = narrow ? Tensor::Scalar<int32_t>(DType::kInt32, 0)
                              : Tensor::Scalar<int64_t>(DType::kInt64, 0);
      value.per_row = narrow ? Tensor::Scalar<int32_t>(DType::kInt32, 1)
                             : Tensor::Scalar<int64_t>(DType::kInt64, 1);
    }
    Flat flat{said.kind, said.division, {}};
    if (HasElements(said.kind)) {
      flat.as_rows.type = value.type;
      if (!SetRows(&flat.as_rows.type)) return;
    }
    flats_[k] = std::move(flat);
  }

  // Output k, where the elements are the rows.
  void TakeAsRows(const ValueInfo& info, bool rows, int division, size_t k) {
    if (marks_[k] != RowMark::kMixed) return;
    if (info.has_constant()) {  // however many there are
      values_[k] = info;
      marks_[k] = RowMark::kConstant;
    } else if (info.constant.valid()) {
      flats_[k] = {FlatKind::kSizes, division, info};
    } else if (rows && OneForEachRow(info.type.shape)) {
      flats_[k] = {FlatKind::kElements, division, info};
    }
  }

  const Node& node_;
  const NodeInputs& in_;
  std::vector<ValueInfo>& values_;
  std::vector<RowMark>& marks_;
  std::vector<Flat>& flats_;
};

}  // namespace

bool NodeInputs::Has(RowMark mark) const {
  return std::find(marks.begin(), marks.end(), mark) != marks.end();
}

RowMark NodeInputs::Lost() const {
  return Has(RowMark::kUnknown) ? RowMark::kUnknown : RowMark::kMixed;
}

RowMark MarkOfNode(const Node& node, const NodeInputs& in, const Types& outputs) {
  const RowContext context{node, in.marks, in.infos, outputs};
  if (in.Has(RowMark::kRowNumber) || in.Has(RowMark::kOfRow) || in.Has(RowMark::kRowList))
    return RuleByRow(context, in);
  const bool time_major = in.Has(RowMark::kRowsDim1);
  if (time_major && node.op->time_major == nullptr) return in.Lost();
  if (!std::equal(in.marks.begin(), in.marks.end(), in.infos.begin(), DimsAreKnown) &&
      node.op->rows != RowsElementwise && node.op->name != "Identity")
    return in.Lost();
  RowMark mark = RowMark::kUnknown;
  if (!time_major && node.op->rows != nullptr) {
    mark = node.op->rows(context);
  } else if (!time_major) {
    const bool constant =
        !node.op->stateful && std::all_of(in.marks.begin(), in.marks.end(),
                                          [](RowMark m) { return m == RowMark::kConstant; });
    mark = constant ? RowMark::kConstant : RowMark::kUnknown;
  }
  // Rows that leave dim 0 may still be told apart in dim 1.
  if (node.op->time_major != nullptr && (time_major || mark == RowMark::kMixed))
    mark = node.op->time_major(context);
  return mark;
}

absl::Status FollowFlatRows(const Node& node, int node_number, const NodeInputs& in,
                            const KernelOptions& options, std::vector<ValueInfo>* values,
                            std::vector<RowMark>* marks, std::vector<Flat>* flats) {
  flats->assign(values->size(), {});
  if (std::find(marks->begin(), marks->end(), RowMark::kMixed) == marks->end())
    return absl::OkStatus();
  // Within loops over rows these have no meaning.
  for (const RowMark mark : in.marks) {
    if (mark != RowMark::kConstant && mark != RowMark::kRows && mark != RowMark::kMixed)
      return absl::OkStatus();
  }
  FlatRows rows(node, in, values, marks, flats);
  if (const FlatRule rule = FindFlatRule(node.op->name)) rows.AskRule(rule, node_number);
  if (std::any_of(flats->begin(), flats->end(), [](const Flat& flat) { return flat.known(); }))
    return absl::OkStatus();
  return rows.TakeElementsForRows(options);
}

}  // namespace floe
