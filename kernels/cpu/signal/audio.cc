// Sound: WAV files, spectrograms and mel-frequency cepstral coefficients.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "kernels/cpu/dynamic_output.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cpu/signal/fft.h"

namespace floe::kernels {
namespace {

absl::Status BadWav(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("not a WAV file that can be read: ", what));
}

// Reads the little-endian parts of a file in turn.
class WavReader {
 public:
  explicit WavReader(std::string_view bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  std::string_view rest() const { return bytes_; }

  template <class T>
  bool Read(T* value) {
    if (bytes_.size() < sizeof(T)) return false;
    std::memcpy(value, bytes_.data(), sizeof(T));
    bytes_.remove_prefix(sizeof(T));
    return true;
  }
  bool Word(std::string* word) {
    if (bytes_.size() < 4) return false;
    *word = bytes_.substr(0, 4);
    bytes_.remove_prefix(4);
    return true;
  }
  bool Expect(const char* wanted) {
    std::string word;
    return Word(&word) && word == wanted;
  }
  bool Skip(uint64_t bytes) {
    if (bytes > bytes_.size()) return false;
    bytes_.remove_prefix(bytes);
    return true;
  }

 private:
  std::string_view bytes_;
};

struct Wav {
  int64_t channels = 0, samples = 0;
  uint32_t rate = 0;
  std::string_view data;  // int16 [samples, channels]
};

absl::Status ReadWavHeader(WavReader* file, Wav* wav) {
  uint32_t size = 0, format_size = 0, bytes_per_second = 0;
  uint16_t format = 0, channels = 0, frame_bytes = 0, bits = 0;
  if (!file->Expect("RIFF") || !file->Read(&size) || !file->Expect("WAVE"))
    return BadWav("it does not begin with RIFF and WAVE");
  if (!file->Expect("fmt ") || !file->Read(&format_size) || !file->Read(&format) ||
      !file->Read(&channels) || !file->Read(&wav->rate) || !file->Read(&bytes_per_second) ||
      !file->Read(&frame_bytes) || !file->Read(&bits))
    return BadWav("it has no format chunk");
  if (format_size != 16 && format_size != 18)
    return BadWav(absl::StrCat("a format chunk of ", format_size, " bytes, expected 16 or 18"));
  if (format != 1) return BadWav(absl::StrCat("audio format ", format, ", expected 1 (PCM)"));
  if (channels == 0) return BadWav("it has no channels");
  if (bits != 16) return BadWav(absl::StrCat(bits, " bits in a sample, expected 16"));
  if (frame_bytes != 2 * channels || bytes_per_second != wav->rate * frame_bytes)
    return BadWav(absl::StrCat(frame_bytes, " bytes for each time and ", bytes_per_second,
                               " in a second do not fit ", channels, " channels at ", wav->rate,
                               " Hz"));
  if (format_size == 18 && !file->Skip(2)) return BadWav("it ends in the format chunk");
  wav->channels = channels;
  return absl::OkStatus();
}

absl::Status ReadWav(std::string_view bytes, Wav* wav) {
  WavReader file(bytes);
  FLOE_RETURN_IF_ERROR(ReadWavHeader(&file, wav));
  bool found = false;
  while (!file.empty()) {
    std::string name;
    uint32_t size = 0;
    if (!file.Word(&name) || !file.Read(&size)) return BadWav("it ends in the head of a chunk");
    const std::string shown = absl::CHexEscape(name);
    if (name != "data") {
      if (!file.Skip(size)) return BadWav(absl::StrCat("chunk '", shown, "' is cut off"));
      continue;
    }
    if (found) return BadWav("it has more than one data chunk");
    found = true;
    wav->samples = size / (2 * wav->channels);
    wav->data = file.rest();
    if (!file.Skip(static_cast<uint64_t>(2 * wav->channels * wav->samples)))
      return BadWav(absl::StrCat("a data chunk of ", size, " bytes is cut off"));
  }
  return found ? absl::OkStatus() : BadWav("it has no data chunk");
}

// Channels that the file lacks repeat its last one; times past its end are silent.
absl::StatusOr<std::unique_ptr<Kernel>> MakeDecodeWav(const KernelArgs& args) {
  const int64_t wanted_channels = args.node.attrs.Int("desired_channels", -1),
                wanted_samples = args.node.attrs.Int("desired_samples", -1);
  return FromFunction([=](const KernelContext& ctx) -> absl::Status {
    Wav wav;
    FLOE_RETURN_IF_ERROR(ReadWav(*ctx.in(0).as<std::string>(), &wav));
    const int64_t channels = wanted_channels < 0 ? wav.channels : wanted_channels,
                  samples = wanted_samples < 0 ? wav.samples : wanted_samples;
    const Shape shape({samples, channels});
    FLOE_RETURN_IF_ERROR(CheckedElements(shape.dims(), sizeof(float)).status());
    FLOE_ASSIGN_OR_RETURN(const TensorView audio,
                          ctx.allocator->Allocate(0, DType::kFloat32, shape));
    for (int64_t i = 0; i < shape.elements(); ++i) {
      const int64_t time = i / channels, channel = std::min(i % channels, wav.channels - 1);
      int16_t sample = 0;
      if (time < wav.samples)
        std::memcpy(&sample, wav.data.data() + 2 * (time * wav.channels + channel), 2);
      audio.as<float>()[i] = static_cast<float>(sample) * 0x1p-15f;
    }
    return Give(ctx, 1, std::vector<int32_t>{static_cast<int32_t>(wav.rate)}, Shape());
  });
}
FLOE_REGISTER_KERNEL(DecodeWav, kCpu, MakeDecodeWav, DType::kString);

// Power (or magnitude) of windows under a periodic Hann window, padded to a power of two.
absl::StatusOr<std::unique_ptr<Kernel>> MakeSpectrogram(const KernelArgs& args) {
  const int64_t window = args.node.attrs.Int("window_size"), stride = args.node.attrs.Int("stride");
  const bool squared = args.node.attrs.Bool("magnitude_squared");
  return FromFunction([=](const KernelContext& ctx) -> absl::Status {
    const TensorView& out = ctx.out(0);
    if (out.elements() == 0) return absl::OkStatus();
    const int64_t channels = out.shape.dim(0), frames = out.shape.dim(1), bins = out.shape.dim(2);
    BudgetVector<double> weights(window);
    for (int64_t i = 0; i < window; ++i)
      weights[i] = 0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) /
                                        static_cast<double>(window));
    const auto padded = static_cast<size_t>(2 * (bins - 1));
    Fft fft(padded, -1);
    BudgetVector<Fft::Complex> line(padded);
    for (int64_t i = 0; i < channels * frames; ++i) {
      const int64_t channel = i / frames, frame = i % frames;
      const float* x = ctx.in(0).as<float>() + frame * stride * channels + channel;
      std::fill(line.begin(), line.end(), Fft::Complex());
      for (int64_t k = 0; k < window; ++k) line[k] = x[k * channels] * weights[k];
      fft.Run(&line);
      float* y = out.as<float>() + i * bins;
      for (int64_t k = 0; k < bins; ++k) {
        const auto power = static_cast<float>(std::norm(line[k]));
        y[k] = squared ? power : std::sqrt(power);
      }
    }
    return absl::OkStatus();
  });
}
FLOE_REGISTER_KERNEL(AudioSpectrogram, kCpu, MakeSpectrogram, DType::kFloat32);

