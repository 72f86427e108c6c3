// PNG by libpng, with the conversions that TensorFlow asks for. libpng's errors jump, so that every
// call of it is in a function without objects to destroy.
#include <png.h>
#include <zlib.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "kernels/cpu/image/image_files.h"

namespace floe::kernels {
namespace {

void KeepQuiet(png_structp, png_const_charp) {}
[[noreturn]] void JumpOut(png_structp png, png_const_charp) { png_longjmp(png, 1); }

class PngReader {
 public:
  explicit PngReader(std::string_view bytes) : left_(bytes) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, JumpOut, KeepQuiet);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }

  // Reads up to the pixels and settles what they are turned into.
  bool Open(int channels, bool wide) {
    if (info_ == nullptr || setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_read_fn(png_, &left_, Read);
    png_read_info(png_, info_);
    png_get_IHDR(png_, info_, &width_, &height_, &depth_, &colour_, nullptr, nullptr, nullptr);
    Convert(channels, wide);
    png_read_update_info(png_, info_);
    return true;
  }
  bool ReadRows(uint8_t* first, int64_t stride, int64_t count) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    for (int64_t i = 0; i < count; ++i) png_read_row(png_, first + i * stride, nullptr);
    return true;
  }
  bool Finish() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_end(png_, info_);
    return true;
  }

  int64_t width() const { return width_; }
  int64_t height() const { return height_; }
  int channels() const { return channels_; }
  int passes() const { return passes_; }
  bool narrow() const { return depth_ <= 8; }
  int64_t row_bytes() const { return static_cast<int64_t>(png_get_rowbytes(png_, info_)); }

 private:
  static void Read(png_structp png, png_bytep to, png_size_t size) {
    auto* const left = static_cast<std::string_view*>(png_get_io_ptr(png));
    if (left->size() < size) png_error(png, "");
    std::memcpy(to, left->data(), size);
    left->remove_prefix(size);
  }

  void Convert(int channels, bool wide) {
    const bool palette = colour_ == PNG_COLOR_TYPE_PALETTE,
               grey = (colour_ & PNG_COLOR_MASK_COLOR) == 0,
               alpha = (colour_ & PNG_COLOR_MASK_ALPHA) != 0,
               marked = png_get_valid(png_, info_, PNG_INFO_tRNS) != 0;
    channels_ = channels != 0 ? channels
                : palette     ? (marked ? 4 : 3)
                              : static_cast<int>(png_get_channels(png_, info_));
    if (channels_ % 2 != 0) {
      if (alpha || marked) png_set_strip_alpha(png_);
    } else if (!alpha && marked) {
      png_set_tRNS_to_alpha(png_);
    } else if (!alpha) {
      png_set_add_alpha(png_, (1u << depth_) - 1, PNG_FILLER_AFTER);
    }
    if (depth_ > 8 && !wide) png_set_strip_16(png_);
    png_set_packing(png_);
    passes_ = png_set_interlace_handling(png_);
    if (wide) png_set_swap(png_);
    if (palette) png_set_palette_to_rgb(png_);
    if (grey && depth_ < 8) png_set_expand_gray_1_2_4_to_8(png_);
    const bool want_grey = channels_ < 3;
    if (want_grey && !grey) png_set_rgb_to_gray(png_, 1, 0.299, 0.587);
    if (!want_grey && grey) png_set_gray_to_rgb(png_);
  }

  std::string_view left_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  png_uint_32 width_ = 0, height_ = 0;
  int depth_ = 0, colour_ = 0, channels_ = 0, passes_ = 1;
};

