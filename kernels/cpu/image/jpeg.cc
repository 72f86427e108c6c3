// JPEG by libjpeg-turbo, with the settings that give TensorFlow's pixels. libjpeg's errors jump, so
// that every call of it is in a function without objects to destroy.

// libjpeg's headers need what the first two declare.
// clang-format off
#include <cstddef>
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include <algorithm>
#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/memory_budget.h"
#include "base/status.h"
#include "kernels/cpu/image/image_files.h"

namespace floe::kernels {
namespace {

// Progressive files may say how a pixel looks this often; each time costs a pass over the image.
constexpr int kMaxScans = 100;

// More than the largest block needs of a single byte.
constexpr int kMaxRereads = 4096;

struct ErrorJump {
  jpeg_error_mgr base;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};
[[noreturn]] void JumpOut(j_common_ptr info) {
  auto* const error = reinterpret_cast<ErrorJump*>(info->err);
  (*info->err->format_message)(info, error->message);
  std::longjmp(error->jump, 1);
}
void KeepQuiet(j_common_ptr) {}

jpeg_error_mgr* SetUp(ErrorJump* error) {
  jpeg_std_error(&error->base);
  error->base.error_exit = JumpOut;
  error->base.output_message = KeepQuiet;
  std::strcpy(error->message, "the bytes end too early");
  return &error->base;
}

struct Source {
  jpeg_source_mgr base;
  const JOCTET* data;
  size_t size;
  bool recover;
  const JOCTET* asked_at;  // where the decoder last asked in vain, and how often
  int asked;
};
constexpr JOCTET kEnd[2] = {0xFF, JPEG_EOI};

void InitSource(j_decompress_ptr info) {
  auto* const source = reinterpret_cast<Source*>(info->src);
  source->base.next_input_byte = source->data;
  source->base.bytes_in_buffer = source->size;
}
// Inside a block the decoder asks with bytes left: it has looked at them and they did not suffice.
boolean FillInput(j_decompress_ptr info) {
  auto* const source = reinterpret_cast<Source*>(info->src);
  if (source->size == 0) ERREXIT(info, JERR_INPUT_EMPTY);
  if (source->base.bytes_in_buffer > 0) {
    if (!source->recover) return FALSE;
    // It reads them again, which fills up a block, but a header never.
    if (source->asked_at != source->base.next_input_byte) source->asked = 0;
    source->asked_at = source->base.next_input_byte;
    if (++source->asked > kMaxRereads) ERREXIT(info, JERR_FILE_READ);
    return TRUE;
  }
  if (source->base.next_input_byte == kEnd || !source->recover) ERREXIT(info, JERR_FILE_READ);
  source->base.next_input_byte = kEnd;
  source->base.bytes_in_buffer = sizeof(kEnd);
  return TRUE;
}
void SkipInput(j_decompress_ptr info, long count) {
  if (count < 0) return;
  if (static_cast<size_t>(count) > info->src->bytes_in_buffer) {
    info->src->bytes_in_buffer = 0;
    (void)FillInput(info);
  } else {
    info->src->bytes_in_buffer -= static_cast<size_t>(count);
    info->src->next_input_byte += count;
  }
}
void TermSource(j_decompress_ptr) {}

// Ends reads that take too long: of very many scans, or past the run's deadline.
void Progress(j_common_ptr info) {
  auto* const reader = reinterpret_cast<j_decompress_ptr>(info);
  if (reader->input_scan_number > kMaxScans) ERREXIT(info, JERR_BAD_PROGRESSION);
  if (!CheckRunTime().ok()) ERREXIT(info, JERR_CANT_SUSPEND);
}

class Reader {
 public:
  Reader(std::string_view bytes, bool recover) {
    info_.err = SetUp(&error_);
    source_.base.init_source = InitSource;
    source_.base.fill_input_buffer = FillInput;
    source_.base.skip_input_data = SkipInput;
    source_.base.resync_to_restart = jpeg_resync_to_restart;
    source_.base.term_source = TermSource;
    source_.data = reinterpret_cast<const JOCTET*>(bytes.data());
    source_.size = bytes.size();
    source_.recover = recover;
    progress_.progress_monitor = Progress;
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { jpeg_destroy_decompress(&info_); }

  bool ReadHeader() {
    if (setjmp(error_.jump) != 0) return false;
    jpeg_create_decompress(&info_);
    info_.src = &source_.base;
    info_.progress = &progress_;
    return jpeg_read_header(&info_, TRUE) == JPEG_HEADER_OK;
  }
  bool Prepare(const JpegReadOptions& options) {
    if (setjmp(error_.jump) != 0) return false;
    channels_ = options.channels != 0 ? options.channels : std::min(info_.num_components, 3);
    const bool cmyk = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    if (channels_ != 1 && channels_ != 3) return false;
    info_.out_color_space = channels_ == 1 ? JCS_GRAYSCALE : cmyk ? JCS_CMYK : JCS_RGB;
    info_.do_fancy_upsampling = options.fancy_upscaling ? TRUE : FALSE;
    info_.scale_num = 1;
    info_.scale_denom = static_cast<unsigned>(options.ratio);
    info_.dct_method = options.accurate_dct ? JDCT_ISLOW : JDCT_IFAST;
    jpeg_calc_output_dimensions(&info_);
    return true;
  }
  bool Start(const JpegReadOptions& options) {
    if (setjmp(error_.jump) != 0) return false;
    if (jpeg_start_decompress(&info_) == FALSE) return false;
    if (!options.crop) return true;
    auto x = static_cast<JDIMENSION>(options.crop_x),
         width = static_cast<JDIMENSION>(options.crop_width);
    jpeg_crop_scanline(&info_, &x, &width);  // from the block that holds the left edge
    const auto skipped = static_cast<JDIMENSION>(options.crop_y);
    return jpeg_skip_scanlines(&info_, skipped) == skipped;
  }
  // One line of info().output_width pixels; false: there are no more.
  bool ReadLine(uint8_t* line) {
    if (setjmp(error_.jump) != 0) {
      failed_ = true;
      return false;
    }
    return jpeg_read_scanlines(&info_, &line, 1) == 1;
  }
  // Reads what is behind the pixels.
  bool Finish(int64_t lines_left) {
    if (setjmp(error_.jump) != 0) return false;
    if (lines_left > 0) jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(lines_left));
    jpeg_finish_decompress(&info_);
    return true;
  }

