// Simulated quantisation, losses, and recurrent cells as single ops.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

// The range is constant; one that is computed from the whole input mixes rows.
RowMark FakeQuantRows(const RowContext& c) {
  if (!c.OthersConstant(1)) return RowMark::kMixed;
  return ops::MarkOfData(c, 0, true);
}
RowMark QuantizeRows(const RowContext& c) {
  const bool given = c.node.op->name == "QuantizeAndDequantizeV3";  // where the file does not say
  if (c.node.attrs.Bool("range_given", given)) return FakeQuantRows(c);
  const RowMark mark = c.OthersConstant(1) ? c.marks[0] : RowMark::kMixed;
  return mark == RowMark::kRows ? RowMark::kMixed : ops::Checked(mark, c);
}
// The range is of the input's type; num_bits as an input follows it.
absl::StatusOr<Types> InferQuantize(const InferContext& c) {
  for (int i = 1; i < c.num_inputs() && i < 3; ++i)
    FLOE_RETURN_IF_ERROR(ops::ExpectType(c, i, c.dtype(0)));
  const int64_t bits = c.attrs().Int("num_bits", 8);
  if (bits < 1 || bits > 62) return Bad(absl::StrCat("num_bits is ", bits, ", expected 1 to 62"));
  return InferSame(c);
}
OpDef Quantize(const std::string& name, int inputs, RowRule rows) {
  return {.name = name,
          .min_inputs = inputs,
          .max_inputs = inputs,
          .infer = InferQuantize,
          .rows = rows,
          .tensorflow = {name}};
}
const OpRegistrar kQuantize[] = {
    OpRegistrar(Quantize("FakeQuantWithMinMaxArgs", 1, FakeQuantRows), "float32"),
    OpRegistrar(Quantize("FakeQuantWithMinMaxVars", 3, FakeQuantRows), "float32 float32 float32"),
    OpRegistrar(Quantize("FakeQuantWithMinMaxVarsPerChannel", 3, FakeQuantRows),
                "float32 float32 float32"),
    OpRegistrar(Quantize("QuantizeAndDequantizeV2", 3, QuantizeRows), "T T T"),
    OpRegistrar(Quantize("QuantizeAndDequantizeV3", 4, QuantizeRows), "T T T int32"),
};

// Logits [batch, classes]; labels of the same shape, or a class each. Outputs: loss [batch],
// gradient [batch, classes].
absl::StatusOr<Types> InferCrossEntropy(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 0, 2));
  SymShape logits = c.shape(0).rank_known() ? c.shape(0) : ops::UnknownDims(2);
  const bool sparse = c.node.op->name[0] == 'S' && c.node.op->name[1] == 'p';
  if (!sparse) {
    FLOE_RETURN_IF_ERROR(ops::ExpectOneType(c));
    FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 1, 2));
    FLOE_ASSIGN_OR_RETURN(logits, BroadcastShapes(logits, c.shape(1)));
    if (!logits.rank_known()) logits = ops::UnknownDims(2);
  }
  return Types{{c.dtype(0), {logits.dim(0)}}, {c.dtype(0), logits}};
}
RowMark DenseCrossEntropyRows(const RowContext& c) {
  return RowsElementwise(RowContext{c.node, c.marks, c.inputs, c.outputs.subspan(1)});
}
// The labels lie along dim 0, so that constant ones would give each row another.
RowMark SparseCrossEntropyRows(const RowContext& c) {
  const SymShape &logits = c.inputs[0].type.shape, &labels = c.inputs[1].type.shape;
  const bool both = c.marks[0] == RowMark::kRows && c.marks[1] == RowMark::kRows;
  if (!both) return RowsNever(c);
  return ops::Checked(logits.rank_known() && labels.rank_known() && logits.rank() == 2 &&
                              labels.rank() == 1 && logits.dim(0) == labels.dim(0)
                          ? RowMark::kRows
                          : RowMark::kMixed,
                      c);
}
OpDef CrossEntropy(const std::string& name, RowRule rows) {
  return {.name = name,
          .min_inputs = 2,
          .max_inputs = 2,
          .output_names = {"loss", "backprop"},
          .infer = InferCrossEntropy,
          .rows = rows,
          .tensorflow = {name}};
}
const OpRegistrar kLosses[] = {
    OpRegistrar(CrossEntropy("SoftmaxCrossEntropyWithLogits", DenseCrossEntropyRows), "T T"),
    OpRegistrar(CrossEntropy("SparseSoftmaxCrossEntropyWithLogits", SparseCrossEntropyRows), "T i"),
};

