// Softmax, LogSoftmax and batch normalisation.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"
#include "model/ops/time_major.h"

namespace floe {
namespace {

absl::StatusOr<Types> InferSoftmax(const InferContext& c) {
  if (ops::RankOf(c, 0) == 0) return Bad("input is a scalar");
  return InferSame(c);
}

double SoftmaxFlops(const Node&, absl::Span<const TensorType>, absl::Span<const TensorType> out,
                    int64_t rows) {
  return out[0].shape.known() ? 5.0 * static_cast<double>(out[0].shape.At(rows).elements()) : 0;
}

// The last axis holds the rows when it is the only one.
const ops::Family kSoftmax({"Softmax", "LogSoftmax"}, {.infer = InferSoftmax,
                                                       .rows = ops::RowsFromRank<2>,
                                                       .in_place = 1,
                                                       .flops = SoftmaxFlops,
                                                       .input_types = "T"});

absl::StatusOr<bool> ChannelsFirst(const Attrs& attrs) {
  const std::string format = attrs.String("data_format", "NHWC");
  const bool first = format == "NCHW" || format == "NCDHW";
  if (first || format == "NHWC" || format == "NDHWC") return first;
  return Bad("data_format '" + format + "' is unknown");
}

// One number for each channel. The mean and variance given are not read in training, which takes
// the batch's own, unless the two are averaged.
absl::Status CheckStatistics(const InferContext& c, Dim channels) {
  const bool own =
      c.attrs().Bool("is_training", true) && c.attrs().Float("exponential_avg_factor", 1) == 1;
  for (int i = 1; i < (own ? 3 : 5); ++i) {
    if (ops::Differ(ops::DimOf(c, i, 0), channels))
      return Bad(absl::StrCat("input ", i, " has shape ", c.shape(i).ToString(), ", input ",
                              c.shape(0).ToString(), " has ", channels.ToString(), " channels"));
  }
  return absl::OkStatus();
}

// Inputs: x, scale, offset, mean, variance. Outputs: y, mean, variance, then copies kept for
// training.
absl::StatusOr<Types> InferBatchNorm(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const bool first, ChannelsFirst(c.attrs()));
  FLOE_RETURN_IF_ERROR(
      ops::ExpectType(c, 1, c.dtype(0) == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32));
  const bool known = c.shape(0).rank_known();
  if (known && c.shape(0).rank() != 4 && c.shape(0).rank() != 5)
    return Bad(absl::StrCat("input has shape ", c.shape(0).ToString(), ", expected rank 4 or 5"));
  Dim channels = ops::DimOf(c, 1, 0);
  if (known) {
    const Dim own = c.shape(0).dim(first ? 1 : c.shape(0).rank() - 1);
    if (own.known()) channels = own;
  }
  FLOE_RETURN_IF_ERROR(CheckStatistics(c, channels));
  Types types = {c.inputs[0].type};
  for (int i = 0; i < 4; ++i) types.push_back({c.dtype(1), {channels}});
  if (c.node.op->outputs == 6) types.push_back({c.dtype(1), SymShape{}});
  return types;
}

// The mark is that of y; the others are the given mean and variance.
RowMark BatchNormRows(const RowContext& c) {
  if (c.node.attrs.Bool("is_training", true)) {
    for (RowMark mark : c.marks) {
      if (mark != RowMark::kConstant) return mark == RowMark::kUnknown ? mark : RowMark::kMixed;
    }
    return RowMark::kConstant;
  }
  if (!c.OthersConstant(1)) return RowMark::kMixed;
  return ops::MarkOfData(c, 0, true);
}

// Training with the requests' rows among the channels, as layer normalisation has them: [n,
// k * rows, ...]. Every channel is measured, scaled and shifted by itself.
RowMark BatchNormTimeMajor(const RowContext& c) {
  const Attrs& attrs = c.node.attrs;
  const auto first = ChannelsFirst(attrs);
  const SymShape& x = c.inputs[0].type.shape;
  const bool applies = attrs.Bool("is_training", true) &&
                       attrs.Float("exponential_avg_factor", 1) == 1 && first.ok() && *first &&
                       c.marks[0] == RowMark::kRowsDim1 && ops::BlocksInDim1(x);
  for (int i = 1; i < 5; ++i) {
    const SymShape& given = c.inputs[i].type.shape;
    const bool fits = i < 3 ? c.marks[i] == RowMark::kRows && given == SymShape{x.dim(1)}
                            : c.marks[i] == RowMark::kConstant;
    if (!applies || !fits) return ops::Lost(c);
  }
  return RowMark::kRowsDim1;
}

OpDef BatchNorm(const std::string& name, bool third_reserve = false) {
  std::vector<std::string> outputs = {"y", "batch_mean", "batch_variance", "reserve_space_1",
                                      "reserve_space_2"};
  if (third_reserve) outputs.push_back("reserve_space_3");
  return {.name = name,
          .output_names = std::move(outputs),
          .infer = InferBatchNorm,
          .rows = BatchNormRows,
          .time_major = BatchNormTimeMajor,
          .in_place = 1};
}

const OpRegistrar kBatchNorm[] = {
    OpRegistrar(BatchNorm("FusedBatchNorm"), "float32 float32[_] float32[_] float32[_] float32[_]"),
    OpRegistrar(BatchNorm("FusedBatchNormV2"), "T float32[_] float32[_] float32[_] float32[_]"),
    OpRegistrar(BatchNorm("FusedBatchNormV3", /*third_reserve=*/true), "T U[_] U[_] U[_] U[_]"),
};

}  // namespace
}  // namespace floe