  const jpeg_decompress_struct& info() const { return info_; }
  int channels() const { return channels_; }
  bool cmyk() const { return info_.out_color_space == JCS_CMYK; }
  bool failed() const { return failed_; }  // and not only at the end of the bytes
  absl::Status Error() const {
    FLOE_RETURN_IF_ERROR(CheckRunTime());
    return absl::InvalidArgumentError(
        absl::StrCat("Invalid JPEG data or crop window: ", error_.message));
  }
  // Of a file whose coefficients are all held until the last scan has been read.
  bool KeepsCoefficients() {
    return info_.progressive_mode != FALSE || jpeg_has_multiple_scans(&info_) != FALSE;
  }

 private:
  ErrorJump error_{};
  Source source_{};
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct info_{};
  int channels_ = 0;
  bool failed_ = false;
};

// As printers' inks; those of Adobe are written inverted.
void InksToRgb(const uint8_t* inks, bool adobe, int64_t width, uint8_t* rgb) {
  for (int64_t i = 0; i < width; ++i) {
    const int black = inks[4 * i + 3];
    for (int64_t c = 0; c < 3; ++c) {
      const int ink = inks[4 * i + c];
      rgb[3 * i + c] =
          static_cast<uint8_t>(adobe ? black * ink / 255 : (255 - black) * (255 - ink) / 255);
    }
  }
}

struct Window {
  int64_t height = 0, width = 0;
};

absl::StatusOr<Window> WindowOf(const Reader& reader, const JpegReadOptions& options) {
  const int64_t height = reader.info().output_height, width = reader.info().output_width;
  if (height <= 0 || width <= 0 ||
      height * width * reader.info().num_components >= kMaxImageElements)
    return absl::InvalidArgumentError(
        absl::StrCat("Invalid JPEG data: an image of ", height, " x ", width));
  if (!options.crop) return Window{height, width};
  const auto inside = [](int64_t at, int64_t size, int64_t all) {
    return at >= 0 && size > 0 && at <= all && size <= all - at;
  };
  if (!inside(options.crop_y, options.crop_height, height) ||
      !inside(options.crop_x, options.crop_width, width))
    return absl::InvalidArgumentError(absl::StrCat(
        "Invalid JPEG data or crop window: y ", options.crop_y, ", x ", options.crop_x, ", ",
        options.crop_height, " x ", options.crop_width, " of an image of ", height, " x ", width));
  return Window{options.crop_height, options.crop_width};
}

// Reads the window's lines; gives how many there were.
absl::StatusOr<int64_t> ReadLines(Reader* reader, const JpegReadOptions& options,
                                  const Window& window, uint8_t* pixels) {
  const int64_t channels = reader->channels(), stride = window.width * channels,
                wide = reader->info().output_width, in_line = reader->cmyk() ? 4 : channels;
  BudgetVector<uint8_t> line(static_cast<size_t>(wide * in_line));
  const uint8_t* const from = line.data() + (wide - window.width) * in_line;
  for (int64_t y = 0; y < window.height; ++y) {
    if (y % 64 == 0) FLOE_RETURN_IF_ERROR(CheckRunTime());
    uint8_t* const to = pixels + y * stride;
    if (!reader->ReadLine(line.data())) {
      if (reader->failed()) return reader->Error();
      if (!options.recover) return y;
      for (int64_t rest = y; rest < window.height; ++rest) {  // the last line again and again
        uint8_t* const missing = pixels + rest * stride;
        if (rest == 0)
          std::memset(missing, 0, static_cast<size_t>(stride));
        else
          std::memcpy(missing, missing - stride, static_cast<size_t>(stride));
      }
      return window.height;
    }
    if (reader->cmyk()) {
      InksToRgb(from, reader->info().saw_Adobe_marker != FALSE, window.width, to);
    } else {
      std::memcpy(to, from, static_cast<size_t>(stride));
    }
  }
  return window.height;
}

}  // namespace

absl::Status ReadJpeg(std::string_view bytes, const JpegReadOptions& options,
                      const PixelRoom<uint8_t>& room) {
  Reader reader(bytes, options.recover);
  if (!reader.ReadHeader() || !reader.Prepare(options)) return reader.Error();
  FLOE_ASSIGN_OR_RETURN(const Window window, WindowOf(reader, options));
  FLOE_ASSIGN_OR_RETURN(uint8_t* const pixels,
                        room(window.height, window.width, reader.channels()));
  const int64_t held = reader.KeepsCoefficients()
                           ? int64_t{reader.info().image_width} * reader.info().image_height *
                                 reader.info().num_components * 2
                           : 0;
  const MemoryCharge charge(held);
  FLOE_ASSIGN_OR_RETURN(const MemoryShare share, TakeMemory(held));
  if (!reader.Start(options)) return reader.Error();
  FLOE_ASSIGN_OR_RETURN(const int64_t lines, ReadLines(&reader, options, window, pixels));
  if (lines == window.height) {
    const int64_t read = (options.crop ? options.crop_y : 0) + window.height;
    if (reader.info().output_scanline == reader.info().output_height || options.crop) {
      if (!reader.Finish(reader.info().output_height - read)) return reader.Error();
    }
    return absl::OkStatus();
  }
  if (static_cast<float>(lines) / static_cast<float>(window.height) <
      std::min(1.0f, options.acceptable))
    return reader.Error();
  const int64_t stride = window.width * reader.channels();
  std::memset(pixels + lines * stride, 0, static_cast<size_t>((window.height - lines) * stride));
  return absl::OkStatus();
}

absl::StatusOr<ImageSize> JpegSize(std::string_view bytes) {
  Reader reader(bytes, false);
  if (!reader.ReadHeader()) return reader.Error();
  const auto& info = reader.info();
  return ImageSize{info.image_height, info.image_width, info.num_components};
}

namespace {

class Writer {
 public:
  Writer() { info_.err = SetUp(&error_); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() {
    jpeg_destroy_compress(&info_);
    std::free(buffer_);
  }

  bool Write(const uint8_t* pixels, const ImageSize& size, const JpegWriteOptions& options,
             const JOCTET* marker, size_t marker_size) {
    if (setjmp(error_.jump) != 0) return false;
    jpeg_create_compress(&info_);
    jpeg_mem_dest(&info_, &buffer_, &bytes_);
    info_.image_width = static_cast<JDIMENSION>(size.width);
    info_.image_height = static_cast<JDIMENSION>(size.height);
    info_.input_components = static_cast<int>(size.channels);
    info_.in_color_space = size.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&info_);
    if (options.optimize_size) info_.optimize_coding = TRUE;
    info_.density_unit = static_cast<UINT8>(options.density_unit);
    info_.X_density = static_cast<UINT16>(options.x_density);
    info_.Y_density = static_cast<UINT16>(options.y_density);
    jpeg_set_quality(&info_, options.quality, TRUE);
    if (options.progressive) jpeg_simple_progression(&info_);
    for (int i = 0; !options.chroma_downsampling && i < info_.num_components; ++i)
      info_.comp_info[i].h_samp_factor = info_.comp_info[i].v_samp_factor = 1;
    jpeg_start_compress(&info_, TRUE);
    if (marker_size > 0)
      jpeg_write_marker(&info_, JPEG_APP0 + 1, marker, static_cast<unsigned>(marker_size));
    const int64_t stride = size.width * size.channels;
    while (info_.next_scanline < info_.image_height) {
      auto* line = const_cast<JSAMPLE*>(pixels + info_.next_scanline * stride);
      jpeg_write_scanlines(&info_, &line, 1);
    }
    jpeg_finish_compress(&info_);
    return true;
  }
  std::string_view bytes() const { return {reinterpret_cast<const char*>(buffer_), bytes_}; }
  const char* message() const { return error_.message; }

