// Images as files: JPEG, PNG, BMP and GIF read into pixels, and the first two written. Any bytes
// may be given; sizes that a file declares are checked before anything of that size is allocated.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace floe::kernels {

enum class ImageFormat : uint8_t { kUnknown, kJpeg, kPng, kBmp, kGif, kWebp };
// By the first bytes.
ImageFormat FormatOf(std::string_view bytes);
const char* FormatName(ImageFormat format);

// As large as images may be in pixels times channels, for any format.
inline constexpr int64_t kMaxImageElements = int64_t{1} << 29;

// Gives room for height * width * channels samples of what a reader decodes to.
template <class T>
using PixelRoom =
    std::function<absl::StatusOr<T*>(int64_t height, int64_t width, int64_t channels)>;

struct JpegReadOptions {
  int channels = 0;  // 0: as the file has, at most 3
  int ratio = 1;     // 1, 2, 4 or 8: that much smaller
  bool fancy_upscaling = true;
  bool recover = false;       // what a truncated file lacks is made up
  float acceptable = 1;       // with this part of the lines read, a truncated file will do
  bool accurate_dct = false;  // else the fast one
  bool crop = false;
  int64_t crop_y = 0, crop_x = 0, crop_height = 0, crop_width = 0;
};
absl::Status ReadJpeg(std::string_view bytes, const JpegReadOptions& options,
                      const PixelRoom<uint8_t>& room);

struct ImageSize {
  int64_t height = 0, width = 0, channels = 0;
};
absl::StatusOr<ImageSize> JpegSize(std::string_view bytes);

struct JpegWriteOptions {
  int quality = 95;
  bool progressive = false, optimize_size = false, chroma_downsampling = true;
  int density_unit = 1;  // 1: of an inch, 2: of a centimetre
  int x_density = 300, y_density = 300;
  std::string xmp_metadata;
};
// Of 1 or 3 channels.
absl::StatusOr<std::string> WriteJpeg(const uint8_t* pixels, const ImageSize& size,
                                      const JpegWriteOptions& options);

// `channels` 0: as the file has. Samples are brought to 8 or 16 bits.
absl::Status ReadPng(std::string_view bytes, int channels, const PixelRoom<uint8_t>& room);
absl::Status ReadWidePng(std::string_view bytes, int channels, const PixelRoom<uint16_t>& room);

// Of 1 to 4 channels of 8 or 16 bits; `compression` -1 to 9.
absl::StatusOr<std::string> WritePng(const void* pixels, const ImageSize& size, bool wide,
                                     int compression);

// Gives room for frames * height * width * 3 samples.
using FrameRoom =
    std::function<absl::StatusOr<uint8_t*>(int64_t frames, int64_t height, int64_t width)>;
// Every frame as it is seen, or the first one alone; of a truncated file the whole ones.
absl::Status ReadGif(std::string_view bytes, bool all_frames, const FrameRoom& room);

absl::Status ReadBmp(std::string_view bytes, int channels, const PixelRoom<uint8_t>& room);

}  // namespace floe::kernels
