// Ragged and sparse values: any number of elements for each request row, those of all rows one
// after the other, and the numbers that say which elements are whose. Values of one division have
// as many elements in the same rows. What such an element holds depends on its own row alone, so
// that rows are independent until a rule here, or none, says otherwise.
#pragma once

#include <string>

#include "absl/types/span.h"
#include "model/op_def.h"

namespace floe {

enum class FlatKind : uint8_t {
  kNone,
  kElements,     // dim 0 holds the elements
  kSizes,        // small integers that follow from how many elements there are
  kRowIds,       // [elements]: the number of each one's row
  kIndices,      // [elements, rank]: that, and where in the row the element is
  kSparseShape,  // [rank]: the first is the number of rows
  kLengths,      // [rows]: how many elements each row has
  kEnds,         // [rows]: where each row ends; the splits but the first
  kStarts,       // [rows]: where each row begins; the splits but the last
  kSplits,       // [rows + 1]: 0, and where each row ends
  kOneEach,      // [elements + 1]: 0, 1, 2, ...: the splits of one piece for each element
};

struct Flat {
  FlatKind kind = FlatKind::kNone;
  int division = -1;
  // The value as it is where the elements are taken for the rows: Dim::Rows() is their number. Of
  // kElements, kSizes, kRowIds and kIndices.
  ValueInfo as_rows;

  bool known() const { return kind != FlatKind::kNone; }
};

// What a rule says of one output.
struct FlatOutput {
  FlatKind kind = FlatKind::kNone;
  int division = -1;
  bool rows = false;       // dim 0 is the request's rows, one after the other
  bool row_count = false;  // a scalar: how many rows there are
};

struct FlatContext {
  const Node& node;
  absl::Span<const RowMark> marks;  // of the inputs
  absl::Span<const ValueInfo> inputs;
  absl::Span<const Flat> flats;
  absl::Span<const ValueInfo> outputs;
  int fresh;  // the first of the divisions that are this node's own; there are as many as outputs

  bool Constant(int i) const { return marks[i] == RowMark::kConstant; }
  // One element for each row.
  bool OnePerRow(int i) const;
  bool Is(int i, FlatKind kind) const { return flats[i].kind == kind; }
  // Both are known, and of one division.
  bool Together(int i, int k) const {
    return flats[i].known() && flats[i].division == flats[k].division;
  }
  bool RowCount(int i) const { return inputs[i].IsRowCount(); }
  int Rank(int i) const;  // -1: not known
  FlatOutput Of(int i, FlatKind kind) const {
    return {.kind = kind, .division = flats[i].division};
  }
};
// Fills in the outputs that it can say something of.
using FlatRule = void (*)(const FlatContext&, absl::Span<FlatOutput> out);

// Registers at start-up (static objects of model/ops/*.cc).
class FlatRuleRegistrar {
 public:
  FlatRuleRegistrar(std::initializer_list<const char*> ops, FlatRule rule);
};

FlatRule FindFlatRule(const std::string& op);  // null: none

}  // namespace floe
