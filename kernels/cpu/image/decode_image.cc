// Images from the bytes of files, and back.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/dynamic_output.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/image/image_files.h"
#include "kernels/cpu/move/grid_copy.h"

namespace floe::kernels {
namespace {

struct DecodeOptions {
  std::string op;
  JpegReadOptions jpeg;
  int channels = 0;
  DType dtype = DType::kUInt8;
  bool animations = true;  // of a GIF DecodeImage gives every frame
};

DecodeOptions OptionsOf(const Node& node) {
  const Attrs& a = node.attrs;
  DecodeOptions options{node.op->name,
                        {},
                        static_cast<int>(a.Int("channels")),
                        a.Type("dtype", DType::kUInt8),
                        a.Bool("expand_animations", true)};
  if (options.op == "DecodeGif") options.channels = 3;
  JpegReadOptions& jpeg = options.jpeg;
  jpeg.channels = options.channels;
  jpeg.ratio = static_cast<int>(a.Int("ratio", 1));
  jpeg.fancy_upscaling = a.Bool("fancy_upscaling", true);
  jpeg.recover = a.Bool("try_recover_truncated");
  jpeg.acceptable = a.Float("acceptable_fraction", 1);
  jpeg.accurate_dct = a.String("dct_method") == "INTEGER_ACCURATE";
  jpeg.crop = options.op == "DecodeAndCropJpeg";
  return options;
}

// The op that reads a format, where it is another one.
absl::Status CheckFormat(ImageFormat format, const std::string& op) {
  if (format == ImageFormat::kUnknown)
    return absl::InvalidArgumentError(
        "Unknown image file format. One of JPEG, PNG, GIF, BMP required.");
  if (format == ImageFormat::kWebp)
    return absl::UnimplementedError("WebP images are not supported; send JPEG, PNG, GIF or BMP");
  const bool bmp = format == ImageFormat::kBmp;
  if (op == "DecodeImage" ||
      (bmp ? op == "DecodeBmp" : op != "DecodeBmp" && op != "DecodeAndCropJpeg") ||
      (op == "DecodeAndCropJpeg" && format == ImageFormat::kJpeg))
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(op, " cannot decode ", FormatName(format), "; DecodeImage can"));
}

absl::Status ReadBytes(std::string_view bytes, ImageFormat format, const DecodeOptions& options,
                       const JpegReadOptions& jpeg, const PixelRoom<uint8_t>& room) {
  if (format == ImageFormat::kBmp) return ReadBmp(bytes, options.channels, room);
  if (format == ImageFormat::kPng) return ReadPng(bytes, options.channels, room);
  if (options.channels == 4) return absl::InvalidArgumentError("JPEG does not support 4 channels");
  return ReadJpeg(bytes, jpeg, room);
}

// Samples of S, spread over the range of the output's type.
template <class S>
void Spread(const S* from, const TensorView& out) {
  constexpr int kScale = (std::numeric_limits<uint16_t>::max() + 1) /
                         (std::numeric_limits<S>::max() + 1);  // of an 8-bit sample
  constexpr float kUnit = 1. / std::numeric_limits<S>::max();
  for (int64_t i = 0; i < out.elements(); ++i) {
    if (out.dtype == DType::kUInt16) {
      out.as<uint16_t>()[i] = static_cast<uint16_t>(from[i] * kScale);
    } else {
      out.as<float>()[i] = static_cast<float>(from[i]) * kUnit;
    }
  }
}

// A GIF, of which ops that are not made for several frames take files of one. give(shape)
// allocates, room() is where the samples go.
template <class G, class R>
absl::Status DecodeFrames(const std::string& bytes, const DecodeOptions& options, const G& give,
                          const R& room) {
  if (options.channels != 0 && options.channels != 3)
    return absl::InvalidArgumentError(
        absl::StrCat("channels must be 0 or 3 for GIF, got ", options.channels));
  const bool image = options.op == "DecodeImage", first = image && !options.animations;
  const bool several = options.op == "DecodeGif" || (image && options.animations);
  return ReadGif(
      bytes, !first,
      [&](int64_t frames, int64_t height, int64_t width) -> absl::StatusOr<uint8_t*> {
        if (!several && frames != 1)
          return absl::InvalidArgumentError(absl::StrCat("Got ", frames,
                                                         " frames, but animated GIFs can only be "
                                                         "decoded by DecodeGif or DecodeImage"));
        FLOE_RETURN_IF_ERROR(
            give(several ? Shape({frames, height, width, 3}) : Shape({height, width, 3})));
        return room();
      });
}

absl::Status Decode(const KernelContext& ctx, const DecodeOptions& options) {
  const std::string& bytes = *ctx.in(0).as<std::string>();
  if (bytes.empty()) return absl::InvalidArgumentError("Input is empty.");
  if (bytes.size() > INT32_MAX)
    return absl::InvalidArgumentError(absl::StrCat("an image of ", bytes.size(), " bytes"));
  JpegReadOptions jpeg = options.jpeg;
  if (jpeg.crop) {
    const auto* window = ctx.in(1).as<int32_t>();
    jpeg.crop_y = window[0], jpeg.crop_x = window[1];
    jpeg.crop_height = window[2], jpeg.crop_width = window[3];
  }
  const ImageFormat format = FormatOf(bytes);
  FLOE_RETURN_IF_ERROR(CheckFormat(format, options.op));
  TensorView out;
  const auto give = [&](const Shape& shape) -> absl::Status {
    FLOE_ASSIGN_OR_RETURN(out, ctx.allocator->Allocate(0, options.dtype, shape));
    return absl::OkStatus();
  };
  const auto allocate = [&](int64_t height, int64_t width, int64_t channels) {
    return give(options.op == "DecodeGif" ? Shape({1, height, width, channels})
                                          : Shape({height, width, channels}));
  };
  BudgetVector<uint8_t> samples;
  const auto room = [&]() -> uint8_t* {
    if (options.dtype == DType::kUInt8) return out.as<uint8_t>();
    samples.resize(static_cast<size_t>(out.elements()));
    return samples.data();
  };
  if (format == ImageFormat::kGif) {
    FLOE_RETURN_IF_ERROR(DecodeFrames(bytes, options, give, room));
    if (options.dtype != DType::kUInt8) Spread(samples.data(), out);
    return absl::OkStatus();
  }
  const bool wide = format == ImageFormat::kPng && options.dtype != DType::kUInt8;
  if (wide) {
    BudgetVector<uint16_t> wide_samples;
    FLOE_RETURN_IF_ERROR(ReadWidePng(
        bytes, options.channels,
        [&](int64_t height, int64_t width, int64_t channels) -> absl::StatusOr<uint16_t*> {
          FLOE_RETURN_IF_ERROR(allocate(height, width, channels));
          if (options.dtype == DType::kUInt16) return out.as<uint16_t>();
          wide_samples.resize(static_cast<size_t>(out.elements()));
          return wide_samples.data();
        }));
    if (options.dtype == DType::kFloat32) Spread(wide_samples.data(), out);
    return absl::OkStatus();
  }
  FLOE_RETURN_IF_ERROR(
      ReadBytes(bytes, format, options, jpeg,
                [&](int64_t height, int64_t width, int64_t channels) -> absl::StatusOr<uint8_t*> {
                  FLOE_RETURN_IF_ERROR(allocate(height, width, channels));
                  return room();
                }));
  if (options.dtype != DType::kUInt8) Spread(samples.data(), out);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeDecode(const KernelArgs& args) {
  return FromFunction(
      [options = OptionsOf(args.node)](const KernelContext& ctx) { return Decode(ctx, options); });
}
FLOE_REGISTER_KERNEL(DecodeJpeg, kCpu, MakeDecode, DType::kString);
FLOE_REGISTER_KERNEL(DecodeAndCropJpeg, kCpu, MakeDecode, DType::kString);
FLOE_REGISTER_KERNEL(DecodePng, kCpu, MakeDecode, DType::kString);
FLOE_REGISTER_KERNEL(DecodeBmp, kCpu, MakeDecode, DType::kString);
FLOE_REGISTER_KERNEL(DecodeGif, kCpu, MakeDecode, DType::kString);
FLOE_REGISTER_KERNEL(DecodeImage, kCpu, MakeDecode, DType::kString);

absl::StatusOr<std::unique_ptr<Kernel>> MakeJpegShape(const KernelArgs&) {
  return FromFunction([](const KernelContext& ctx) -> absl::Status {
    FLOE_ASSIGN_OR_RETURN(const ImageSize size, JpegSize(*ctx.in(0).as<std::string>()));
    const int64_t dims[] = {size.height, size.width, size.channels};
    for (int i = 0; i < 3; ++i) {
      if (ctx.out(0).dtype == DType::kInt32) {
        ctx.out(0).as<int32_t>()[i] = static_cast<int32_t>(dims[i]);
      } else {
        ctx.out(0).as<int64_t>()[i] = dims[i];
      }
    }
    return absl::OkStatus();
  });
}
FLOE_REGISTER_KERNEL(ExtractJpegShape, kCpu, MakeJpegShape, DType::kString);

// ---- writing ----

ImageSize SizeOf(const Shape& shape, int first) {
  return {shape.dim(first), shape.dim(first + 1), shape.dim(first + 2)};
}

absl::Status EncodeJpeg(const KernelContext& ctx, const std::string& format,
                        const JpegWriteOptions& options) {
  const Shape& shape = ctx.in(0).shape;
  const int64_t channels = shape.dim(2), wanted = format == "grayscale" ? 1 : 3;
  if (format.empty() ? channels != 1 && channels != 3 : channels != wanted)
    return absl::InvalidArgumentError(
        absl::StrCat("JPEG expects ", format.empty() ? "1 or 3" : absl::StrCat(wanted),
                     " channels, got an image of shape ", shape.ToString()));
  FLOE_ASSIGN_OR_RETURN(*ctx.out(0).as<std::string>(),
                        WriteJpeg(ctx.in(0).as<uint8_t>(), SizeOf(shape, 0), options));
  return absl::OkStatus();
}
absl::StatusOr<std::unique_ptr<Kernel>> MakeEncodeJpeg(const KernelArgs& args) {
  const Attrs& a = args.node.attrs;
  JpegWriteOptions options{static_cast<int>(a.Int("quality", 95)),
                           a.Bool("progressive"),
                           a.Bool("optimize_size"),
                           a.Bool("chroma_downsampling", true),
                           a.String("density_unit", "in") == "cm" ? 2 : 1,
                           static_cast<int>(a.Int("x_density", 300)),
                           static_cast<int>(a.Int("y_density", 300)),
                           a.String("xmp_metadata")};
  return FromFunction([options, format = a.String("format")](const KernelContext& ctx) {
    return EncodeJpeg(ctx, format, options);
  });
}
absl::Status EncodeJpegVariableQuality(const KernelContext& ctx) {
  JpegWriteOptions options;
  options.quality = *ctx.in(1).as<int32_t>();
  if (options.quality < 0 || options.quality > 100)
    return absl::InvalidArgumentError(
        absl::StrCat("quality must be in [0,100], got ", options.quality));
  return EncodeJpeg(ctx, "", options);
}
FLOE_REGISTER_KERNEL(EncodeJpeg, kCpu, MakeEncodeJpeg, DType::kUInt8);
FLOE_REGISTER_KERNEL(EncodeJpegVariableQuality, kCpu, MakeFunction<EncodeJpegVariableQuality>,
                     DType::kUInt8);

// Images of any number of leading dims, one file each.
absl::StatusOr<std::unique_ptr<Kernel>> MakeEncodePng(const KernelArgs& args) {
  const int compression = static_cast<int>(args.node.attrs.Int("compression", -1));
  return FromFunction([compression](const KernelContext& ctx) -> absl::Status {
    const TensorView& in = ctx.in(0);
    const ImageSize size = SizeOf(in.shape, in.shape.rank() - 3);
    if (size.channels < 1 || size.channels > 4)
      return absl::InvalidArgumentError(
          absl::StrCat("image must have 1, 2, 3, or 4 channels, got ", size.channels));
    const size_t bytes =
        static_cast<size_t>(size.height * size.width * size.channels) * DTypeSize(in.dtype);
    for (int64_t i = 0; i < ctx.out(0).elements(); ++i) {
      FLOE_RETURN_IF_ERROR(CheckRunTime());
      FLOE_ASSIGN_OR_RETURN(ctx.out(0).as<std::string>()[i],
                            WritePng(in.as<uint8_t>() + static_cast<size_t>(i) * bytes, size,
                                     in.dtype == DType::kUInt16, compression));
    }
    return absl::OkStatus();
  });
}
FLOE_REGISTER_KERNEL(EncodePng, kCpu, MakeEncodePng, DType::kUInt8, DType::kUInt16);

}  // namespace
}  // namespace floe::kernels
