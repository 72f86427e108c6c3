// Sound: WAV files, spectrograms and mel-frequency cepstral coefficients.
#include <bit>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

absl::StatusOr<Dim> DesiredDim(const InferContext& c, const std::string& name) {
  const int64_t size = c.attrs().Int(name, -1);
  if (size < -1) return Bad(absl::StrCat(name, " is ", size, ", expected -1 or more"));
  return size < 0 ? Dim::Unknown() : Dim(size);
}

// The bytes of a file -> samples [time, channels], sample rate.
absl::StatusOr<Types> InferDecodeWav(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const Dim samples, DesiredDim(c, "desired_samples"));
  FLOE_ASSIGN_OR_RETURN(const Dim channels, DesiredDim(c, "desired_channels"));
  return Types{{DType::kFloat32, {samples, channels}}, {DType::kInt32, SymShape()}};
}
const OpRegistrar kDecodeWav({.name = "DecodeWav",
                              .output_names = {"audio", "sample_rate"},
                              .infer = InferDecodeWav,
                              .rows = RowsNever,
                              .allocates = true,
                              .input_types = "string[]"});

// Samples [time, channels] -> [channels, frames, frequencies].
absl::StatusOr<Types> InferSpectrogram(const InferContext& c) {
  const int64_t window = c.attrs().Int("window_size"), stride = c.attrs().Int("stride");
  constexpr int64_t kMaxWindow = int64_t{1} << 31;
  if (window < 2 || window > kMaxWindow)
    return Bad(absl::StrCat("window_size is ", window, ", expected 2 to 2^31"));
  if (stride < 1) return Bad(absl::StrCat("stride is ", stride, ", expected 1 or more"));
  const Dim time = ops::DimOf(c, 0, 0), channels = ops::DimOf(c, 0, 1);
  Dim frames = Dim::Unknown();
  if (time.concrete()) frames = Dim(time.size() < window ? 0 : 1 + (time.size() - window) / stride);
  const auto padded = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(window)));
  return ops::One(DType::kFloat32, {channels, frames, 1 + padded / 2});
}
const OpRegistrar kSpectrogram({.name = "AudioSpectrogram",
                                .infer = InferSpectrogram,
                                .rows = ops::NoRows,
                                .input_types = "float32[_,_]"});

// [channels, frames, frequencies], sample rate -> [channels, frames, coefficients].
absl::StatusOr<Types> InferMfcc(const InferContext& c) {
  const int64_t bands = c.attrs().Int("filterbank_channel_count", 40),
                coefficients = c.attrs().Int("dct_coefficient_count", 13);
  constexpr int64_t kMost = 1 << 20;
  if (bands < 1 || bands > kMost)
    return Bad(absl::StrCat("filterbank_channel_count is ", bands, ", expected 1 to 2^20"));
  if (coefficients < 1 || coefficients > bands)
    return Bad(absl::StrCat("dct_coefficient_count is ", coefficients, ", expected 1 to ", bands,
                            ", the filterbank_channel_count"));
  SymShape out = c.shape(0).rank_known() ? c.shape(0) : ops::UnknownDims(3);
  out.set_dim(2, coefficients);
  return ops::One(DType::kFloat32, std::move(out));
}
const OpRegistrar kMfcc({.name = "Mfcc",
                         .infer = InferMfcc,
                         .rows = RowsOfInput0,
                         .input_types = "float32[_,_,_] int32[]"});

}  // namespace
}  // namespace floe