double Mel(double frequency) { return 1127.0 * std::log1p(frequency / 700.0); }

struct MfccOptions {
  double low, high;  // Hz
  int64_t bands, coefficients;
};

// Triangles of equal width in mel, each from the centre of the band before to that of the one
// after.
class MelFilters {
 public:
  MelFilters(const MfccOptions& options, int64_t bins, int32_t rate)
      : bands_(options.bands), weights_(bins), band_(bins) {
    const double mel_low = Mel(options.low),
                 width = (Mel(options.high) - mel_low) / static_cast<double>(bands_ + 1);
    const auto centre = [&](int64_t band) {
      return mel_low + width * static_cast<double>(band + 1);
    };
    const double step = 0.5 * rate / static_cast<double>(bins - 1);
    // In doubles: a quotient may be past every integer.
    const double first = std::trunc(1.5 + options.low / step),
                 last = std::trunc(options.high / step);
    fits_ = last < static_cast<double>(bins);
    if (!fits_) return;
    first_ = static_cast<int64_t>(std::min(first, static_cast<double>(bins)));
    last_ = static_cast<int64_t>(last);
    int64_t above = 0;
    for (int64_t i = first_; i <= last_; ++i) {
      const double mel = Mel(static_cast<double>(i) * step);
      while (above < bands_ && centre(above) < mel) ++above;
      band_[i] = above - 1;
      const double from = above == 0 ? mel_low : centre(above - 1);
      weights_[i] = (centre(above) - mel) / (centre(above) - from);
    }
  }

