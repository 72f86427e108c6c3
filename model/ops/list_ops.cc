#include "model/ops/list_ops.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/time_major.h"

namespace floe::ops {

absl::StatusOr<SymShape> SpelledShape(const InferContext& c, int i) {
  std::vector<Dim> dims;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.DimsOf(i, &dims));
  const SymShape& given = c.shape(i);
  if (!known) {
    if (!given.rank_known() || given.rank() != 1 || !given.dim(0).concrete())
      return SymShape::UnknownRank();
    if (given.dim(0).size() > kMaxRank)
      return Bad(absl::StrCat("an element shape of ", given.dim(0).size(), " dimensions"));
    return UnknownDims(static_cast<int>(given.dim(0).size()));
  }
  if (c.inputs[i].constant.shape().rank() == 0) {
    if (dims[0] != Dim(-1))
      return Bad(absl::StrCat("the element shape is the scalar ", dims[0].ToString(),
                              ", expected -1 or a vector"));
    return SymShape::UnknownRank();
  }
  if (dims.size() > kMaxRank)
    return Bad(absl::StrCat("an element shape of ", dims.size(), " dimensions"));
  SymShape shape;
  for (Dim d : dims) {
    if (d.concrete() && d.size() < -1)
      return Bad(absl::StrCat("dimension ", d.size(), " of the element shape is negative"));
    shape.push_back(d == Dim(-1) ? Dim::Unknown() : d);
  }
  return shape;
}

SymShape ElementShape(const ListTypePtr& list, const SymShape& declared) {
  if (list == nullptr) return declared;
  const auto merged = Merge(declared, list->element);
  return merged.ok() ? *merged : declared;  // the run says what does not fit
}

ListTypePtr Written(const ListTypePtr& list, const SymShape& item) {
  if (list == nullptr) return nullptr;
  SymShape element = list->element;
  if (list->written) {
    element = JoinShapes(element, item);
  } else if (!element.known()) {
    element = item;  // what is read of it before it is written has this shape too
  } else if (element != item) {
    element = JoinShapes(element, item);
  }
  return MakeList(list->size, true, std::move(element));
}

SymShape WithoutDim0(const SymShape& shape) {
  if (!shape.rank_known() || shape.rank() == 0) return SymShape::UnknownRank();
  SymShape rest;
  for (int i = 1; i < shape.rank(); ++i) rest.push_back(shape.dim(i));
  return rest;
}

SymShape WithDim0(Dim dim, const SymShape& shape) {
  if (!shape.rank_known()) return shape;
  SymShape whole{dim};
  for (const Dim d : shape.dims()) whole.push_back(d);
  return whole;
}

OpDef ListOp(const char* name, InferFunction infer, RowRule rows,
             std::vector<std::string> outputs) {
  return {.name = name,
          .output_names = std::move(outputs),
          .infer = infer,
          .rows = rows,
          .time_major = rows,
          .by_row = rows,
          .allocates = true,
          .stateful = true};
}

namespace {

// Whether the inputs that `in` does not name are the same for every request.
bool OthersConstant(const RowContext& c, const ListInputs& in) {
  for (int i = 0; i < static_cast<int>(c.marks.size()); ++i) {
    if (i == in.list || i == in.data || i == in.index || i == in.array) continue;
    if (i == in.shape && c.inputs[i].constant.valid()) continue;
    if (c.marks[i] != RowMark::kConstant) return false;
  }
  return true;
}

// The same of an op outside of loops over rows.
bool OthersAndPlacesConstant(const RowContext& c, ListInputs in) {
  in.index = in.array = kNone;
  return OthersConstant(c, in);
}

bool IsRowList(const RowContext& c, const ListInputs& in) {
  return in.list != kNone && c.marks[in.list] == RowMark::kRowList;
}

// Each element is moved at its own row's number: a scalar for one, a vector for all.
bool AtOwnRow(const RowContext& c, const ListInputs& in, int rank) {
  if (!OthersConstant(c, in) || in.index == kNone) return false;
  if (in.array != kNone && c.marks[in.array] != RowMark::kRowList) return false;
  const SymShape& index = c.inputs[in.index].type.shape;
  return c.marks[in.index] == RowMark::kRowNumber && index.rank_known() && index.rank() == rank;
}

// [rows, dims that no number of rows changes].
bool OneElementPerRow(const SymShape& shape) {
  return shape.rank_known() && shape.rank() > 0 && shape.dim(0) == Dim::Rows() &&
         std::none_of(shape.dims().begin() + 1, shape.dims().end(),
                      [](Dim dim) { return dim.has_rows(); });
}

}  // namespace

