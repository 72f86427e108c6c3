#include "model/ops/attention.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace ops {
namespace {

absl::StatusOr<AttentionAxes> AxesOf(const Node& node, const char* name, bool key) {
  const std::string layout = node.attrs.String(name);
  const bool plain = layout == "BTNH" || layout == "BNTH" || layout == "BTH";
  if (!plain && !(key && (layout == "BNHT" || layout == "BHT")))
    return Bad(absl::StrCat("attribute ", name, " is '", layout, "', which is no layout"));
  AttentionAxes axes;
  constexpr char kLetters[] = {'B', 'N', 'T', 'H'};
  for (int i = 0; i < 4; ++i) {
    const size_t at = layout.find(kLetters[i]);
    axes[i] = at == std::string::npos ? -1 : static_cast<int>(at);
  }
  return axes;
}

}  // namespace

absl::StatusOr<AttentionForm> AttentionFormOf(const Node& node) {
  AttentionForm form;
  form.scale = node.attrs.Float("scale", 1);
  form.zero = node.attrs.Bool("zero");
  if (node.attrs.Has("fill")) form.fill = node.attrs.Float("fill");
  FLOE_ASSIGN_OR_RETURN(form.q, AxesOf(node, "q", false));
  FLOE_ASSIGN_OR_RETURN(form.k, AxesOf(node, "k", true));
  FLOE_ASSIGN_OR_RETURN(form.v, AxesOf(node, "v", false));
  FLOE_ASSIGN_OR_RETURN(form.out, AxesOf(node, "out", false));
  for (const AttentionAxes& axes : {form.k, form.v, form.out}) {
    if ((axes[kHead] < 0) != (form.q[kHead] < 0)) return Bad("some layouts have heads, others not");
  }
  return form;
}

AttentionAxes MaskAxes(const AttentionForm& form, int rank) {
  const bool heads = form.q[kHead] >= 0;
  const auto axis = [&](int from_back) { return rank < from_back ? -1 : rank - from_back; };
  AttentionAxes axes;
  axes[kFeature] = axis(1);
  axes[kPlace] = axis(2);
  axes[kHead] = heads ? axis(3) : -1;
  axes[kBatch] = axis(heads ? 4 : 3);
  return axes;
}

}  // namespace ops

namespace {

using ops::AttentionAxes;

Dim AxisDim(const SymShape& shape, const AttentionAxes& axes, int which) {
  return axes[which] < 0 ? Dim(1) : shape.dim(axes[which]);
}

// The size that both are stretched to.
absl::StatusOr<Dim> Joined(Dim a, Dim b) {
  FLOE_ASSIGN_OR_RETURN(const SymShape joined, BroadcastShapes({a}, {b}));
  return joined.dim(0);
}

absl::StatusOr<Types> InferAttention(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const ops::AttentionForm form, ops::AttentionFormOf(c.node));
  const bool heads = form.q[ops::kHead] >= 0;
  const int rank = heads ? 4 : 3;
  Dim batch(1), head(1);
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (!c.shape(i).rank_known()) return Bad(absl::StrCat("the rank of input ", i, " is unknown"));
    if (i < 3 ? c.shape(i).rank() != rank : c.shape(i).rank() > rank)
      return Bad(absl::StrCat("input ", i, " has shape ", c.shape(i).ToString()));
    const AttentionAxes axes = i == 0   ? form.q
                               : i == 1 ? form.k
                               : i == 2 ? form.v
                                        : ops::MaskAxes(form, c.shape(i).rank());
    FLOE_ASSIGN_OR_RETURN(batch, Joined(batch, AxisDim(c.shape(i), axes, ops::kBatch)));
    FLOE_ASSIGN_OR_RETURN(head, Joined(head, AxisDim(c.shape(i), axes, ops::kHead)));
  }
  FLOE_RETURN_IF_ERROR(ops::ExpectType(c, 1, c.dtype(0)));
  FLOE_RETURN_IF_ERROR(ops::ExpectType(c, 2, c.dtype(0)));
  if (c.num_inputs() > 3)
    FLOE_RETURN_IF_ERROR(ops::ExpectType(c, 3, form.fill.has_value() ? DType::kBool : c.dtype(0)));
  const Dim features = AxisDim(c.shape(0), form.q, ops::kFeature),
            keys = AxisDim(c.shape(1), form.k, ops::kPlace);
  if (ops::Differ(features, AxisDim(c.shape(1), form.k, ops::kFeature)) ||
      ops::Differ(keys, AxisDim(c.shape(2), form.v, ops::kPlace)))
    return Bad(absl::StrCat("queries ", c.shape(0).ToString(), ", keys ", c.shape(1).ToString(),
                            " and values ", c.shape(2).ToString(), " do not fit together"));
  SymShape out = ops::UnknownDims(rank);
  out.set_dim(form.out[ops::kBatch], batch);
  if (heads) out.set_dim(form.out[ops::kHead], head);
  out.set_dim(form.out[ops::kPlace], AxisDim(c.shape(0), form.q, ops::kPlace));
  out.set_dim(form.out[ops::kFeature], AxisDim(c.shape(2), form.v, ops::kFeature));
  return ops::One(c.dtype(0), std::move(out));
}

// The batch leads every layout; constants must be the same for every row.
RowMark AttentionRows(const RowContext& c) {
  const RowMark worst = RowsNever(c);
  if (worst != RowMark::kMixed) return worst;  // constant or unknown
  const SymShape& out = c.outputs[0].shape;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const SymShape& in = c.inputs[i].type.shape;
    if (!in.rank_known()) return RowMark::kMixed;
    const bool has_batch = in.rank() == out.rank();
    const bool fits = c.marks[i] == RowMark::kConstant
                          ? !has_batch || in.dim(0) == Dim(1)
                          : c.marks[i] == RowMark::kRows && has_batch && in.dim(0) == out.dim(0);
    if (!fits) return RowMark::kMixed;
  }
  return ops::Checked(RowMark::kRows, c);
}

double AttentionFlops(const Node& node, absl::Span<const TensorType> in,
                      absl::Span<const TensorType> out, int64_t rows) {
  const auto form = ops::AttentionFormOf(node);
  if (!form.ok() || !out[0].shape.known() || !in[0].shape.known() || !in[1].shape.known()) return 0;
  const auto width = static_cast<double>(AxisDim(out[0].shape, form->out, ops::kFeature).At(rows));
  const auto features = static_cast<double>(AxisDim(in[0].shape, form->q, ops::kFeature).At(rows));
  const auto keys = static_cast<double>(AxisDim(in[1].shape, form->k, ops::kPlace).At(rows));
  const double queries =
      width == 0 ? 0 : static_cast<double>(out[0].shape.At(rows).elements()) / width;
  return queries * keys * (2 * features + 2 * width + 6);
}

const OpRegistrar kAttention({.name = "Attention",
                              .min_inputs = 3,
                              .max_inputs = 4,
                              .infer = InferAttention,
                              .rows = AttentionRows,
                              .flops = AttentionFlops,
                              .tensorflow = {ops::kNotInFiles}});

}  // namespace
}  // namespace floe
