// Ops that rearrange axes of one tensor: reversal, rolling, and blocks moved between space, depth
// and batch.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"
#include "model/ops/time_major.h"
#include "model/ops/window.h"

namespace floe {
namespace {

// Rows stay in place when axis 0 is not among the axes that input `i` gives.
RowMark RowsUnlessAxis0(const RowContext& c, int i) {
  const SymShape& in = c.inputs[0].type.shape;
  std::vector<int64_t> axes;
  bool keeps = in.rank_known() && ops::ConstantInts(c.inputs[i], &axes);
  for (int64_t axis : axes) keeps = keeps && axis != 0 && axis != -in.rank();
  if (!keeps && c.marks[0] == RowMark::kConstant && c.marks[i] != RowMark::kConstant)
    return RowMark::kMixed;
  return ops::MarkOfData(c, 0, keeps);
}

absl::StatusOr<Types> InferAxes(const InferContext& c) {
  std::vector<int64_t> axes;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.IntsOf(c.num_inputs() - 1, &axes));
  if (known && c.shape(0).rank_known()) {
    for (int64_t axis : axes) FLOE_RETURN_IF_ERROR(NormalizeAxis(axis, c.shape(0).rank()).status());
  }
  return InferSame(c);
}

RowMark ReverseRows(const RowContext& c) { return RowsUnlessAxis0(c, 1); }
RowMark RollRows(const RowContext& c) {
  std::vector<int64_t> shift;
  if (!ops::ConstantInts(c.inputs[1], &shift) && c.marks[1] != RowMark::kConstant)
    return RowMark::kMixed;
  return RowsUnlessAxis0(c, 2);
}

const OpRegistrar kReverse({.name = "ReverseV2",
                            .infer = InferAxes,
                            .rows = ReverseRows,
                            .time_major = ops::TimeMajorReverse,
                            .values = ValueRule::kLinear,
                            .shape_inputs = 2,
                            .input_types = "T i"});
const OpRegistrar kRoll({.name = "Roll",
                         .infer = InferAxes,
                         .rows = RollRows,
                         .shape_inputs = 6,
                         .input_types = "T i j"});
const ops::Family kCumulative({"Cumsum", "Cumprod", "CumulativeLogsumexp"}, {.infer = InferAxes,
                                                                             .rows = ReverseRows,
                                                                             .shape_inputs = 2,
                                                                             .input_types = "T i"});

// Elements of row b are reversed up to seq_lengths[b].
RowMark ReverseSequenceRows(const RowContext& c) {
  const bool batch_first = c.node.attrs.Int("batch_dim") == 0 && c.node.attrs.Int("seq_dim") != 0;
  for (RowMark mark : c.marks) {
    if (mark == RowMark::kUnknown || mark == RowMark::kMixed) return mark;
  }
  if (c.marks[0] == RowMark::kConstant && c.marks[1] == RowMark::kConstant)
    return ops::Checked(RowMark::kConstant, c);
  if (!batch_first || c.marks[0] != RowMark::kRows || c.marks[1] != RowMark::kRows)
    return RowMark::kMixed;
  return ops::Checked(RowMark::kRows, c);
}
const OpRegistrar kReverseSequence(ops::Simple("ReverseSequence", InferSame, ReverseSequenceRows),
                                   "T i");

// Known blocks and pads of SpaceToBatchND and BatchToSpaceND; false when they are not.
absl::StatusOr<bool> BlocksOf(const InferContext& c, std::vector<int64_t>* blocks,
                              std::vector<int64_t>* pads) {
  FLOE_ASSIGN_OR_RETURN(const bool blocks_known, c.IntsOf(1, blocks));
  FLOE_ASSIGN_OR_RETURN(const bool pads_known, c.IntsOf(2, pads));
  if (!blocks_known || !pads_known || !c.shape(0).rank_known()) return false;
  if (pads->size() != 2 * blocks->size() || static_cast<int>(blocks->size()) >= c.shape(0).rank()) {
    return Bad(absl::StrCat(blocks->size(), " blocks and ", pads->size() / 2, " pairs of pads for ",
                            c.shape(0).ToString()));
  }
  for (int64_t block : *blocks) {
    if (block < 1) return Bad(absl::StrCat("block size ", block));
  }
  for (int64_t pad : *pads) {
    if (pad < 0) return Bad(absl::StrCat("padding or crop ", pad, " is negative"));
  }
  return true;
}

absl::StatusOr<Types> InferBlocks(const InferContext& c, bool to_batch) {
  const SymShape& in = c.shape(0);
  std::vector<int64_t> blocks, pads;
  FLOE_ASSIGN_OR_RETURN(const bool known, BlocksOf(c, &blocks, &pads));
  if (!known)
    return ops::One(c.dtype(0),
                    in.rank_known() ? ops::UnknownDims(in.rank()) : SymShape::UnknownRank());
  SymShape out = in;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const int axis = static_cast<int>(i) + 1;
    const Dim pad = Dim(pads[2 * i]) + Dim(pads[2 * i + 1]);
    if (to_batch) {
      out.set_dim(0, out.dim(0) * Dim(blocks[i]));
      const Dim padded = in.dim(axis) + pad;
      out.set_dim(axis, DivideExactly(padded, blocks[i]));
      if (padded.concrete() && !out.dim(axis).known())
        return Bad(absl::StrCat("padded dimension ", padded.ToString(), " is no multiple of block ",
                                blocks[i]));
    } else {
      const Dim whole = out.dim(0);
      out.set_dim(0, DivideExactly(whole, blocks[i]));
      if (whole.concrete() && !out.dim(0).known())
        return Bad(
            absl::StrCat("batch ", whole.ToString(), " is no multiple of block ", blocks[i]));
      const Dim cropped = in.dim(axis) * Dim(blocks[i]) + pad * Dim(-1);
      if (cropped.concrete() && cropped.size() < 0)
        return Bad(absl::StrCat("crops exceed dimension ", axis));
      out.set_dim(axis, cropped.concrete() ? cropped : Dim::Unknown());
    }
  }
  return ops::One(c.dtype(0), std::move(out));
}
absl::StatusOr<Types> InferSpaceToBatch(const InferContext& c) { return InferBlocks(c, true); }
absl::StatusOr<Types> InferBatchToSpace(const InferContext& c) { return InferBlocks(c, false); }