// Inputs x [batch, in], state [batch, cell], then weights: every output is [batch, cell].
RowMark CellRows(const RowContext& c, size_t states) {
  bool rows = false;
  for (size_t i = 0; i < c.marks.size(); ++i) {
    if (c.marks[i] == RowMark::kUnknown || c.marks[i] == RowMark::kMixed) return c.marks[i];
    if (c.marks[i] != RowMark::kRows) continue;
    if (i >= states) return RowMark::kMixed;
    rows = true;
  }
  if (!rows) return ops::Checked(RowMark::kConstant, c);
  // A constant state of one row per request would have to know their number.
  for (size_t i = 0; i < states; ++i) {
    if (c.marks[i] != RowMark::kRows) return RowMark::kMixed;
  }
  return ops::Checked(RowMark::kRows, c);
}
RowMark GruRows(const RowContext& c) { return CellRows(c, 2); }
RowMark LstmRows(const RowContext& c) { return CellRows(c, 3); }

absl::StatusOr<Types> InferCell(const InferContext& c, int outputs) {
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 0, 2));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 1, 2));
  FLOE_RETURN_IF_ERROR(ops::ExpectOneType(c));
  SymShape state = c.shape(1).rank_known() ? c.shape(1) : ops::UnknownDims(2);
  if (!state.dim(0).known() && c.shape(0).rank_known()) state.set_dim(0, c.shape(0).dim(0));
  return Types(outputs, TensorType{c.dtype(0), state});
}
absl::StatusOr<Types> InferGru(const InferContext& c) { return InferCell(c, 4); }
absl::StatusOr<Types> InferLstm(const InferContext& c) { return InferCell(c, 7); }

// seq_len_max, x [time, batch, in], cs and h before [batch, cell], weights: [time, batch, cell]
// each.
absl::StatusOr<Types> InferBlockLstm(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 0, 0));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 1, 3));
  for (int i = 2; i < 5; ++i) FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, i, 2));
  FLOE_RETURN_IF_ERROR(ops::ExpectOneType(c, 1));
  SymShape out = ops::UnknownDims(3);
  for (int i = 0; c.shape(1).rank_known() && i < 2; ++i) out.set_dim(i, c.shape(1).dim(i));
  if (c.shape(2).rank_known()) out.set_dim(2, c.shape(2).dim(1));
  return Types(7, TensorType{c.dtype(1), out});
}
RowMark BlockLstmRows(const RowContext& c) { return ops::Checked(RowsNever(c), c); }
OpDef BlockLstm(const std::string& name) {
  return {.name = name,
          .min_inputs = 9,
          .max_inputs = 9,
          .output_names = {"i", "cs", "f", "o", "ci", "co", "h"},
          .infer = InferBlockLstm,
          .rows = BlockLstmRows,
          .tensorflow = {name}};
}

const OpRegistrar kCells[] = {
    OpRegistrar(BlockLstm("BlockLSTM"), "int64 T T T T T T T T"),
    OpRegistrar(BlockLstm("BlockLSTMV2"), "int64 T T T T T T T T"),
    OpRegistrar({.name = "GRUBlockCell",
                 .min_inputs = 6,
                 .max_inputs = 6,
                 .output_names = {"r", "u", "c", "h"},
                 .infer = InferGru,
                 .rows = GruRows,
                 .input_types = "float32 float32 float32 float32 float32 float32",
                 .tensorflow = {"GRUBlockCell"}}),
    OpRegistrar({.name = "LSTMBlockCell",
                 .min_inputs = 8,
                 .max_inputs = 8,
                 .output_names = {"i", "cs", "f", "o", "ci", "co", "h"},
                 .infer = InferLstm,
                 .rows = LstmRows,
                 .input_types = "T T T T T T T T",
                 .tensorflow = {"LSTMBlockCell"}}),
};

}  // namespace
}  // namespace floe
