// MaxPool and AvgPool over the two spatial dims of an image.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"
#include "model/ops/window.h"

namespace floe {
namespace ops {

absl::Status CheckWindowNumbers(const char* name, absl::Span<const int64_t> values, int64_t least) {
  for (const int64_t value : values) {
    if (value < least || value > kMaxWindowNumber)
      return Bad(
          absl::StrCat(name, " holds ", value, ", expected ", least, " to ", kMaxWindowNumber));
  }
  return absl::OkStatus();
}

int64_t WindowSpan(int64_t kernel, int64_t dilation) {
  int64_t span = 0;
  if (__builtin_mul_overflow(kernel - 1, dilation, &span) || span > kMaxWindowNumber)
    return kMaxWindowNumber + 1;
  return span + 1;
}

absl::StatusOr<Dim> WindowOutput(Dim in, int64_t kernel, int64_t stride, const WindowPads& pads) {
  if (kernel <= 0 || kernel > kMaxWindowNumber || stride <= 0)
    return Bad(absl::StrCat("window ", kernel, " with stride ", stride));
  if (!in.concrete()) return Dim::Unknown();
  if (pads.same) return Dim((in.size() + stride - 1) / stride);
  const int64_t room = in.size() + pads.low + pads.high - kernel;
  // TensorFlow divides room + stride by the stride, toward zero: nothing, and no error.
  if (room < 0 && room + stride > -stride) return Dim(0);
  if (room < 0)
    return Bad(absl::StrCat("window ", kernel, " is larger than the padded input ",
                            in.size() + pads.low + pads.high));
  return Dim(room / stride + 1);
}

int64_t PadLow(int64_t in, int64_t out, int64_t kernel, int64_t stride, const WindowPads& pads,
               bool centred) {
  if (!pads.same) return pads.low;
  const int64_t total = (out - 1) * stride + kernel - in;
  return total > 0 || centred ? total / 2 : 0;
}

absl::Status CheckChannelsLast(bool channels_first) {
  if (!channels_first) return absl::OkStatus();
  return absl::UnimplementedError("data_format with channels in front of the spatial dims");
}

absl::StatusOr<Window> WindowOf(const Attrs& attrs, int spatial) {
  Window w;
  const std::string format = attrs.String("data_format", spatial == 2 ? "NHWC" : "NDHWC");
  w.channels_first = format == "NCHW" || format == "NCDHW";
  if (!w.channels_first && format != "NHWC" && format != "NDHWC")
    return Bad("data_format '" + format + "' is unknown");
  const std::vector<int64_t> ksize = attrs.Ints("ksize"), strides = attrs.Ints("strides"),
                             explicit_pads = attrs.Ints("explicit_paddings");
  const size_t rank = spatial + 2;
  if (ksize.size() != rank || strides.size() != rank) {
    return Bad(absl::StrCat("ksize and strides have ", ksize.size(), " and ", strides.size(),
                            " elements, expected ", rank));
  }
  const int channel = w.channels_first ? 1 : spatial + 1;
  if (ksize[0] != 1 || strides[0] != 1) return Bad("pooling over the batch");
  if (ksize[channel] != 1 || strides[channel] != 1)
    return absl::UnimplementedError("pooling over channels");
  const std::string padding = attrs.String("padding");
  if (padding != "SAME" && padding != "VALID" && padding != "EXPLICIT")
    return Bad("padding '" + padding + "' is unknown");
  if (padding == "EXPLICIT" && explicit_pads.size() != 2 * rank) {
    return Bad(absl::StrCat("explicit_paddings has ", explicit_pads.size(), " elements, expected ",
                            2 * rank));
  }
  FLOE_RETURN_IF_ERROR(CheckWindowNumbers("ksize", ksize, 1));
  FLOE_RETURN_IF_ERROR(CheckWindowNumbers("strides", strides, 1));
  FLOE_RETURN_IF_ERROR(CheckWindowNumbers("explicit_paddings", explicit_pads, 0));
  for (int i = 0; i < spatial; ++i) {
    const int axis = w.axis(i);
    w.kernel.push_back(ksize[axis]);
    w.stride.push_back(strides[axis]);
    WindowPads pads;
    pads.same = padding == "SAME";
    if (padding == "EXPLICIT") pads = {false, explicit_pads[2 * axis], explicit_pads[2 * axis + 1]};
    w.pads.push_back(pads);
  }
  return w;
}

absl::StatusOr<Types> InferPool(const InferContext& c, int spatial) {
  FLOE_ASSIGN_OR_RETURN(const Window w, WindowOf(c.attrs(), spatial));
  FLOE_RETURN_IF_ERROR(ExpectRank(c, 0, spatial + 2));
  if (!c.shape(0).rank_known()) return One(c.dtype(0), UnknownDims(spatial + 2));
  SymShape out = c.shape(0);
  for (int i = 0; i < spatial; ++i) {
    FLOE_ASSIGN_OR_RETURN(const Dim d,
                          WindowOutput(out.dim(w.axis(i)), w.kernel[i], w.stride[i], w.pads[i]));
    out.set_dim(w.axis(i), d);
  }
  return One(c.dtype(0), std::move(out));
}

}  // namespace ops

namespace {

template <int kSpatial>
absl::StatusOr<Types> Infer(const InferContext& c) {
  return ops::InferPool(c, kSpatial);
}

absl::StatusOr<Types> InferWithArgmax(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(Types types, ops::InferPool(c, 2));
  FLOE_ASSIGN_OR_RETURN(const DType index, ops::IndexTypeAttr(c, "Targmax", DType::kInt64));
  types.push_back({index, types[0].shape});
  return types;
}

double PoolFlops(const Node& node, absl::Span<const TensorType>, absl::Span<const TensorType> out,
                 int64_t rows) {
  if (!out[0].shape.known()) return 0;
  double flops = static_cast<double>(out[0].shape.At(rows).elements());
  for (int64_t k : node.attrs.Ints("ksize")) flops *= static_cast<double>(k);
  return flops;
}

OpDef Pool(ops::InferFunction infer) {
  return {.infer = infer,
          .rows = RowsOfInput0,
          .flops = PoolFlops,
          .input_types = "T",
          .limits = "windows over channels are refused"};
}

// The index that argmax gives counts through the whole batch when include_batch_in_index is set.
RowMark ArgmaxRows(const RowContext& c) {
  if (c.node.attrs.Bool("include_batch_in_index") && c.marks[0] == RowMark::kRows)
    return RowMark::kMixed;
  return RowsOfInput0(c);
}

const ops::Family kPools2D({"MaxPool", "AvgPool"}, Pool(Infer<2>));
const ops::Family kPools3D({"MaxPool3D", "AvgPool3D"}, Pool(Infer<3>));
const OpRegistrar kWithArgmax({.name = "MaxPoolWithArgmax",
                               .output_names = {"output", "argmax"},
                               .infer = InferWithArgmax,
                               .rows = ArgmaxRows,
                               .flops = PoolFlops,
                               .input_types = "T"});

}  // namespace
}  // namespace floe
