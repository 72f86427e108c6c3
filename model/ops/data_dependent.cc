// Ops whose output sizes depend on data: selecting, grouping, boxes, strings taken apart.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

TensorType Matrix(DType dtype, Dim width) { return {dtype, {Dim::Unknown(), width}}; }

absl::StatusOr<Types> InferWhere(const InferContext& c) {
  const int rank = ops::RankOf(c, 0);
  return Types{Matrix(DType::kInt64, rank < 0 ? Dim::Unknown() : Dim(rank))};
}

// x -> distinct elements, index of each x among them[, counts]
absl::StatusOr<Types> InferUnique(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const DType index, ops::IndexTypeAttr(c, "out_idx", DType::kInt32));
  Types types = {ops::UnknownVector(c.dtype(0)), {index, {ops::DimOf(c, 0, 0)}}};
  if (c.node.op->outputs == 3) types.push_back(ops::UnknownVector(index));
  return types;
}

// The same of the slices along an axis.
absl::StatusOr<Types> InferUniqueSlices(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const DType index, ops::IndexTypeAttr(c, "out_idx", DType::kInt32));
  const int rank = ops::RankOf(c, 0);
  SymShape out = rank < 0 ? SymShape::UnknownRank() : ops::UnknownDims(rank);
  Dim count = Dim::Unknown();
  std::vector<int64_t> axis;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.IntsOf(1, &axis));
  if (rank >= 0 && known && axis.size() == 1) {
    FLOE_ASSIGN_OR_RETURN(const int along, NormalizeAxis(axis[0], rank));
    count = c.shape(0).dim(along);
    out = c.shape(0);
    out.set_dim(along, Dim::Unknown());
  }
  Types types = {{c.dtype(0), out}, {index, {count}}};
  if (c.node.op->outputs == 3) types.push_back(ops::UnknownVector(index));
  return types;
}

// x, y -> elements of x not in y, their places
absl::StatusOr<Types> InferListDiff(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const DType index, ops::IndexTypeAttr(c, "out_idx", DType::kInt32));
  return Types{ops::UnknownVector(c.dtype(0)), ops::UnknownVector(index)};
}

// data, partitions
absl::StatusOr<Types> InferPartition(const InferContext& c) {
  const int64_t count = c.attrs().Int("num_partitions");
  if (count < 1) return Bad(absl::StrCat("num_partitions is ", count));
  const SymShape &data = c.shape(0), &ids = c.shape(1);
  SymShape out = SymShape::UnknownRank();
  if (data.rank_known() && ids.rank_known()) {
    if (ids.rank() > data.rank())
      return Bad(
          absl::StrCat("partitions ", ids.ToString(), " are no prefix of ", data.ToString()));
    out = {Dim::Unknown()};
    for (int i = ids.rank(); i < data.rank(); ++i) out.push_back(data.dim(i));
  }
  // Partitions past the last one that is read are left out.
  return Types(static_cast<size_t>(c.node.num_outputs), TensorType{c.dtype(0), out});
}

// data, sorted ids; and data, indices, ids
absl::StatusOr<Types> InferSegment(const InferContext& c) {
  SymShape out = c.shape(0);
  if (out.rank_known() && out.rank() == 0) return Bad("data is a scalar");
  if (out.rank_known()) out.set_dim(0, Dim::Unknown());
  return Types{{c.dtype(0), out}};
}
// The same name has a kernel for when the number of segments is known.
OpDef SparseSegment(const std::string& name) {
  OpDef def = ops::Allocating(name + "ToLastId", {"output"}, InferSegment);
  def.tensorflow = {name};
  return def;
}

// boxes, scores, max_output_size, iou_threshold[, score_threshold[, soft_nms_sigma]]
absl::StatusOr<Types> InferNms(const InferContext& c) {
  Types types = {ops::UnknownVector(DType::kInt32)};
  if (c.node.op->output_names.size() == 3) types.push_back(ops::UnknownVector(c.dtype(1)));
  if (c.node.op->outputs > 1) types.push_back({DType::kInt32, SymShape()});
  return types;
}
// boxes, scores, max_output_size, iou_threshold, and two thresholds of the score, of which the
// higher counts. There may be more boxes than scores. No file holds it: a pass makes it.
OpDef FilteredNms() {
  OpDef def = ops::Allocating("FilteredNonMaxSuppression", {"selected_indices"}, InferNms);
  def.tensorflow = {ops::kNotInFiles};
  return def;
}
// How many detections of an image are written; unknown where the run settles it.
absl::StatusOr<Dim> Detections(const InferContext& c) {
  std::vector<int64_t> of_class, of_image;
  FLOE_ASSIGN_OR_RETURN(const bool class_known, c.IntsOf(2, &of_class));
  FLOE_ASSIGN_OR_RETURN(const bool image_known, c.IntsOf(3, &of_image));
  if (!image_known || of_image.size() != 1 || of_image[0] <= 0) return Dim::Unknown();
  if (!c.attrs().Bool("pad_per_class")) return Dim(of_image[0]);
  const Dim classes = ops::DimOf(c, 1, 2);
  if (!class_known || of_class.size() != 1 || of_class[0] <= 0 || !classes.concrete())
    return Dim::Unknown();
  return Dim(std::min(of_image[0], of_class[0] * std::min<int64_t>(classes.size(), of_image[0])));
}