template <class T>
absl::Status ReadAs(std::string_view bytes, int channels, const PixelRoom<T>& room) {
  constexpr bool kWide = sizeof(T) == 2;
  constexpr int64_t kMaxSide = int64_t{1} << 27, kRows = 64;
  const auto invalid = [&bytes](const char* what) {
    return absl::InvalidArgumentError(
        absl::StrCat("Invalid PNG data of ", bytes.size(), " bytes: ", what));
  };
  PngReader png(bytes);
  if (!png.Open(channels, kWide)) return invalid("no header could be read");
  const int64_t height = png.height(), width = png.width();
  if (height < 1 || width < 1 || height >= kMaxSide || width >= kMaxSide ||
      height * width >= kMaxImageElements)
    return absl::InvalidArgumentError(
        absl::StrCat("PNG size too large for int: ", width, " by ", height));
  const bool widen = kWide && png.narrow();
  const int64_t count = width * png.channels(), stride = count * static_cast<int64_t>(sizeof(T));
  if (png.row_bytes() != (widen ? count : stride)) return invalid("unknown kind of pixels");
  FLOE_ASSIGN_OR_RETURN(T* const pixels, room(height, width, png.channels()));
  auto* const first = reinterpret_cast<uint8_t*>(pixels);
  for (int pass = 0; pass < png.passes(); ++pass) {
    for (int64_t y = 0; y < height; y += kRows) {
      FLOE_RETURN_IF_ERROR(CheckRunTime());
      if (!png.ReadRows(first + y * stride, stride, std::min(kRows, height - y)))
        return invalid("pixels are missing or damaged");
    }
  }
  if (!png.Finish()) return invalid("what follows the pixels is damaged");
  for (int64_t y = 0; widen && y < height; ++y) {
    for (int64_t i = count - 1; i >= 0; --i) {
      const uint8_t value = first[y * stride + i];
      pixels[y * count + i] = static_cast<T>(value << 8 | value);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadPng(std::string_view bytes, int channels, const PixelRoom<uint8_t>& room) {
  return ReadAs(bytes, channels, room);
}
absl::Status ReadWidePng(std::string_view bytes, int channels, const PixelRoom<uint16_t>& room) {
  return ReadAs(bytes, channels, room);
}

namespace {

class PngWriter {
 public:
  PngWriter() {
    png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, JumpOut, KeepQuiet);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  PngWriter(const PngWriter&) = delete;
  PngWriter& operator=(const PngWriter&) = delete;
  ~PngWriter() { png_destroy_write_struct(&png_, &info_); }

  bool Write(const void* pixels, const ImageSize& size, bool wide, int compression) {
    constexpr int kColours[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                PNG_COLOR_TYPE_RGB_ALPHA};
    if (info_ == nullptr || setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_write_fn(png_, &bytes_, Append, nullptr);
    png_set_compression_level(png_, compression < 0 ? Z_DEFAULT_COMPRESSION : compression);
    png_set_compression_mem_level(png_, MAX_MEM_LEVEL);
    png_set_IHDR(png_, info_, static_cast<png_uint_32>(size.width),
                 static_cast<png_uint_32>(size.height), wide ? 16 : 8, kColours[size.channels - 1],
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png_, info_);
    if (wide) png_set_swap(png_);
    const int64_t stride = size.width * size.channels * (wide ? 2 : 1);
    for (int64_t y = 0; y < size.height; ++y)
      png_write_row(png_, static_cast<png_const_bytep>(pixels) + y * stride);
    png_write_end(png_, nullptr);
    return true;
  }
  std::string& bytes() { return bytes_; }

 private:
  static void Append(png_structp png, png_bytep data, png_size_t size) {
    bool room = true;
    try {  // no exception may pass through libpng
      static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<char*>(data), size);
    } catch (const std::bad_alloc&) {
      room = false;
    }
    if (!room) png_error(png, "");
  }

  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::string bytes_;
};

}  // namespace

absl::StatusOr<std::string> WritePng(const void* pixels, const ImageSize& size, bool wide,
                                     int compression) {
  PngWriter writer;
  if (size.height < 1 || size.width < 1 || size.height > INT32_MAX || size.width > INT32_MAX ||
      !writer.Write(pixels, size, wide, compression))
    return absl::InvalidArgumentError(absl::StrCat("PNG encoding failed: an image of ", size.height,
                                                   " x ", size.width, " pixels"));
  return std::move(writer.bytes());
}

}  // namespace floe::kernels
