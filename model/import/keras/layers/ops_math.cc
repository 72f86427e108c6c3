// keras.ops.math and what TensorFlow has of the kind: segments, the largest, distances, spectra;
// and blocks of images.
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/import/keras/operation.h"
#include "model/import/keras/windows.h"

namespace floe::keras {
namespace {

// ---- segments ----

KValue Segment(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef data = TensorAt(c, 0, {"data"}), ids = TensorAt(c, 1, {"segment_ids"});
  std::string name = OperationName(c);  // "SegmentSum", or "math.unsorted_segment_sum"
  const bool keras3 = IsKeras3(c);
  bool sorted = keras3 && BoolOption(c, {"sorted"}, false);
  const Json& number = Option(c, {"num_segments"});
  if (!keras3) sorted = !absl::StrContains(c.class_name, "unsorted");
  if (!b.ok()) return {};
  if (sorted && !number.is_null()) c.Fail("num_segments of sorted segments");
  if (sorted) return b.Op(name, {data, ids});
  ValueRef segments;
  if (!number.is_null()) {
    segments = Int(b, IntOption(c, {"num_segments"}, 0));
  } else if (name == "SegmentSum") {
    const ValueRef unique = b.Outputs("Unique", {ids}, 2, {{"out_idx", DType::kInt32}})[0];
    segments = b.Op("Size", {unique});
  } else {
    segments = Cast(b, Add(b, Reduce(b, "Max", ids, {0}, false), 1.0), DType::kInt32);
  }
  return b.Op("Unsorted" + name, {data, ids, segments});
}

// ---- the largest ----

KValue TopK(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = TensorAt(c, 0, {"x", "input"});
  const int64_t k = IntOption(c, {"k"}, 1);
  const bool sorted = BoolOption(c, {"sorted"}, true);
  const std::optional<DType> index = TypeOption(c, {"index_type"});
  std::vector<ValueRef> both = b.Outputs("TopKV2", {x, Int(b, k)}, 2, {{"sorted", sorted}});
  if (!b.ok()) return {};
  if (!sorted && k > 1) return c.Refuse("sorted=False, whose order is TensorFlow's own,");
  if (index.has_value()) both[1] = Cast(b, both[1], *index);
  return std::vector<KValue>{both[0], both[1]};
}

KValue InTopK(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef targets = TensorAt(c, 0, {"targets"}), x = TensorAt(c, 1, {"predictions"});
  const int64_t k = IntOption(c, {"k"}, 1);
  const bool wide = b.dtype(targets) == DType::kInt64;
  return b.Op("InTopKV2", {x, targets, wide ? Int64(b, k) : Int(b, k)});
}

// ---- distances ----

KValue Distances(LayerContext& c) {
  GraphBuilder& b = c.b;
  const auto [x, y] = TwoOperands(c);
  const int rank = Rank(b, x), other = Rank(b, y);
  if (!b.ok() || rank < 2 || other < 2) {
    c.Fail("matrices are needed");
    return {};
  }
  const ValueRef apart = Sub(b, ExpandDims(b, x, rank - 1), ExpandDims(b, y, other - 2));
  return b.Op("Sqrt", {Reduce(b, "Sum", b.Op("Square", {apart}), {-1}, false)});
}

ValueRef Log10(GraphBuilder& b, ValueRef x) {
  return b.Op("RealDiv", {b.Op("Log", {x}), Scalar(b, b.dtype(x), 2.302585092994046)});
}

KValue SignalToNoise(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = TensorAt(c, 0, {"x1", "a"}), y = TensorAt(c, 1, {"x2", "b"});
  const double most = NumberOption(c, {"max_val"}, 1);
  const int rank = Rank(b, x);
  if (!b.ok()) return {};
  if (!Floating(b, x) || b.dtype(x) != b.dtype(y)) return c.Refuse("images of other types");
  std::vector<int64_t> axes;
  for (int k = IsKeras3(c) ? 0 : rank - 3; k < rank; ++k) axes.push_back(k);
  const ValueRef error = Reduce(b, "Mean", b.Op("SquaredDifference", {x, y}), axes, false);
  const ValueRef peak = Mul(b, Log10(b, Scalar(b, b.dtype(x), most)), 20.0);
  return Sub(b, peak, Mul(b, Log10(b, error), 10.0));
}

// ---- spectra: pairs of real and imaginary parts ----

ValueRef ComplexOf(LayerContext& c, bool conjugate) {
  const std::vector<Operand> parts = OperandsAt(c, 0, {"x"});
  if (parts.size() != 2) c.Fail("a real and an imaginary part are needed");
  if (!c.b.ok()) return {};
  GraphBuilder& b = c.b;
  const bool wide = b.dtype(parts[0].value) == DType::kFloat64;
  const ValueRef imaginary = conjugate ? b.Op("Neg", {parts[1].value}) : parts[1].value;
  return b.Op("Complex", {parts[0].value, imaginary},
              {{"Tout", wide ? DType::kComplex128 : DType::kComplex64}});
}

std::vector<KValue> ComplexParts(GraphBuilder& b, ValueRef z) {
  const DType dtype = b.dtype(z) == DType::kComplex128 ? DType::kFloat64 : DType::kFloat32;
  return {b.Op("Real", {z}, {{"Tout", dtype}}), b.Op("Imag", {z}, {{"Tout", dtype}})};
}

KValue Fourier(LayerContext& c) {
  GraphBuilder& b = c.b;
  const std::string name = OperationName(c);
  if (name == "FFT") return ComplexParts(b, b.Op("FFT", {ComplexOf(c, false)}));
  if (name == "FFT2") return ComplexParts(b, b.Op("FFT2D", {ComplexOf(c, false)}));
  return ComplexParts(b, b.Op("IFFT2D", {ComplexOf(c, false)}));
}

KValue RealFourier(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = TensorAt(c, 0, {"x"});
  const int64_t length = IntOption(
      c, {"fft_length"},
      Option(c, {"fft_length"}).is_null() ? SizeOf(b, x, -1, "the length of a signal") : 0);
  const bool wide = b.dtype(x) == DType::kFloat64;
  return ComplexParts(b, b.Op("RFFT", {x, Ints(b, {length})},
                              {{"Tcomplex", wide ? DType::kComplex128 : DType::kComplex64}}));
}

KValue InverseRealFourier(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef z = ComplexOf(c, false);
  const bool given = !Option(c, {"fft_length"}).is_null();
  const int64_t own = given || !b.ok() ? 0 : 2 * (SizeOf(b, z, -1, "the length of a spectrum") - 1);
  const int64_t length = IntOption(c, {"fft_length"}, own);
  const bool wide = b.dtype(z) == DType::kComplex128;
  return b.Op("IRFFT", {z, Ints(b, {length})},
              {{"Treal", wide ? DType::kFloat64 : DType::kFloat32}});
}

// Windows of the last axis, each a step after the other.
KValue Frames(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = TensorAt(c, 0, {"x", "signal"});
  const int64_t length = IntOption(c, {"sequence_length", "frame_length"}, 0),
                step = IntOption(c, {"sequence_stride", "frame_step"}, 0);
  const bool pad = BoolOption(c, {"pad_end"}, false);
  const double value = NumberOption(c, {"pad_value"}, 0);
  const int rank = Rank(b, x);
  const int64_t axis = IntOption(c, {"axis"}, -1);
  if (axis != -1 && axis != rank - 1) return c.Refuse("another axis than the last");
  const int64_t size = SizeOf(b, x, -1, "the length of a signal");
  if (length < 1 || step < 1 || length > INT32_MAX || step > INT32_MAX)
    c.Fail(absl::StrCat("frames of ", length, " each ", step));
  if (!b.ok() || rank < 1) return {};
  int64_t frames = size < length ? 0 : (size - length) / step + 1;
  if (pad) frames = (size + step - 1) / step;
  constexpr int64_t kMost = 1 << 20;
  if (frames < 1 || frames * length > kMost) return c.Refuse(absl::StrCat(frames, " frames"));
  const int64_t needed = (frames - 1) * step + length;
  if (needed > size) {
    std::vector<std::pair<int64_t, int64_t>> pads(rank);
    pads[rank - 1] = {0, needed - size};
    x = Pad(b, x, pads, value);
  }
  std::vector<int64_t> indices;
  for (int64_t k = 0; k < frames; ++k) {
    for (int64_t i = 0; i < length; ++i) indices.push_back(k * step + i);
  }
  const ValueRef places = Reshape(b, Ints(b, indices), {WantedDim(frames), WantedDim(length)});
  return b.Op("GatherV2", {x, places, Int(b, rank - 1)});
}

// ---- blocks ----

KValue MathBlocks(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = TensorAt(c, 0, {"x", "input"});
  const int64_t size = IntOption(c, {"block_size"}, 2);
  const std::string format = TextOption(c, {"data_format"}, "channels_last");
  const bool last = format == "channels_last" || format == "NHWC";
  if (format == "NCHW_VECT_C") return c.Refuse("data_format NCHW_VECT_C");
  const ValueRef y = b.Op(OperationName(c), {ChannelsToLast(b, x, last)},
                          {{"block_size", size}, {"data_format", std::string("NHWC")}});
  return ChannelsFromLast(b, y, last);
}

std::vector<int64_t> BothParts(LayerContext& c, Names names, int64_t otherwise) {
  std::vector<int64_t> pair = IntOptions(c, names);
  if (pair.empty()) pair = {otherwise};
  if (pair.size() == 1) pair.push_back(pair[0]);
  if (pair.size() != 2) c.Fail(absl::StrCat(*names.begin(), " has ", pair.size(), " numbers"));
  pair.resize(2, 1);
  return pair;
}

KValue Unfold(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = TensorAt(c, 0, {"x"});
  const std::vector<int64_t> k = BothParts(c, {"kernel_size"}, 1),
                             d = BothParts(c, {"dilation"}, 1), p = BothParts(c, {"padding"}, 0),
                             s = BothParts(c, {"stride"}, 1);
  const int64_t channels = SizeOf(b, x, 1, "the number of channels");
  if (!b.ok()) return {};
  if (p[0] != 0 || p[1] != 0) x = Pad(b, x, {{0, 0}, {0, 0}, {p[0], p[0]}, {p[1], p[1]}});
  const ValueRef patches = b.Op("ExtractImagePatches", {Transpose(b, x, {0, 2, 3, 1})},
                                {{"ksizes", std::vector<int64_t>{1, k[0], k[1], 1}},
                                 {"strides", std::vector<int64_t>{1, s[0], s[1], 1}},
                                 {"rates", std::vector<int64_t>{1, d[0], d[1], 1}},
                                 {"padding", std::string("VALID")}});
  if (!b.ok()) return {};
  const WantedDim n = DimOf(b, patches, 0);
  const int64_t height = SizeOf(b, patches, 1, "the height"),
                width = SizeOf(b, patches, 2, "the width");
  const ValueRef apart = Reshape(b, patches, {n, height, width, k[0], k[1], channels});
  return Reshape(b, Transpose(b, apart, {0, 5, 3, 4, 1, 2}),
                 {n, channels * k[0] * k[1], height * width});
}

// ---- others ----

KValue InverseErf(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = TensorAt(c, 0, {"x"});
  if (!b.ok() || b.dtype(x) == DType::kFloat64) return b.Op("Erfinv", {x});
  return Cast(b, b.Op("Erfinv", {Cast(b, x, DType::kFloat32)}), b.dtype(x));
}

KValue MultiHot(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef ids = TensorAt(c, 0, {"inputs", "x"});
  const int64_t classes = IntOption(c, {"num_classes", "num_tokens"}, 0),
                axis = IntOption(c, {"axis"}, -1);
  const DType dtype = TypeOption(c, {"dtype"}).value_or(DType::kFloat32);
  if (BoolOption(c, {"sparse"}, false)) return c.Refuse("sparse=True");
  const int rank = Rank(b, ids);
  const ValueRef hot = b.Op(
      "OneHot", {ids, Int(b, classes), Scalar(b, DType::kInt32, 1), Scalar(b, DType::kInt32, 0)},
      {{"axis", axis}});
  return Cast(b, Reduce(b, "Max", hot, {rank > 1 ? 1 : 0}, false), dtype);
}

KValue Polar(LayerContext& c) {
  GraphBuilder& b = c.b;
  const auto [size, angle] = TwoOperands(c);
  const bool wide = b.dtype(size) == DType::kFloat64;
  return b.Op("Complex", {Mul(b, size, b.Op("Cos", {angle})), Mul(b, size, b.Op("Sin", {angle}))},
              {{"Tout", wide ? DType::kComplex128 : DType::kComplex64}});
}

KValue Crelu(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = TensorAt(c, 0, {"features"});
  const int64_t axis = IntOption(c, {"axis"}, -1);
  const int rank = Rank(b, x);
  const ValueRef both =
      Concat(b, {x, b.Op("Neg", {x})}, static_cast<int>(axis < 0 ? axis + rank : axis));
  return b.Op("Relu", {both});
}

KValue Lookup(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef rows = TensorAt(c, 0, {"params"}), ids = TensorAt(c, 1, {"ids"});
  TextOption(c, {"partition_strategy"}, "");  // of several tables
  BoolOption(c, {"validate_indices"}, true);
  return b.Op("GatherV2", {rows, ids, Int(b, 0)});
}

// It drops at inference too; nothing at a rate of zero.
KValue Dropout(LayerContext& c) {
  const ValueRef x = TensorAt(c, 0, {"x"});
  Option(c, {"noise_shape"});
  Option(c, {"seed"});
  if (NumberOption(c, {"rate"}, 0) != 0)
    return c.Refuse("tf.nn.dropout, which is random at inference too");
  return x;
}

const OperationRegistrar kMathFunctions[] = {
    {"SegmentSum", {"math.segment_sum", "math.unsorted_segment_sum"}, Segment},
    {"SegmentMax", {"math.segment_max", "math.unsorted_segment_max"}, Segment},
    {"SegmentMin", {"math.segment_min", "math.unsorted_segment_min"}, Segment},
    {"SegmentProd", {"math.segment_prod", "math.unsorted_segment_prod"}, Segment},
    {"TopK", {"math.top_k", "nn.top_k"}, TopK},
    {"InTopK", {"math.in_top_k", "nn.in_top_k"}, InTopK},
    {"CDist", {}, Distances},
    {"PSNR", {"image.psnr"}, SignalToNoise},
    {"FFT", {}, Fourier},
    {"FFT2", {}, Fourier},
    {"IFFT2", {}, Fourier},
    {"RFFT", {}, RealFourier},
    {"IRFFT", {}, InverseRealFourier},
    {"ExtractSequences", {"signal.frame"}, Frames},
    {"DepthToSpace", {"nn.depth_to_space"}, MathBlocks},
    {"SpaceToDepth", {"nn.space_to_depth"}, MathBlocks},
    {"Unfold", {}, Unfold},
    {"Erfinv", {"math.erfinv"}, InverseErf},
    {"MultiHot", {}, MultiHot},
    {"Polar", {}, Polar},
    {"", {"nn.crelu"}, Crelu},
    {"", {"nn.embedding_lookup"}, Lookup},
    {"", {"nn.dropout"}, Dropout}};

}  // namespace
}  // namespace floe::keras
