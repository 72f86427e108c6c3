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
  const int64_t bits = c.attrs().Int("num_bits", 8);
  if (bits < 1 || bits > 62) return Bad(absl::StrCat("num_bits is ", bits, ", expected 1 to 62"));
  return InferSame(c);
}
OpDef Quantize(RowRule rows, const char* types) {
  return {.infer = InferQuantize, .rows = rows, .input_types = types};
}
const ops::Family kFakeQuantArgs({"FakeQuantWithMinMaxArgs"}, Quantize(FakeQuantRows, "float32"));
const ops::Family kFakeQuant({"FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel"},
                             Quantize(FakeQuantRows, "float32 float32 float32"));
const ops::Family kQuantizeV2({"QuantizeAndDequantizeV2"}, Quantize(QuantizeRows, "T T T"));
const ops::Family kQuantizeV3({"QuantizeAndDequantizeV3"}, Quantize(QuantizeRows, "T T T int32"));

// Logits [batch, classes]; labels of the same shape, or a class each. Outputs: loss [batch],
// gradient [batch, classes].
absl::StatusOr<Types> InferCrossEntropy(const InferContext& c) {
  SymShape logits = c.shape(0).rank_known() ? c.shape(0) : ops::UnknownDims(2);
  const bool sparse = c.node.op->name[0] == 'S' && c.node.op->name[1] == 'p';
  if (!sparse) {
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
  if (c.marks[0] != RowMark::kRows || c.marks[1] != RowMark::kRows) return RowsNever(c);
  return ops::Checked(ops::PairedRows(c, 2, 1) ? RowMark::kRows : RowMark::kMixed, c);
}
OpDef CrossEntropy(const char* name, RowRule rows) {
  OpDef def = ops::MixingRows(name, {"loss", "backprop"}, InferCrossEntropy);
  def.rows = rows;
  return def;
}
const OpRegistrar kLosses[] = {
    OpRegistrar(CrossEntropy("SoftmaxCrossEntropyWithLogits", DenseCrossEntropyRows),
                "T[_,_] T[_,_]"),
    OpRegistrar(CrossEntropy("SparseSoftmaxCrossEntropyWithLogits", SparseCrossEntropyRows),
                "T[_,_] i"),
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
  SymShape state = c.shape(1).rank_known() ? c.shape(1) : ops::UnknownDims(2);
  if (!state.dim(0).known() && c.shape(0).rank_known()) state.set_dim(0, c.shape(0).dim(0));
  return Types(outputs, TensorType{c.dtype(0), state});
}
absl::StatusOr<Types> InferGru(const InferContext& c) { return InferCell(c, 4); }
absl::StatusOr<Types> InferLstm(const InferContext& c) { return InferCell(c, 7); }

// seq_len_max, x [time, batch, in], cs and h before [batch, cell], weights: [time, batch, cell]
// each.
absl::StatusOr<Types> InferBlockLstm(const InferContext& c) {
  const SymShape out = {ops::DimOf(c, 1, 0), ops::DimOf(c, 1, 1), ops::DimOf(c, 2, 1)};
  return Types(7, TensorType{c.dtype(1), out});
}

const std::vector<std::string> kLstmOutputs = {"i", "cs", "f", "o", "ci", "co", "h"};
const ops::Family kBlockLstm({"BlockLSTM", "BlockLSTMV2"},
                             {.output_names = kLstmOutputs,
                              .infer = InferBlockLstm,
                              .rows = ops::NoRows,
                              .input_types = "int64[] T[_,_,_] T[_,_] T[_,_] T[_,_] T T T T"});
const OpRegistrar kCells[] = {
    OpRegistrar({.name = "GRUBlockCell",
                 .output_names = {"r", "u", "c", "h"},
                 .infer = InferGru,
                 .rows = GruRows,
                 .input_types = "float32[_,_] float32[_,_] float32 float32 float32 float32"}),
    OpRegistrar({.name = "LSTMBlockCell",
                 .output_names = kLstmOutputs,
                 .infer = InferLstm,
                 .rows = LstmRows,
                 .input_types = "T[_,_] T[_,_] T T T T T T"}),
};

}  // namespace
}  // namespace floe
