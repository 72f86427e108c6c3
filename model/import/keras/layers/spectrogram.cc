// STFTSpectrogram, whose transform is a convolution with stored waves, and MelSpectrogram.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/quoted.h"
#include "model/import/keras/layer.h"

namespace floe::keras {
namespace {

constexpr double kEpsilon = 1e-7;  // Keras' own
constexpr int64_t kMostSamples = 1 << 24, kMostBands = 1 << 16;

// [batch, channels, frequencies, time] of each channel's waves.
ValueRef Waves(LayerContext& c, ValueRef x, int64_t channels, ValueRef kernel) {
  GraphBuilder& b = c.b;
  const bool last = c.ChannelsLast();
  const std::string padding = c.config.String("padding", "valid");
  const int64_t frame = c.config.Int("frame_length", 256),
                step = c.config.Int("frame_step", frame / 2);
  if (step < 1) c.Fail(absl::StrCat("frame_step is ", step));
  const WantedDim time = DimOf(b, x, last ? 1 : 2);
  if (last && channels != 1) x = Transpose(b, x, {0, 2, 1});
  x = Reshape(b, x, {-1, 1, time, 1});
  const ValueRef y = b.Op("Conv2D", {x, ExpandDims(b, kernel, 0)},
                          {{"strides", std::vector<int64_t>{1, 1, step, 1}},
                           {"padding", std::string(padding == "same" ? "SAME" : "VALID")}});
  const ValueRef turned = Transpose(b, Squeeze(b, y, {1}), {0, 2, 1});
  return Reshape(b, turned, {-1, channels, DimOf(b, turned, 1), DimOf(b, turned, 2)});
}

ValueRef OutputForm(LayerContext& c, ValueRef y) {
  GraphBuilder& b = c.b;
  const bool last = c.ChannelsLast();
  if (c.config.Bool("expand_dims", false))
    return Transpose(b, y,
                     last ? std::vector<int64_t>{0, 3, 2, 1} : std::vector<int64_t>{0, 1, 3, 2});
  const int64_t both = SizeOf(b, y, 1, "the channels") * SizeOf(b, y, 2, "the frequencies");
  const ValueRef flat = Reshape(b, y, {-1, both, DimOf(b, y, 3)});
  return last ? Transpose(b, flat, {0, 2, 1}) : flat;
}

KValue Stft(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = c.In();
  if (b.ok() && Rank(b, x) != 3) c.Fail("a batch of signals with channels is needed");
  if (!b.ok()) return {};
  const int64_t channels = SizeOf(b, x, c.ChannelsLast() ? 2 : 1, "the channels");
  const std::string mode = c.config.String("mode", "log");
  c.config.Ignore(
      {"window", "periodic", "scaling", "fft_length"});  // of the waves in its variables
  ValueRef real, imag;
  if (mode != "imag") real = Waves(c, x, channels, c.Weight(0));
  if (mode != "real") imag = Waves(c, x, channels, c.Weight(mode == "imag" ? 0 : 1));
  if (mode == "real") return OutputForm(c, real);
  if (mode == "imag") return OutputForm(c, imag);
  if (mode == "angle") return OutputForm(c, b.Op("Atan2", {imag, real}));
  if (mode == "stft") return OutputForm(c, Concat(b, {real, imag}, 2));
  const ValueRef power = Add(b, b.Op("Square", {real}), b.Op("Square", {imag}));
  const auto least = [&](ValueRef v) {
    return b.Op("Maximum", {v, Scalar(b, b.dtype(v), kEpsilon)});
  };
  if (mode == "psd") {  // what lies between the ends counts for both sides
    const int64_t size = SizeOf(b, power, 2, "the frequencies");
    if (size < 2) return OutputForm(c, Add(b, power, power));
    const ValueRef inner = Slice(b, power, 2, 1, size - 1);
    return OutputForm(c, Add(b, power, Pad(b, inner, {{0, 0}, {0, 0}, {1, 1}, {0, 0}})));
  }
  const ValueRef linear = OutputForm(c, b.Op("Sqrt", {least(power)}));
  if (mode == "magnitude") return linear;
  if (mode != "log") c.Fail(absl::StrCat("mode ", Quoted(mode)));
  return b.Op("Log", {least(linear)});
}

struct Mel {
  int64_t fft, step, frame, bands;
  double rate, low, high;
};

Mel MelOptions(LayerContext& c) {
  Mel mel{};
  mel.fft = c.config.Int("fft_length", 2048);
  mel.step = c.config.Int("sequence_stride", 512);
  mel.frame = c.config.Int("sequence_length", mel.fft);
  mel.bands = c.config.Int("num_mel_bins", 128);
  mel.rate = c.config.Number("sampling_rate", 16000);
  mel.low = c.config.Number("min_freq", 20);
  mel.high = c.config.Number("max_freq", std::trunc(mel.rate / 2));
  if (mel.frame < 1 || mel.fft < mel.frame || mel.fft > kMostSamples || mel.step < 1 ||
      mel.bands < 1 || mel.bands > kMostBands)
    c.Fail(absl::StrCat("fft_length ", mel.fft, ", sequence_length ", mel.frame,
                        ", sequence_stride ", mel.step, ", num_mel_bins ", mel.bands));
  return mel;
}

// The window in the middle of the samples of one transform.
ValueRef Window(LayerContext& c, const Mel& mel) {
  const std::string name = c.config.String("window", "hann");
  if (name != "hann" && name != "hamming") c.Fail(absl::StrCat("window ", Quoted(name)));
  if (!c.b.ok()) return {};
  const double mean = name == "hann" ? .5 : .54;
  // TensorFlow's window of odd length is symmetric.
  const int64_t period = mel.frame % 2 == 0 ? mel.frame : mel.frame - 1;
  std::vector<float> window(static_cast<size_t>(mel.fft));
  const auto first = static_cast<size_t>((mel.fft - mel.frame) / 2);
  for (int64_t i = 0; i < mel.frame; ++i) {
    const double turn = period == 0 ? 0 : 2 * std::numbers::pi * i / static_cast<double>(period);
    window[first + static_cast<size_t>(i)] =
        static_cast<float>(period == 0 ? 1 : mean - (1 - mean) * std::cos(turn));
  }
  return c.b.Const(Tensor::Vector(DType::kFloat32, window));
}

// [frequencies, bands]: triangles that are straight on the mel scale, each from the middle of the
// one before it to that of the next. The first frequency, 0, is left out.
ValueRef MelWeights(LayerContext& c, const Mel& mel) {
  const int64_t bins = mel.fft / 2 + 1;
  const absl::Status size = CheckValueBytes(bins * mel.bands * static_cast<int64_t>(sizeof(float)));
  c.b.Fail(size);
  if (!c.b.ok()) return {};
  const auto to_mel = [](double hertz) { return 1127.0 * std::log(1 + hertz / 700.0); };
  const double low = to_mel(mel.low), high = to_mel(mel.high);
  const auto edge = [&](int64_t k) {
    return low + (high - low) * static_cast<double>(k) / static_cast<double>(mel.bands + 1);
  };
  Tensor weights = Tensor::Allocate(DType::kFloat32, {bins, mel.bands});
  auto* w = static_cast<float*>(weights.mutable_data());
  for (int64_t i = 0; i < bins; ++i) {
    const double at = to_mel(mel.rate / 2 * static_cast<double>(i) / static_cast<double>(bins - 1));
    for (int64_t k = 0; k < mel.bands; ++k) {
      const double up = (at - edge(k)) / (edge(k + 1) - edge(k)),
                   down = (edge(k + 2) - at) / (edge(k + 2) - edge(k + 1));
      *w++ = i == 0 ? 0.F : static_cast<float>(std::max(0.0, std::min(up, down)));
    }
  }
  return c.b.Const(weights);
}

ValueRef Decibels(LayerContext& c, ValueRef x) {
  GraphBuilder& b = c.b;
  const double least = c.config.Number("min_power", 1e-10),
               unit = std::max(std::abs(c.config.Number("ref_power", 1)), least);
  const ValueRef log = b.Op("Log", {b.Op("Maximum", {x, Scalar(b, b.dtype(x), least)})});
  const ValueRef y = Add(b, Mul(b, log, 10 / std::numbers::ln10), -10 * std::log10(unit));
  const ValueRef top = Reduce(b, "Max", y, {0, 1, 2}, false);
  return b.Op("Maximum", {y, Add(b, top, -c.config.Number("top_db", 80))});
}

KValue MelSpectrogram(LayerContext& c) {
  GraphBuilder& b = c.b;
  const Mel mel = MelOptions(c);
  ValueRef x = Cast(b, c.In(), DType::kFloat32);
  if (b.ok() && Rank(b, x) != 2) c.Fail("a batch of signals is needed");
  const ValueRef window = Window(c, mel), weights = MelWeights(c, mel);
  if (!b.ok()) return {};
  const auto half = static_cast<int32_t>(mel.fft / 2);
  const ValueRef pads = Reshape(b, Ints(b, {0, 0, half, half}), {2, 2});
  x = b.Op("MirrorPad", {x, pads}, {{"mode", std::string("REFLECT")}});
  const std::vector<int64_t> size{1, 1, mel.fft, 1}, steps{1, 1, mel.step, 1}, rates{1, 1, 1, 1};
  const ValueRef frames =
      Squeeze(b,
              b.Op("ExtractImagePatches", {ExpandDims(b, ExpandDims(b, x, 1), 3)},
                   {{"ksizes", size},
                    {"strides", steps},
                    {"rates", rates},
                    {"padding", std::string("VALID")}}),
              {1});
  const ValueRef waves =
      b.Op("RFFT", {Mul(b, frames, window), Ints(b, {mel.fft})}, {{"Tcomplex", DType::kComplex64}});
  const ValueRef sum = Add(b, b.Op("Square", {b.Op("Real", {waves}, {{"Tout", DType::kFloat32}})}),
                           b.Op("Square", {b.Op("Imag", {waves}, {{"Tout", DType::kFloat32}})}));
  const double exponent = c.config.Number("mag_exp", 2);
  const ValueRef magnitude =
      b.Op("Pow", {b.Op("Sqrt", {sum}), Scalar(b, DType::kFloat32, exponent)});
  ValueRef y = MatrixProduct(b, magnitude, weights);
  c.config.Ignore({"min_power", "ref_power", "top_db"});  // which Decibels reads
  if (c.config.Bool("power_to_db", true)) y = Decibels(c, y);
  return Cast(b, Transpose(b, y, {0, 2, 1}), c.compute_dtype);
}

const LayerRegistrar kStft({"STFTSpectrogram"}, Stft);
const LayerRegistrar kMel({"MelSpectrogram"}, MelSpectrogram);

}  // namespace
}  // namespace floe::keras
