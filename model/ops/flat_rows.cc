// What ops do to ragged and sparse values that are divided by request rows.
#include "model/flat_rows.h"

#include "model/ops/op_util.h"
#include "model/ops/parse_example.h"
#include "model/ops/strided_slice.h"

namespace floe {
namespace {

using Out = absl::Span<FlatOutput>;
using enum FlatKind;

// Of a value that a known value holds; false where it is not known, or is more than one.
bool IsInteger(const FlatContext& c, int i, int64_t wanted) {
  std::vector<int64_t> values;
  return ops::ConstantInts(c.inputs[i], &values) && values.size() == 1 && values[0] == wanted;
}

bool IsEmptyConstant(const FlatContext& c, int i) {
  return c.inputs[i].has_constant() && c.inputs[i].constant.elements() == 0;
}

// Elements [n] of the division that input k is of.
bool VectorLike(const FlatContext& c, int i, int k) {
  return c.Is(i, kElements) && c.Together(i, k) && c.Rank(i) == 1;
}

// None, or one for each element.
bool AreWeights(const FlatContext& c, int i, int values) {
  return IsEmptyConstant(c, i) || VectorLike(c, i, values);
}

// ---- ops that divide rows ----

// text, separator[, table, default] -> indices, values, shape
void Split(const FlatContext& c, Out out) {
  if (!c.OnePerRow(0)) return;
  for (size_t i = 1; i < c.inputs.size(); ++i) {
    if (!c.Constant(static_cast<int>(i))) return;
  }
  out[0] = {.kind = kIndices, .division = c.fresh};
  out[1] = {.kind = kElements, .division = c.fresh};
  out[2] = {.kind = kSparseShape, .division = c.fresh};
}

// text -> splits, code points[, places]
void Decode(const FlatContext& c, Out out) {
  if (!c.OnePerRow(0)) return;
  out[0] = {.kind = kSplits, .division = c.fresh};
  for (size_t k = 1; k < out.size(); ++k) out[k] = {.kind = kElements, .division = c.fresh};
}

// elements, splits -> n-grams of each row, splits
void NGrams(const FlatContext& c, Out out) {
  if (!VectorLike(c, 0, 1) || !c.Is(1, kSplits)) return;
  out[0] = {.kind = kElements, .division = c.fresh};
  out[1] = {.kind = kSplits, .division = c.fresh};
}

// splits..., values, indices -> splits..., values: the rows of a ragged constant that rows name.
void Gather(const FlatContext& c, Out out) {
  if (c.node.attrs.Int("PARAMS_RAGGED_RANK", 1) != 1 || out.size() != 2 || !c.Constant(0) ||
      !c.Constant(1) || !c.OnePerRow(2))
    return;
  out[0] = {.kind = kSplits, .division = c.fresh};
  out[1] = {.kind = kElements, .division = c.fresh};
}

// indices, values, shape, default -> the same with one value for each empty row, whether it is
// one, and a number for each value
void FillEmptyRows(const FlatContext& c, Out out) {
  if (!c.Is(0, kIndices) || !VectorLike(c, 1, 0) || !c.Is(2, kSparseShape) || !c.Together(0, 2) ||
      !c.Constant(3))
    return;
  out[0] = {.kind = kIndices, .division = c.fresh};
  out[1] = {.kind = kElements, .division = c.fresh};
  if (out.size() > 2) out[2] = {.rows = true};
}

// Each sparse and each ragged feature divides rows in its own way. Dense features are rows where
// their size is fixed.
void Parse(const FlatContext& c, Out out) {
  const auto spec = ops::ExampleSpecOf(c.node, static_cast<int>(c.inputs.size()));
  if (!spec.ok() || !c.OnePerRow(0)) return;
  for (size_t i = 1; i < c.inputs.size(); ++i) {
    if (!c.Constant(static_cast<int>(i))) return;
  }
  const size_t sparse = spec->sparse.size(), dense = spec->dense.size(),
               ragged = spec->ragged.size();
  if (out.size() != 3 * sparse + dense + 2 * ragged) return;
  for (size_t i = 0; i < sparse; ++i) {
    const int division = c.fresh + static_cast<int>(i);
    out[i] = {.kind = kIndices, .division = division};
    out[sparse + i] = {.kind = kElements, .division = division};
    out[2 * sparse + i] = {.kind = kSparseShape, .division = division};
  }
  for (size_t d = 0; d < dense; ++d)
    out[3 * sparse + d].rows = !spec->VariableLength(static_cast<int>(d));
  const size_t first = 3 * sparse + dense;
  for (size_t i = 0; i < ragged; ++i) {
    const int division = c.fresh + static_cast<int>(first + i);
    out[first + i] = {.kind = kElements, .division = division};
    out[first + ragged + i] = {.kind = kSplits, .division = division};
  }
}

// splits, values -> indices, values, shape
void ToSparse(const FlatContext& c, Out out) {
  if (c.inputs.size() != 2 || !c.Is(0, kSplits) || !VectorLike(c, 1, 0)) return;
  out[0] = c.Of(1, kIndices);
  out[1] = c.Of(1, kElements);
  out[2] = c.Of(1, kSparseShape);
}

// ---- numbers that say whose elements are whose ----

// The same numbers, of another type or under another name.
void SameNumbers(const FlatContext& c, Out out) {
  const Flat& in = c.flats[0];
  const SymShape& shape = c.outputs[0].type.shape;
  if (in.kind == kElements || in.kind == kSizes || c.Rank(0) < 0 || !shape.rank_known() ||
      shape.rank() != c.Rank(0) || (in.kind == kIndices && c.node.op->name == "Reshape"))
    return;
  const DType dtype = c.outputs[0].type.dtype;
  if (dtype == DType::kInt32 || dtype == DType::kInt64) out[0] = c.Of(0, in.kind);
}

// [:, 0] and the other columns of indices, [0] of a sparse shape, [1:] and [:-1] of splits.
void Slice(const FlatContext& c, Out out) {
  std::vector<int64_t> begin, end, strides;
  if (!ops::ConstantInts(c.inputs[1], &begin) || !ops::ConstantInts(c.inputs[2], &end) ||
      !ops::ConstantInts(c.inputs[3], &strides) || begin.empty() || end.size() != begin.size() ||
      strides.size() != begin.size() || strides[0] != 1)
    return;
  const ops::SliceMasks masks(c.node.attrs);
  if (masks.ellipsis != 0 || masks.new_axis != 0) return;
  const bool from_first = (masks.begin & 1) != 0 || begin[0] == 0, to_last = (masks.end & 1) != 0;
  if (c.Is(0, kSparseShape) && begin.size() == 1 && masks.shrink == 1) {
    out[0].row_count = begin[0] == 0;
  } else if (c.Is(0, kIndices) && begin.size() == 2 && (masks.shrink & 1) == 0 && from_first &&
             to_last && begin[1] >= 0) {
    const bool column = (masks.shrink & 2) != 0, masked = (masks.begin & 2) != 0 && !column;
    const bool with_rows = masked || begin[1] == 0;
    if (!with_rows && strides[1] > 0) out[0] = c.Of(0, kElements);
    if (with_rows && column) out[0] = c.Of(0, kRowIds);
  } else if (c.Is(0, kSplits) && begin.size() == 1 && masks.shrink == 0) {
    if (!from_first && begin[0] == 1 && to_last) out[0] = c.Of(0, kEnds);
    if (from_first && !to_last && end[0] == -1) out[0] = c.Of(0, kStarts);
  }
}

void Lengths(const FlatContext& c, Out out) {
  if (!c.Is(0, kEnds) || !c.Is(1, kStarts) || !c.Together(0, 1)) return;
  out[0] = c.Of(0, kLengths);
  out[0].rows = true;
}

// How many elements each row has: the numbers of rows, counted.
void CountRows(const FlatContext& c, Out out) {
  if (!c.Is(0, kRowIds) || !c.RowCount(1) || !IsEmptyConstant(c, 2) ||
      c.node.attrs.Bool("binary_output"))
    return;
  out[0] = c.Of(0, kLengths);
  out[0].rows = true;
}

void RunningSum(const FlatContext& c, Out out) {
  if (c.Is(0, kLengths) && IsInteger(c, 1, 0) && !c.node.attrs.Bool("exclusive") &&
      !c.node.attrs.Bool("reverse"))
    out[0] = c.Of(0, kEnds);
}

// 0 before the ends.
void Concat(const FlatContext& c, Out out) {
  if (c.inputs.size() == 3 && c.Is(1, kEnds) && c.Rank(0) == 1 && IsInteger(c, 0, 0) &&
      IsInteger(c, 2, 0))
    out[0] = c.Of(1, kSplits);
}

void Range(const FlatContext& c, Out out) {
  const ValueInfo& end = c.flats[1].as_rows;
  if (!c.Is(1, kSizes) || !IsInteger(c, 0, 0) || !IsInteger(c, 2, 1) || !end.per_row.valid() ||
      end.constant.shape().rank() != 0)
    return;
  const auto base = IntegerValues(end.constant.view()), slope = IntegerValues(end.per_row.view());
  if (base.ok() && slope.ok() && (*base)[0] == 1 && (*slope)[0] == 1) out[0] = c.Of(1, kOneEach);
}

// ---- ops that make rows again ----

// shape, values, default, partitions... The width must be fixed: the longest row of a batch is
// not that of a request.
void ToTensor(const FlatContext& c, Out out) {
  const auto kinds = c.node.attrs.Get<std::vector<std::string>>("row_partition_types", {});
  std::vector<int64_t> shape;
  if (!c.Is(1, kElements) || !c.Constant(2) || !ops::ConstantInts(c.inputs[0], &shape) ||
      shape.empty() || shape[0] != -1)
    return;
  const bool splits =
      kinds == std::vector<std::string>{"ROW_SPLITS"} && c.Is(3, kSplits) && c.Together(1, 3);
  const bool ids = kinds == std::vector<std::string>{"FIRST_DIM_SIZE", "VALUE_ROWIDS"} &&
                   c.RowCount(3) && c.Is(4, kRowIds) && c.Together(1, 4);
  out[0].rows = splits || ids;
}

// indices, shape, values, default
void ToDense(const FlatContext& c, Out out) {
  const bool values = c.Constant(2) || VectorLike(c, 2, 0);
  const SymShape& shape = c.outputs[0].type.shape;
  out[0].rows = c.Is(0, kIndices) && values && c.Constant(3) && shape.rank_known() &&
                shape.rank() > 0 && shape.dim(0) == Dim::Rows();
}

// splits, values, size, weights
void RaggedCount(const FlatContext& c, Out out) {
  out[0].rows = c.Is(0, kSplits) && VectorLike(c, 1, 0) && c.Constant(2) && AreWeights(c, 3, 1);
}

// indices, values, shape, size, weights
void SparseCount(const FlatContext& c, Out out) {
  out[0].rows = c.Is(0, kIndices) && VectorLike(c, 1, 0) && c.Is(2, kSparseShape) &&
                c.Together(0, 2) && c.Constant(3) && AreWeights(c, 4, 1);
}

// data, numbers of the rows, how many there are
void Segments(const FlatContext& c, Out out) {
  out[0].rows = c.Is(0, kElements) && c.Is(1, kRowIds) && c.Together(0, 1) && c.RowCount(2);
}

// a table, places in it, numbers of the rows, how many there are
void TableSegments(const FlatContext& c, Out out) {
  out[0].rows = c.Constant(0) && VectorLike(c, 1, 2) && c.Is(2, kRowIds) && c.RowCount(3);
}

// code points, splits -> a string for each row, or for each code point
void Encode(const FlatContext& c, Out out) {
  if (!VectorLike(c, 0, 1)) return;
  out[0].rows = c.Is(1, kSplits);
  if (c.Is(1, kOneEach)) out[0] = c.Of(0, kElements);
}

const FlatRuleRegistrar kRules[] = {
    {{"StringSplit", "StringSplitV2", "StringSplitLookup"}, Split},
    {{"UnicodeDecode", "UnicodeDecodeWithOffsets"}, Decode},
    {{"StringNGrams"}, NGrams},
    {{"RaggedGather"}, Gather},
    {{"SparseFillEmptyRows"}, FillEmptyRows},
    {{"ParseExample", "ParseExampleV2"}, Parse},
    {{"RaggedTensorToSparse"}, ToSparse},
    {{"Identity", "Cast", "Reshape"}, SameNumbers},
    {{"StridedSlice"}, Slice},
    {{"Sub"}, Lengths},
    {{"DenseBincount"}, CountRows},
    {{"Cumsum"}, RunningSum},
    {{"ConcatV2"}, Concat},
    {{"Range"}, Range},
    {{"RaggedTensorToTensor"}, ToTensor},
    {{"SparseToDense"}, ToDense},
    {{"RaggedBincount"}, RaggedCount},
    {{"SparseBincount"}, SparseCount},
    {{"UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMax", "UnsortedSegmentMin",
      "UnsortedSegmentJoin"},
     Segments},
    {{"SparseSegmentSumWithNumSegments", "SparseSegmentMeanWithNumSegments",
      "SparseSegmentSqrtNWithNumSegments"},
     TableSegments},
    {{"UnicodeEncode"}, Encode},
};

}  // namespace
}  // namespace floe