// The blocks lie outside the batch, so that rows of one request are apart; blocks of 1 only pad or
// crop what is behind it.
RowMark BlockRows(const RowContext& c) {
  std::vector<int64_t> blocks;
  const bool ones =
      ops::ConstantInts(c.inputs[1], &blocks) &&
      std::all_of(blocks.begin(), blocks.end(), [](int64_t block) { return block == 1; });
  if (ones && !c.OthersConstant(1)) return RowMark::kMixed;
  return ops::MarkOfData(c, 0, ones);
}

OpDef Blocks(const char* name, ops::InferFunction infer) {
  return {
      .name = name, .infer = infer, .rows = BlockRows, .shape_inputs = 6, .input_types = "T i j"};
}
const OpRegistrar kBlocks[] = {OpRegistrar(Blocks("SpaceToBatchND", InferSpaceToBatch)),
                               OpRegistrar(Blocks("BatchToSpaceND", InferBatchToSpace))};

absl::StatusOr<Types> InferDepth(const InferContext& c, bool to_depth) {
  if (!c.shape(0).rank_known()) return ops::One(c.dtype(0), ops::UnknownDims(4));
  const std::string format = c.attrs().String("data_format", "NHWC");
  if (format != "NHWC" && format != "NCHW")
    return absl::UnimplementedError("data_format " + format);
  const int64_t block = c.attrs().Int("block_size");
  if (block < 1 || block > std::numeric_limits<int32_t>::max())
    return Bad(absl::StrCat("block_size ", block));
  const bool first = format == "NCHW";
  SymShape out = c.shape(0);
  const auto change = [&](int axis, Dim times, Dim over) -> absl::Status {
    const Dim before = out.dim(axis);
    out.set_dim(axis, DivideExactly(before * times, over));
    if (before.concrete() && !out.dim(axis).known())
      return Bad(absl::StrCat("dimension ", axis, " of ", c.shape(0).ToString(),
                              " is no multiple of ", over.ToString()));
    return absl::OkStatus();
  };
  const int height = first ? 2 : 1;
  for (int axis : {height, height + 1})
    FLOE_RETURN_IF_ERROR(to_depth ? change(axis, 1, block) : change(axis, block, 1));
  const Dim area = Dim(block) * Dim(block);
  FLOE_RETURN_IF_ERROR(to_depth ? change(first ? 1 : 3, area, 1) : change(first ? 1 : 3, 1, area));
  return ops::One(c.dtype(0), std::move(out));
}
absl::StatusOr<Types> InferSpaceToDepth(const InferContext& c) { return InferDepth(c, true); }
absl::StatusOr<Types> InferDepthToSpace(const InferContext& c) { return InferDepth(c, false); }

OpDef Depth(const char* name, ops::InferFunction infer) {
  return {.name = name,
          .infer = infer,
          .rows = RowsOfInput0,
          .input_types = "T[_,_,_,_]",
          .limits = "NCHW_VECT_C is refused"};
}
const OpRegistrar kDepth[] = {OpRegistrar(Depth("SpaceToDepth", InferSpaceToDepth)),
                              OpRegistrar(Depth("DepthToSpace", InferDepthToSpace))};

// [batch, rows, cols, depth] -> [batch, out_rows, out_cols, ksize_rows * ksize_cols * depth].
absl::StatusOr<Types> InferPatches(const InferContext& c) {
  if (!c.shape(0).rank_known()) return ops::One(c.dtype(0), ops::UnknownDims(4));
  const std::vector<int64_t> k = c.attrs().Ints("ksizes"), s = c.attrs().Ints("strides"),
                             r = c.attrs().Ints("rates");
  if (k.size() != 4 || s.size() != 4 || r.size() != 4)
    return Bad("ksizes, strides and rates need 4 elements");
  FLOE_RETURN_IF_ERROR(ops::CheckWindowNumbers("ksizes", k, 1));
  FLOE_RETURN_IF_ERROR(ops::CheckWindowNumbers("strides", s, 1));
  FLOE_RETURN_IF_ERROR(ops::CheckWindowNumbers("rates", r, 1));
  SymShape out = c.shape(0);
  const ops::WindowPads pads{c.attrs().String("padding") == "SAME", 0, 0};
  for (int axis : {1, 2}) {
    FLOE_ASSIGN_OR_RETURN(
        const Dim size,
        ops::WindowOutput(out.dim(axis), ops::WindowSpan(k[axis], r[axis]), s[axis], pads));
    out.set_dim(axis, size);
  }
  out.set_dim(3, out.dim(3) * Dim(k[1]) * Dim(k[2]));
  return ops::One(c.dtype(0), std::move(out));
}
const OpRegistrar kPatches(ops::Simple("ExtractImagePatches", InferPatches, RowsOfInput0),
                           "T[_,_,_,_]");

}  // namespace
}  // namespace floe
