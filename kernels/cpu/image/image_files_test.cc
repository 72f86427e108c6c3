#include "kernels/cpu/image/image_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace floe::kernels {
namespace {

// Room that counts how often it is asked for.
struct Pixels {
  std::vector<uint8_t> bytes;
  ImageSize size;
  int asked = 0;

  PixelRoom<uint8_t> Room() {
    return [this](int64_t height, int64_t width, int64_t channels) -> absl::StatusOr<uint8_t*> {
      ++asked;
      size = {height, width, channels};
      bytes.resize(static_cast<size_t>(height * width * channels));
      return bytes.data();
    };
  }
};

std::vector<uint8_t> Ramp(const ImageSize& size) {
  std::vector<uint8_t> pixels(static_cast<size_t>(size.height * size.width * size.channels));
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 7);
  return pixels;
}

TEST(ImageFiles, PngComesBack) {
  for (const int64_t channels : {1, 2, 3, 4}) {
    const ImageSize size{5, 9, channels};
    const std::vector<uint8_t> pixels = Ramp(size);
    const auto file = WritePng(pixels.data(), size, false, -1);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(FormatOf(*file), ImageFormat::kPng);
    Pixels read;
    ASSERT_TRUE(ReadPng(*file, 0, read.Room()).ok());
    EXPECT_EQ(read.bytes, pixels);
  }
}

TEST(ImageFiles, GreyJpegComesBackNearly) {
  const ImageSize size{16, 16, 1};
  std::vector<uint8_t> pixels(256, 90);
  const auto file = WriteJpeg(pixels.data(), size, {});
  ASSERT_TRUE(file.ok()) << file.status();
  Pixels read;
  ASSERT_TRUE(ReadJpeg(*file, {}, read.Room()).ok());
  ASSERT_EQ(read.bytes.size(), pixels.size());
  for (const uint8_t value : read.bytes) EXPECT_NEAR(value, 90, 2);
  const auto measured = JpegSize(*file);
  ASSERT_TRUE(measured.ok());
  EXPECT_EQ(measured->height, 16);
}

// The place of a JPEG's height, in the segment that begins its frame.
size_t FrameSize(const std::string& file) { return file.find("\xff\xc0") + 5; }

TEST(ImageFiles, SizesThatFilesClaimAreCheckedFirst) {
  const ImageSize size{8, 8, 3};
  std::string jpeg = *WriteJpeg(Ramp(size).data(), size, {});
  std::fill_n(jpeg.begin() + static_cast<int64_t>(FrameSize(jpeg)), 4, '\xff');
  std::string png = *WritePng(Ramp(size).data(), size, false, -1);
  std::fill_n(png.begin() + 16, 8, '\x7f');
  std::string bmp = "BM" + std::string(60, '\0');
  bmp[10] = 54, bmp[28] = 24;
  std::fill_n(bmp.begin() + 18, 8, '\x7f');
  Pixels read;
  EXPECT_FALSE(ReadJpeg(jpeg, {}, read.Room()).ok());
  EXPECT_FALSE(ReadPng(png, 0, read.Room()).ok());
  EXPECT_FALSE(ReadBmp(bmp, 0, read.Room()).ok());
  EXPECT_EQ(read.asked, 0);
}

TEST(ImageFiles, FilesCutAnywhereEndInAnError) {
  const ImageSize size{24, 24, 3};
  for (const bool progressive : {false, true}) {
    JpegWriteOptions options;
    options.progressive = progressive;
    const std::string file = *WriteJpeg(Ramp(size).data(), size, options);
    for (size_t end = 0; end + 2 < file.size(); end += 3) {
      Pixels read;
      EXPECT_FALSE(ReadJpeg(file.substr(0, end), {}, read.Room()).ok()) << end;
      JpegReadOptions recover;
      recover.recover = true;
      (void)ReadJpeg(file.substr(0, end), recover, read.Room());  // either is right
    }
  }
  const std::string png = *WritePng(Ramp(size).data(), size, false, -1);
  for (size_t end = 0; end < png.size(); ++end) {
    Pixels read;
    EXPECT_FALSE(ReadPng(png.substr(0, end), 0, read.Room()).ok()) << end;
  }
}

// A frame of one pixel, whose end other blocks follow.
TEST(ImageFiles, GifEndsWhereItsCodesEnd) {
  std::string gif = "GIF89a";
  gif += std::string("\1\0\1\0\x80\0\0", 7);    // 1 x 1, two colours
  gif += std::string("\x0a\x14\x1e\0\0\0", 6);  // the colours
  gif += std::string(",\0\0\0\0\1\0\1\0\0\2", 11);
  gif += "\2\x44\1";  // codes of three bits: clear, 0, end
  for (int i = 0; i < 16; ++i) gif += "\1\xff";
  gif += std::string("\0;", 2);
  std::vector<uint8_t> pixels;
  const auto room = [&](int64_t frames, int64_t height, int64_t width) -> absl::StatusOr<uint8_t*> {
    pixels.resize(static_cast<size_t>(frames * height * width * 3));
    return pixels.data();
  };
  const absl::Status read = ReadGif(gif, true, room);
  ASSERT_TRUE(read.ok()) << read;
  EXPECT_EQ(pixels, (std::vector<uint8_t>{10, 20, 30}));
}

TEST(ImageFiles, NoRoomIsAnError) {
  const ImageSize size{8, 8, 3};
  const auto none = [](int64_t, int64_t, int64_t) -> absl::StatusOr<uint8_t*> {
    return absl::ResourceExhaustedError("no room");
  };
  EXPECT_EQ(ReadJpeg(*WriteJpeg(Ramp(size).data(), size, {}), {}, none).message(), "no room");
  EXPECT_EQ(ReadPng(*WritePng(Ramp(size).data(), size, false, -1), 0, none).message(), "no room");
}

}  // namespace
}  // namespace floe::kernels
