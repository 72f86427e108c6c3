#include "kernels/cpu/image/image_files.h"

#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"

namespace floe::kernels {
namespace {

template <class T>
T ReadAt(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

// Blue, green, red[, alpha], or one grey, to what is asked for.
void BmpPixel(const uint8_t* from, int64_t has, int64_t wanted, uint8_t* to) {
  to[0] = from[has == 1 ? 0 : 2];
  if (wanted >= 3) {
    to[1] = from[has == 1 ? 0 : 1];
    to[2] = from[0];
  }
  if (wanted == 4) to[3] = has == 4 ? from[3] : UINT8_MAX;
}

}  // namespace

ImageFormat FormatOf(std::string_view bytes) {
  using std::string_view_literals::operator""sv;
  if (bytes.starts_with("\xff\xd8\xff"sv)) return ImageFormat::kJpeg;
  if (bytes.starts_with("\x89PNG\r\n\x1a\n"sv)) return ImageFormat::kPng;
  if (bytes.starts_with("GIF8"sv)) return ImageFormat::kGif;
  if (bytes.starts_with("BM"sv)) return ImageFormat::kBmp;
  if (bytes.starts_with("RIFF"sv) && bytes.size() > 12 && bytes.substr(8, 4) == "WEBP"sv)
    return ImageFormat::kWebp;
  return ImageFormat::kUnknown;
}

const char* FormatName(ImageFormat format) {
  constexpr const char* kNames[] = {"unknown", "JPEG", "PNG", "BMP", "GIF", "WebP"};
  return kNames[static_cast<int>(format)];
}

// Uncompressed files of 8, 24 or 32 bits a pixel, whose size is just that of header and pixels.
absl::Status ReadBmp(std::string_view bytes, int channels, const PixelRoom<uint8_t>& room) {
  constexpr size_t kHeader = 32;
  const auto invalid = [](const auto&... words) {
    return absl::InvalidArgumentError(absl::StrCat("Invalid BMP: ", words...));
  };
  if (channels == 1) return invalid("`channels` must be 0, 3 or 4 for BMP, but got 1");
  if (bytes.size() < kHeader) return invalid("of ", bytes.size(), " bytes");
  const int64_t header = ReadAt<int32_t>(bytes, 10), width = ReadAt<int32_t>(bytes, 18),
                signed_height = ReadAt<int32_t>(bytes, 22), height = std::abs(signed_height);
  const int64_t has = ReadAt<int16_t>(bytes, 28) / 8, wanted = channels != 0 ? channels : has;
  if (has != 1 && has != 3 && has != 4) return invalid("it has ", has, " channels");
  if (width < 1 || height < 1 || header < 0 || width * height >= INT32_MAX / 8)
    return invalid("it says it has ", width, " x ", signed_height, " pixels");
  const int64_t row = (has * width + 3) / 4 * 4;
  if (static_cast<int64_t>(bytes.size()) != header + row * height)
    return invalid("of ", bytes.size(), " bytes, by its header it has ", header + row * height);
  FLOE_ASSIGN_OR_RETURN(uint8_t * to, room(height, width, wanted));
  const auto* pixels = reinterpret_cast<const uint8_t*>(bytes.data()) + header;
  for (int64_t y = 0; y < height; ++y) {
    const uint8_t* const line = pixels + (signed_height < 0 ? y : height - 1 - y) * row;
    for (int64_t x = 0; x < width; ++x, to += wanted) BmpPixel(line + x * has, has, wanted, to);
  }
  return absl::OkStatus();
}

}  // namespace floe::kernels
