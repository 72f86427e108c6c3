// Conv2D (with groups) and DepthwiseConv2dNative over NHWC or NCHW images. Both may carry what
// an Epilogue, and only Conv2D's may have a residual.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/conv_nd.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

absl::Status CheckInputs(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectInputs(c, 2 + EpilogueOf(c.attrs()).inputs()));
  FLOE_RETURN_IF_ERROR(ops::ExpectOneType(c));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 0, 4));
  return ops::ExpectRank(c, 1, 4);
}

// Output channels of a filter [height, width, in, out], after checking it against the input's
// channels.
absl::StatusOr<Dim> DenseChannels(const InferContext& c, Dim channels) {
  const Dim in = c.shape(1).dim(2), out = c.shape(1).dim(3);
  if (!channels.concrete() || !in.concrete()) return out;
  if (in.size() < 1 || channels.size() % in.size() != 0) {
    return Bad(absl::StrCat("input ", c.shape(0).ToString(), " has ", channels.size(),
                            " channels, the filter ", c.shape(1).ToString(), " takes ", in.size()));
  }
  const int64_t groups = channels.size() / in.size();
  if (out.concrete() && groups > 0 && out.size() % groups != 0) {
    return Bad(absl::StrCat(out.size(), " output channels for ", groups, " groups"));
  }
  return out;
}

// Output channels of a depthwise filter [height, width, channels, multiplier].
absl::StatusOr<Dim> DepthwiseChannels(const InferContext& c, Dim channels) {
  const Dim in = c.shape(1).dim(2);
  if (channels.concrete() && in.concrete() && channels != in) {
    return Bad(absl::StrCat("input ", c.shape(0).ToString(), " has ", channels.size(),
                            " channels, the filter ", c.shape(1).ToString(), " takes ", in.size()));
  }
  return (channels.concrete() ? channels : in) * c.shape(1).dim(3);
}

absl::Status CheckResidual(const InferContext& c, const SymShape& out) {
  const Epilogue epilogue = EpilogueOf(c.attrs());
  if (!epilogue.has_residual()) return absl::OkStatus();
  if (c.attrs().String("data_format", "NHWC") != "NHWC")
    return Bad("a residual is added to NHWC alone");
  return ops::ExpectRank(c, epilogue.residual, out.rank());
}

template <absl::StatusOr<Dim> (*kChannels)(const InferContext&, Dim)>
absl::StatusOr<Types> Infer(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(CheckInputs(c));
  FLOE_ASSIGN_OR_RETURN(const ops::ConvNd window, ops::ConvNdOf(c.attrs(), 2));
  SymShape out = ops::UnknownDims(4);
  const SymShape& in = c.shape(0);
  if (in.rank_known()) out.set_dim(0, in.dim(0));
  if (!c.shape(1).rank_known()) return ops::One(c.dtype(0), std::move(out));
  const Dim channels = in.rank_known() ? in.dim(window.channel_axis()) : Dim::Unknown();
  FLOE_ASSIGN_OR_RETURN(const Dim out_channels, kChannels(c, channels));
  out.set_dim(window.channel_axis(), out_channels);
  for (int i = 0; in.rank_known() && i < 2; ++i) {
    const Dim kernel = c.shape(1).dim(i);
    if (!kernel.concrete()) continue;
    FLOE_ASSIGN_OR_RETURN(const Dim size,
                          ops::WindowOutput(in.dim(window.axis(i)), window.Span(i, kernel.size()),
                                            window.stride[i], window.pads[i]));
    out.set_dim(window.axis(i), size);
  }
  FLOE_RETURN_IF_ERROR(ops::CheckFusedBias(c, out_channels));
  FLOE_RETURN_IF_ERROR(CheckResidual(c, out));
  return ops::One(c.dtype(0), std::move(out));
}

RowMark Rows(const RowContext& c) { return ops::ConvRows(c, EpilogueOf(c.node.attrs).residual); }

// The products of one output element lie along the first `kDims` dims of the filter.
template <int kDims>
double FilterFlops(const Node&, absl::Span<const TensorType> in, absl::Span<const TensorType> out,
                   int64_t rows) {
  const SymShape& filter = in[1].shape;
  if (!filter.concrete() || filter.rank() != 4 || !out[0].shape.known()) return 0;
  double taps = 1;
  for (int i = 0; i < kDims; ++i) taps *= static_cast<double>(filter.dim(i).size());
  return 2 * taps * static_cast<double>(out[0].shape.At(rows).elements());
}

const OpRegistrar kConv2D({.name = "Conv2D",
                           .min_inputs = 2,
                           .max_inputs = 4,
                           .infer = Infer<DenseChannels>,
                           .rows = Rows,
                           .flops = FilterFlops<3>,
                           .input_types = "T T"});
const OpRegistrar kDepthwise({.name = "DepthwiseConv2dNative",
                              .min_inputs = 2,
                              .max_inputs = 3,
                              .infer = Infer<DepthwiseChannels>,
                              .rows = RowsOfInput0,
                              .flops = FilterFlops<2>,
                              .input_types = "T T"});

}  // namespace
}  // namespace floe