RowMark MarkOfNew(const RowContext& c, int shape, int size) {
  if (OthersConstant(c, {.shape = shape})) return RowMark::kConstant;
  const bool per_row =
      OthersConstant(c, {.index = size, .shape = shape}) && c.inputs[size].IsRowCount();
  return per_row ? RowMark::kRowList : Lost(c);
}

RowMark MarkOfWrite(const RowContext& c, const ListInputs& in) {
  const RowMark before = c.marks[in.list], mark = c.marks[in.data];
  if (IsRowList(c, in)) {
    const bool of_row = mark == RowMark::kOfRow || mark == RowMark::kConstant;
    return of_row && AtOwnRow(c, in, 0) ? RowMark::kRowList : Lost(c);
  }
  if (!OthersAndPlacesConstant(c, in)) return Lost(c);
  if (mark == RowMark::kConstant && before == RowMark::kConstant) return RowMark::kConstant;
  const bool fits = mark == RowMark::kRows && LeadingRows(c.inputs[in.data].type);
  if (!fits) return Lost(c);
  if (before == RowMark::kRows) return before;
  // In a list that holds constants already, rows would stand beside elements that have none.
  const ListTypePtr& known = c.inputs[in.list].type.list;
  return before == RowMark::kConstant && known != nullptr && !known->written ? RowMark::kRows
                                                                             : Lost(c);
}

RowMark MarkOfRead(const RowContext& c, const ListInputs& in, int output) {
  if (IsRowList(c, in)) return AtOwnRow(c, in, 0) ? RowMark::kOfRow : Lost(c);
  if (!OthersAndPlacesConstant(c, in)) return Lost(c);
  const TensorType& out = c.outputs[output];
  if (c.marks[in.list] == RowMark::kRows)
    return LeadingRows(out) ? RowMark::kRows : RowMark::kMixed;
  if (c.marks[in.list] == RowMark::kConstant)
    return DependsOnRows(out) ? RowMark::kMixed : RowMark::kConstant;
  return Lost(c);
}

RowMark MarkOfStack(const RowContext& c, const ListInputs& in) {
  if (IsRowList(c, in)) {
    const bool all = in.index == kNone ? OthersConstant(c, in) : AtOwnRow(c, in, 1);
    return all && OneElementPerRow(c.outputs[0].shape) ? RowMark::kRows : Lost(c);
  }
  if (!OthersAndPlacesConstant(c, in)) return Lost(c);
  if (c.marks[in.list] == RowMark::kRows)
    return RowsInDim1(c.outputs[0].shape) ? RowMark::kRowsDim1 : RowMark::kMixed;
  return MarkOfRead(c, in);
}

RowMark MarkOfUnstack(const RowContext& c, const ListInputs& in) {
  const RowMark data = c.marks[in.data];
  const SymShape& shape = c.inputs[in.data].type.shape;
  const ListTypePtr known = in.list == kNone ? nullptr : c.inputs[in.list].type.list;
  const bool unwritten = in.list == kNone || (known != nullptr && !known->written);
  if (data == RowMark::kRows && unwritten && OneElementPerRow(shape)) {
    const bool fresh = in.list == kNone || IsRowList(c, in);
    const bool in_order = in.index == kNone ? OthersConstant(c, in) : AtOwnRow(c, in, 1);
    return fresh && in_order ? RowMark::kRowList : Lost(c);
  }
  if (!OthersAndPlacesConstant(c, in)) return Lost(c);
  const bool constant = in.list == kNone || c.marks[in.list] == RowMark::kConstant;
  if (data == RowMark::kConstant && constant) return RowMark::kConstant;
  if (data != RowMark::kRowsDim1 || !RowsInDim1(shape)) return Lost(c);
  if (in.list == kNone || c.marks[in.list] == RowMark::kRows) return RowMark::kRows;
  return constant && unwritten ? RowMark::kRows : Lost(c);
}

}  // namespace floe::ops
