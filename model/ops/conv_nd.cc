// Conv3D, and the gradients of convolutions by their input (transposed convolutions).
#include "model/ops/conv_nd.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace ops {
namespace {

absl::Status ReadSteps(const Attrs& attrs, const char* name, const ConvNd& conv,
                       int64_t (&steps)[3]) {
  const std::vector<int64_t> values = attrs.Ints(name);
  if (values.empty()) return absl::OkStatus();
  if (static_cast<int>(values.size()) != conv.spatial + 2)
    return Bad(absl::StrCat(name, " has ", values.size(), " numbers, expected ", conv.spatial + 2));
  if (values[0] != 1 || values[conv.channel_axis()] != 1)
    return Bad(absl::StrCat(name, " of batch and channels must be 1"));
  for (int i = 0; i < conv.spatial; ++i) steps[i] = values[conv.axis(i)];
  return CheckWindowNumbers(name, values, 1);
}

absl::Status ReadPadding(const Attrs& attrs, ConvNd* conv) {
  const std::string padding = attrs.String("padding", "VALID");
  if (padding == "VALID") return absl::OkStatus();
  if (padding == "SAME") {
    for (WindowPads& pads : conv->pads) pads.same = true;
    return absl::OkStatus();
  }
  if (padding != "EXPLICIT")
    return Bad("padding '" + padding + "' is none of VALID, SAME, EXPLICIT");
  const std::vector<int64_t> pads = attrs.Ints("explicit_paddings");
  const size_t expected = 2 * (static_cast<size_t>(conv->spatial) + 2);
  if (pads.size() != expected)
    return Bad(
        absl::StrCat("explicit_paddings has ", pads.size(), " numbers, expected ", expected));
  FLOE_RETURN_IF_ERROR(CheckWindowNumbers("explicit_paddings", pads, 0));
  for (int i = 0; i < conv->spatial; ++i) {
    const int axis = conv->axis(i);
    conv->pads[i] = {false, pads[2 * axis], pads[2 * axis + 1]};
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ConvNd> ConvNdOf(const Attrs& attrs, int spatial) {
  ConvNd conv;
  conv.spatial = spatial;
  const std::string last = spatial == 2 ? "NHWC" : "NDHWC", first = spatial == 2 ? "NCHW" : "NCDHW";
  const std::string format = attrs.String("data_format", last);
  if (format != last && format != first)
    return Bad("data_format '" + format + "' is neither " + last + " nor " + first);
  conv.channels_first = format == first;
  FLOE_RETURN_IF_ERROR(ReadSteps(attrs, "strides", conv, conv.stride));
  FLOE_RETURN_IF_ERROR(ReadSteps(attrs, "dilations", conv, conv.dilation));
  FLOE_RETURN_IF_ERROR(ReadPadding(attrs, &conv));
  return conv;
}

RowMark ConvRows(const RowContext& c, int residual) {
  if (residual < 0) return RowsOfInput0(c);
  const SymShape &added = c.inputs[residual].type.shape, &out = c.outputs[0].shape;
  std::vector<RowMark> marks(c.marks.begin(), c.marks.end());
  const bool same =
      added.rank_known() && added.rank() == 4 && out.rank_known() && added.dim(0) == out.dim(0);
  if (marks[residual] == RowMark::kRows && marks[0] == RowMark::kRows && same)
    marks[residual] = RowMark::kConstant;
  return RowsOfInput0({c.node, marks, c.inputs, c.outputs});
}

}  // namespace ops

namespace {

using ops::ConvNd;

// Channels of the image are a multiple of the filter's.
absl::Status CheckChannels(Dim image, Dim filter) {
  if (!image.concrete() || !filter.concrete()) return absl::OkStatus();
  if (filter.size() == 0 || image.size() % filter.size() != 0)
    return Bad(
        absl::StrCat("an image of ", image.size(), " channels, a filter for ", filter.size()));
  return absl::OkStatus();
}

int Biases(const InferContext& c) { return EpilogueOf(c.attrs()).inputs(); }

// input, filter, and a fused bias
absl::StatusOr<Types> InferConv3D(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const ConvNd conv, ops::ConvNdOf(c.attrs(), 3));
  FLOE_RETURN_IF_ERROR(ops::ExpectInputs(c, 2 + Biases(c)));
  FLOE_RETURN_IF_ERROR(ops::ExpectOneType(c));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 0, 5));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 1, 5));
  SymShape out = ops::UnknownDims(5);
  const SymShape &in = c.shape(0), &filter = c.shape(1);
  if (in.rank_known()) out.set_dim(0, in.dim(0));
  if (filter.rank_known()) {
    out.set_dim(conv.channel_axis(), filter.dim(4));
    FLOE_RETURN_IF_ERROR(ops::CheckFusedBias(c, filter.dim(4)));
  }
  if (!in.rank_known() || !filter.rank_known()) return ops::One(c.dtype(0), std::move(out));
  FLOE_RETURN_IF_ERROR(CheckChannels(in.dim(conv.channel_axis()), filter.dim(3)));
  for (int i = 0; i < 3; ++i) {
    if (!filter.dim(i).concrete()) continue;
    FLOE_ASSIGN_OR_RETURN(
        const Dim d, ops::WindowOutput(in.dim(conv.axis(i)), conv.Span(i, filter.dim(i).size()),
                                       conv.stride[i], conv.pads[i]));
    out.set_dim(conv.axis(i), d);
  }
  return ops::One(c.dtype(0), std::move(out));
}
// `side`: the result of the convolution, of which each element meets all taps and the channels that
// its group has of the image.
double FlopsOf(const SymShape& filter, const SymShape& side, int64_t rows) {
  if (!filter.concrete() || filter.rank() == 0 || !side.known()) return 0;
  const int64_t side_channels = std::max<int64_t>(filter.dim(filter.rank() - 1).size(), 1),
                products = filter.At(0).elements() / side_channels;
  return 2 * static_cast<double>(products) * static_cast<double>(side.At(rows).elements());
}
double ForwardFlops(const Node&, absl::Span<const TensorType> in, absl::Span<const TensorType> out,
                    int64_t rows) {
  return FlopsOf(in[1].shape, out[0].shape, rows);
}
double BackwardFlops(const Node&, absl::Span<const TensorType> in, absl::Span<const TensorType>,
                     int64_t rows) {
  return FlopsOf(in[1].shape, in[2].shape, rows);
}