 private:
  ErrorJump error_{};
  jpeg_compress_struct info_{};
  unsigned char* buffer_ = nullptr;
  unsigned long bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::string> WriteJpeg(const uint8_t* pixels, const ImageSize& size,
                                      const JpegWriteOptions& options) {
  constexpr std::string_view kNameSpace = "http://ns.adobe.com/xap/1.0/";
  if (size.height < 1 || size.width < 1 || size.height > JPEG_MAX_DIMENSION ||
      size.width > JPEG_MAX_DIMENSION || size.height * size.width >= kMaxImageElements)
    return absl::InvalidArgumentError(absl::StrCat("JPEG encoding failed: an image of ",
                                                   size.height, " x ", size.width, " pixels"));
  std::string marker;
  if (!options.xmp_metadata.empty()) {
    marker.assign(kNameSpace);
    marker += '\0';
    marker += options.xmp_metadata;
  }
  // Coefficients are held where the file is not written line by line.
  const bool holds = options.progressive || options.optimize_size;
  const int64_t held = holds ? size.height * size.width * size.channels * 2 : 0;
  const MemoryCharge charge(held);
  FLOE_ASSIGN_OR_RETURN(const MemoryShare share, TakeMemory(held));
  Writer writer;
  if (!writer.Write(pixels, size, options, reinterpret_cast<const JOCTET*>(marker.data()),
                    marker.size()))
    return absl::InvalidArgumentError(absl::StrCat("JPEG encoding failed: ", writer.message()));
  return std::string(writer.bytes());
}

}  // namespace floe::kernels