// boxes [batch, n, 1 or classes, 4], scores [batch, n, classes], sizes and thresholds
absl::StatusOr<Types> InferCombinedNms(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const Dim detections, Detections(c));
  const DType dtype = DType::kFloat32;
  const Dim batch = ops::DimOf(c, 0, 0);
  return Types{{dtype, {batch, detections, 4}},
               {dtype, {batch, detections}},
               {dtype, {batch, detections}},
               {DType::kInt32, {batch}}};
}

// Each image has detections of its own.
RowMark RowsOfCombinedNms(const RowContext& c) {
  if (c.marks[0] != c.marks[1] || !c.OthersConstant(2)) return RowsNever(c);
  return ops::Checked(c.marks[0], c);
}

OpDef CombinedNms() {
  OpDef def = ops::Allocating("CombinedNonMaxSuppression",
                              {"nmsed_boxes", "nmsed_scores", "nmsed_classes", "valid_detections"},
                              InferCombinedNms);
  def.rows = RowsOfCombinedNms;
  return def;
}

// input, separator -> indices, values, dense shape
absl::StatusOr<Types> InferStringSplit(const InferContext&) {
  return Types{Matrix(DType::kInt64, 2), ops::UnknownVector(DType::kString), {DType::kInt64, {2}}};
}

// input, separator, table, the value of unknown words -> indices, the words' values, dense shape.
// A pass makes it; no file holds it.
absl::StatusOr<Types> InferStringSplitLookup(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(Types types, InferStringSplit(c));
  types[1].dtype = c.dtype(3);
  return types;
}
OpDef StringSplitLookup() {
  OpDef def =
      ops::Allocating("StringSplitLookup", {"indices", "values", "shape"}, InferStringSplitLookup);
  def.tensorflow = {ops::kNotInFiles};
  return def;
}

// set1, set2 -> indices, values, dense shape; each a dense tensor or three inputs of a sparse one
absl::StatusOr<Types> InferSetOperation(const InferContext& c) {
  const int inputs = c.num_inputs();
  const std::string op = c.attrs().String("set_operation");
  if (op != "a-b" && op != "b-a" && op != "intersection" && op != "union")
    return Bad("set_operation '" + op + "' is none of a-b, b-a, intersection, union");
  const int rank = ops::RankOf(c, 0);
  const Dim width = inputs == 6 ? ops::DimOf(c, 2, 0) : rank < 0 ? Dim::Unknown() : Dim(rank);
  const DType dtype = c.dtype(inputs == 6 ? 1 : 0);
  return Types{Matrix(DType::kInt64, width), ops::UnknownVector(dtype), {DType::kInt64, {width}}};
}

// indices, values, dense shape -> numbers of elements
absl::StatusOr<Types> InferSetSize(const InferContext& c) {
  const Dim rank = ops::DimOf(c, 2, 0);
  return ops::One(DType::kInt32, rank.concrete() && rank.size() > 0
                                     ? ops::UnknownDims(static_cast<int>(rank.size()) - 1)
                                     : SymShape::UnknownRank());
}

// indices, shape, new shape
absl::StatusOr<Types> InferSparseReshape(const InferContext& c) {
  const Dim rank = ops::DimOf(c, 2, 0);
  return Types{{DType::kInt64, {ops::DimOf(c, 0, 0), rank}}, {DType::kInt64, {rank}}};
}

// indices, values, shape, default -> indices, values, empty rows, where each value went
absl::StatusOr<Types> InferFillEmptyRows(const InferContext& c) {
  return Types{Matrix(DType::kInt64, ops::DimOf(c, 0, 1)),
               ops::UnknownVector(c.dtype(1)),
               ops::UnknownVector(DType::kBool),
               {DType::kInt64, {ops::DimOf(c, 0, 0)}}};
}

// logits [time, batch, classes], lengths
absl::StatusOr<Types> InferCtc(const InferContext& c) {
  return Types{Matrix(DType::kInt64, 2),
               ops::UnknownVector(DType::kInt64),
               {DType::kInt64, {2}},
               {c.dtype(0), {ops::DimOf(c, 0, 1), 1}}};
}

// The same for each of top_paths; then the scores of all.
absl::StatusOr<Types> InferCtcBeam(const InferContext& c) {
  const int64_t width = c.attrs().Int("beam_width"), paths = c.attrs().Int("top_paths");
  constexpr int64_t kMost = 1 << 20;
  if (width < 1 || width > kMost || paths < 1 || paths > width)
    return Bad(absl::StrCat("beam_width is ", width, " and top_paths ", paths,
                            ", expected 1 <= top_paths <= beam_width <= 2^20"));
  Types types;
  for (int64_t i = 0; i < paths; ++i) types.push_back(Matrix(DType::kInt64, 2));
  for (int64_t i = 0; i < paths; ++i) types.push_back(ops::UnknownVector(DType::kInt64));
  for (int64_t i = 0; i < paths; ++i) types.push_back({DType::kInt64, {2}});
  types.push_back({c.dtype(0), {ops::DimOf(c, 0, 1), paths}});
  return types;
}