const OpRegistrar kConv3D({.name = "Conv3D",
                           .min_inputs = 2,
                           .max_inputs = 3,
                           .infer = InferConv3D,
                           .rows = RowsOfInput0,
                           .flops = ForwardFlops,
                           .input_types = "T T"});

// That a convolution of an image of `image` gives `gradient` along each spatial dim.
absl::Status CheckGradient(const ConvNd& conv, const SymShape& image, const SymShape& filter,
                           const SymShape& gradient) {
  for (int i = 0; i < conv.spatial; ++i) {
    const Dim size = image.dim(conv.axis(i)), taps = filter.dim(i),
              got = gradient.dim(conv.axis(i));
    if (!size.concrete() || !taps.concrete() || !got.concrete()) continue;
    FLOE_ASSIGN_OR_RETURN(const Dim want, ops::WindowOutput(size, conv.Span(i, taps.size()),
                                                            conv.stride[i], conv.pads[i]));
    if (want != got)
      return Bad(absl::StrCat("input_sizes ", image.ToString(), " need a gradient of size ",
                              want.ToString(), " along spatial dim ", i, ", it has ",
                              got.ToString()));
  }
  return CheckChannels(image.dim(conv.channel_axis()), filter.dim(conv.spatial));
}

// input_sizes (all dims, or the spatial ones alone), filter, gradient, and a fused bias
template <int kSpatial>
absl::StatusOr<Types> InferBackprop(const InferContext& c) {
  constexpr int kRank = kSpatial + 2;
  FLOE_ASSIGN_OR_RETURN(const ConvNd conv, ops::ConvNdOf(c.attrs(), kSpatial));
  FLOE_RETURN_IF_ERROR(ops::ExpectInputs(c, 3 + Biases(c)));
  FLOE_RETURN_IF_ERROR(ops::ExpectOneType(c, 1));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 1, kRank));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 2, kRank));
  const SymShape filter = ops::RankOf(c, 1) == kRank ? c.shape(1) : ops::UnknownDims(kRank);
  const SymShape gradient = ops::RankOf(c, 2) == kRank ? c.shape(2) : ops::UnknownDims(kRank);
  SymShape image = ops::UnknownDims(kRank);
  std::vector<Dim> sizes;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.DimsOf(0, &sizes));
  image.set_dim(0, gradient.dim(0));
  if (!known) return ops::One(c.dtype(2), std::move(image));
  for (Dim d : sizes) {
    if (d.concrete() && d.size() < 0) return Bad(absl::StrCat("input_sizes hold ", d.size()));
  }
  if (sizes.size() == kSpatial) {
    for (int i = 0; i < kSpatial; ++i) image.set_dim(conv.axis(i), sizes[i]);
    image.set_dim(conv.channel_axis(), filter.dim(kSpatial));
  } else if (sizes.size() == kRank) {
    for (int i = 0; i < kRank; ++i) image.set_dim(i, sizes[i]);
    if (sizes[0].concrete() && gradient.dim(0).concrete() && sizes[0] != gradient.dim(0))
      return Bad(absl::StrCat("input_sizes have batch ", sizes[0].size(), ", the gradient ",
                              gradient.dim(0).size()));
  } else {
    return Bad(absl::StrCat("input_sizes has ", sizes.size(), " numbers, expected ", kRank));
  }
  FLOE_RETURN_IF_ERROR(CheckGradient(conv, image, filter, gradient));
  FLOE_RETURN_IF_ERROR(ops::CheckFusedBias(c, image.dim(conv.channel_axis())));
  return ops::One(c.dtype(2), std::move(image));
}

// Rows of the gradient are rows of the output when input_sizes say as many.
RowMark BackpropRows(const RowContext& c) {
  if (c.marks[1] != RowMark::kConstant) return RowsNever(c);
  const SymShape &gradient = c.inputs[2].type.shape, &out = c.outputs[0].shape;
  const bool keeps = gradient.rank_known() && out.rank_known() && gradient.rank() > 0 &&
                     gradient.dim(0) == out.dim(0);
  return ops::MarkOfData(c, 2, keeps);
}

OpDef Backprop(const char* name, ops::InferFunction infer) {
  return {.name = name,
          .min_inputs = 3,
          .max_inputs = 4,
          .infer = infer,
          .rows = BackpropRows,
          .shape_inputs = 1,
          .flops = BackwardFlops};
}
const OpRegistrar kBackprop[] = {
    OpRegistrar(Backprop("Conv2DBackpropInput", InferBackprop<2>), "int32 T T"),
    OpRegistrar(Backprop("Conv3DBackpropInputV2", InferBackprop<3>), "i T T"),
};

}  // namespace
}  // namespace floe