  // `out`: a number for each band. Past the last frequency there is none.
  void Run(const float* power, BudgetVector<double>* out) const {
    std::fill(out->begin(), out->end(), 0.0);
    for (int64_t i = first_; fits_ && i <= last_; ++i) {
      const double magnitude = std::sqrt(static_cast<double>(power[i])),
                   below = magnitude * weights_[i];
      if (band_[i] >= 0) (*out)[band_[i]] += below;
      if (band_[i] + 1 < bands_) (*out)[band_[i] + 1] += magnitude - below;
    }
  }
  bool fits() const { return fits_; }

 private:
  int64_t bands_, first_ = 0, last_ = -1;
  bool fits_ = false;
  BudgetVector<double> weights_;
  BudgetVector<int64_t> band_;  // whose centre is the last below the frequency; -1: none
};

absl::Status CheckMfcc(const MfccOptions& options, int32_t rate, int64_t bins) {
  if (rate <= 0) return absl::InvalidArgumentError(absl::StrCat("sample rate ", rate));
  if (bins < 2)
    return absl::InvalidArgumentError(absl::StrCat("a spectrogram of ", bins, " frequencies"));
  if (!(options.low >= 0) || !(options.high > options.low))
    return absl::InvalidArgumentError(absl::StrCat("frequency limits ", options.low, " and ",
                                                   options.high, " Hz, expected 0 <= low < high"));
  return absl::OkStatus();
}

absl::Status RunMfcc(const KernelContext& ctx, const MfccOptions& options) {
  const TensorView& out = ctx.out(0);
  const int64_t bins = ctx.in(0).shape.dim(2), bands = options.bands;
  const int32_t rate = *ctx.in(1).as<int32_t>();
  FLOE_RETURN_IF_ERROR(CheckMfcc(options, rate, bins));
  if (out.elements() == 0) return absl::OkStatus();
  const MelFilters filters(options, bins, rate);
  if (!filters.fits()) {  // as if there were no bands
    std::fill_n(out.as<float>(), out.elements(), 0.0f);
    return absl::OkStatus();
  }
  BudgetVector<double> cosines(options.coefficients * bands), energy(bands);
  const double norm = std::sqrt(2.0 / static_cast<double>(bands)),
               unit = std::numbers::pi / static_cast<double>(bands);
  for (int64_t i = 0; i < options.coefficients; ++i) {
    for (int64_t k = 0; k < bands; ++k)
      cosines[i * bands + k] =
          norm * std::cos(static_cast<double>(i) * unit * (static_cast<double>(k) + 0.5));
  }
  constexpr double kFloor = 1e-12;
  for (int64_t frame = 0; frame < out.elements() / options.coefficients; ++frame) {
    filters.Run(ctx.in(0).as<float>() + frame * bins, &energy);
    for (double& e : energy) e = std::log(e < kFloor ? kFloor : e);
    for (int64_t i = 0; i < options.coefficients; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < bands; ++k) sum += cosines[i * bands + k] * energy[k];
      out.as<float>()[frame * options.coefficients + i] = static_cast<float>(sum);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeMfcc(const KernelArgs& args) {
  const MfccOptions options{args.node.attrs.Float("lower_frequency_limit", 20),
                            args.node.attrs.Float("upper_frequency_limit", 4000),
                            args.node.attrs.Int("filterbank_channel_count", 40),
                            args.node.attrs.Int("dct_coefficient_count", 13)};
  return FromFunction([options](const KernelContext& ctx) { return RunMfcc(ctx, options); });
}
FLOE_REGISTER_KERNEL(Mfcc, kCpu, MakeMfcc, DType::kFloat32);

}  // namespace
}  // namespace floe::kernels