OpDef SetOperation(const char* name) {
  return ops::Allocating(name, {"result_indices", "result_values", "result_shape"},
                         InferSetOperation);
}

const OpRegistrar kAllocating[] = {
    OpRegistrar(ops::Allocating("Where", {"index"}, InferWhere), "T"),
    OpRegistrar(ops::Allocating("Unique", {"y", "idx"}, InferUnique), "T[_]"),
    OpRegistrar(ops::Allocating("UniqueWithCounts", {"y", "idx", "count"}, InferUnique), "T[_]"),
    OpRegistrar(ops::Allocating("UniqueV2", {"y", "idx"}, InferUniqueSlices), "T i[_]"),
    OpRegistrar(ops::Allocating("UniqueWithCountsV2", {"y", "idx", "count"}, InferUniqueSlices),
                "T i[_]"),
    OpRegistrar(ops::Allocating("ListDiff", {"out", "idx"}, InferListDiff), "T[_] T[_]"),
    OpRegistrar(ops::Allocating("DynamicPartition", {"outputs:num_partitions"}, InferPartition),
                "T int32"),
    OpRegistrar(SparseSegment("SparseSegmentSum"), "T i j"),
    OpRegistrar(SparseSegment("SparseSegmentMean"), "T i j"),
    OpRegistrar(SparseSegment("SparseSegmentSqrtN"), "T i j"),
    OpRegistrar(ops::Allocating("NonMaxSuppressionWithOverlaps", {"selected_indices"}, InferNms),
                "float32[_,_] float32[_] int32 float32 float32"),
    OpRegistrar(ops::Allocating("NonMaxSuppressionV2", {"selected_indices"}, InferNms),
                "T[_,4] T[_] int32 U"),
    OpRegistrar(ops::Allocating("NonMaxSuppressionV3", {"selected_indices"}, InferNms),
                "T[_,4] T[_] int32 U U"),
    OpRegistrar(
        ops::Allocating("NonMaxSuppressionV4", {"selected_indices", "valid_outputs"}, InferNms),
        "T[_,4] T[_] int32 U U"),
    OpRegistrar(ops::Allocating("NonMaxSuppressionV5",
                                {"selected_indices", "selected_scores", "valid_outputs"}, InferNms),
                "T[_,4] T[_] int32 T T T"),
    OpRegistrar(FilteredNms(), "float32[_,4] float32[_] int32 float32 float32 float32"),
    OpRegistrar(CombinedNms(), "float32[_,_,_,_] float32[_,_,_] int32 int32 float32 float32"),
    OpRegistrar(ops::Allocating("StringSplitV2", {"indices", "values", "shape"}, InferStringSplit),
                "string[_] string"),
    OpRegistrar(StringSplitLookup(), "string[_] string resource T[]"),
    OpRegistrar(SetOperation("DenseToDenseSetOperation"), "T T"),
    OpRegistrar(SetOperation("DenseToSparseSetOperation"), "T int64[_,_] T[_] int64[_]"),
    OpRegistrar(SetOperation("SparseToSparseSetOperation"),
                "int64[_,_] T[_] int64[_] int64[_,_] T[_] int64[_]"),
    OpRegistrar(ops::Allocating("SetSize", {"size"}, InferSetSize), "int64[_,_] T[_] int64[_]"),
    OpRegistrar(
        ops::Allocating("SparseReshape", {"output_indices", "output_shape"}, InferSparseReshape),
        "int64 int64 int64"),
    OpRegistrar(ops::Allocating(
                    "SparseFillEmptyRows",
                    {"output_indices", "output_values", "empty_row_indicator", "reverse_index_map"},
                    InferFillEmptyRows),
                "int64 T int64 T"),
    OpRegistrar(ops::Allocating("CTCBeamSearchDecoder",
                                {"decoded_indices:top_paths", "decoded_values:top_paths",
                                 "decoded_shape:top_paths", "log_probability"},
                                InferCtcBeam),
                "T[_,_,_] int32"),
    OpRegistrar(
        ops::Allocating("CTCGreedyDecoder",
                        {"decoded_indices", "decoded_values", "decoded_shape", "log_probability"},
                        InferCtc),
        "T[_,_,_] int32"),
};

const ops::Family kSegments({"SegmentSum", "SegmentMean", "SegmentProd", "SegmentMax",
                             "SegmentMin"},
                            {.output_names = {"output"},
                             .infer = InferSegment,
                             .rows = RowsNever,
                             .allocates = true,
                             .input_types = "T i"});

}  // namespace
}  // namespace floe
