#include "model/ops/list_ops.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"

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

bool OthersConstant(const RowContext& c, std::initializer_list<int> data, int shape) {
  for (int i = 0; i < static_cast<int>(c.marks.size()); ++i) {
    if (std::find(data.begin(), data.end(), i) != data.end()) continue;
    if (i == shape && c.inputs[i].constant.valid()) continue;
    if (c.marks[i] != RowMark::kConstant) return false;
  }
  return true;
}

namespace {

bool AnyUnknown(const RowContext& c) {
  return std::find(c.marks.begin(), c.marks.end(), RowMark::kUnknown) != c.marks.end();
}

RowMark Lost(const RowContext& c) { return AnyUnknown(c) ? RowMark::kUnknown : RowMark::kMixed; }

// Time-major: [number, rows, numbers...].
bool RowsInDim1(const SymShape& shape) {
  if (!shape.rank_known() || shape.rank() < 2 || shape.dim(1) != Dim::Rows()) return false;
  for (int i = 0; i < shape.rank(); ++i) {
    if (i != 1 && !shape.dim(i).concrete()) return false;
  }
  return true;
}

}  // namespace

RowMark MarkOfWrite(const RowContext& c, int list, int item) {
  if (!OthersConstant(c, {list, item})) return Lost(c);
  const RowMark before = c.marks[list], mark = c.marks[item];
  if (mark == RowMark::kConstant && before == RowMark::kConstant) return RowMark::kConstant;
  const bool fits = mark == RowMark::kRows && LeadingRows(c.inputs[item].type);
  if (!fits) return Lost(c);
  if (before == RowMark::kRows) return before;
  // In a list that holds constants already, rows would stand beside elements that have none.
  const ListTypePtr& known = c.inputs[list].type.list;
  return before == RowMark::kConstant && known != nullptr && !known->written ? RowMark::kRows
                                                                             : Lost(c);
}

RowMark MarkOfRead(const RowContext& c, int list, int shape, int output) {
  if (!OthersConstant(c, {list}, shape)) return Lost(c);
  const TensorType& out = c.outputs[output];
  if (c.marks[list] == RowMark::kRows) return LeadingRows(out) ? RowMark::kRows : RowMark::kMixed;
  if (c.marks[list] == RowMark::kConstant)
    return DependsOnRows(out) ? RowMark::kMixed : RowMark::kConstant;
  return Lost(c);
}

RowMark MarkOfStack(const RowContext& c, int list, int shape) {
  if (!OthersConstant(c, {list}, shape)) return Lost(c);
  if (c.marks[list] == RowMark::kRows)
    return RowsInDim1(c.outputs[0].shape) ? RowMark::kRowsDim1 : RowMark::kMixed;
  return MarkOfRead(c, list, shape);
}

RowMark MarkOfUnstack(const RowContext& c, int list, int data, int shape) {
  if (!OthersConstant(c, {list, data}, shape)) return Lost(c);
  const bool fresh = list < 0 || c.marks[list] == RowMark::kConstant;
  if (c.marks[data] == RowMark::kConstant && fresh) return RowMark::kConstant;
  if (c.marks[data] != RowMark::kRowsDim1 || !RowsInDim1(c.inputs[data].type.shape)) return Lost(c);
  if (list < 0 || c.marks[list] == RowMark::kRows) return RowMark::kRows;
  const ListTypePtr& known = c.inputs[list].type.list;
  return fresh && known != nullptr && !known->written ? RowMark::kRows : Lost(c);
}

}  // namespace floe::ops
