// Images as files: decoding, encoding, and their sizes.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

absl::Status CheckOneOf(const char* attr, int64_t value, std::initializer_list<int64_t> allowed) {
  for (const int64_t one : allowed) {
    if (value == one) return absl::OkStatus();
  }
  return Bad(absl::StrCat(attr, " is ", value));
}

absl::Status CheckJpegAttrs(const Attrs& a) {
  FLOE_RETURN_IF_ERROR(CheckOneOf("ratio", a.Int("ratio", 1), {1, 2, 4, 8}));
  const std::string dct = a.String("dct_method");
  if (!dct.empty() && dct != "INTEGER_FAST" && dct != "INTEGER_ACCURATE")
    return Bad("dct_method '" + dct + "' is none of '', INTEGER_FAST, INTEGER_ACCURATE");
  return absl::OkStatus();
}

// contents[, crop_window] -> [height, width, channels].
absl::StatusOr<Types> InferDecode(const InferContext& c) {
  const std::string& op = c.node.op->name;
  FLOE_RETURN_IF_ERROR(CheckJpegAttrs(c.attrs()));
  const int64_t channels = op == "DecodeGif" ? 3 : c.attrs().Int("channels");
  FLOE_RETURN_IF_ERROR(CheckOneOf("channels", channels, {0, 1, 3, 4}));
  DType dtype = DType::kUInt8;
  if (op == "DecodePng") {
    FLOE_ASSIGN_OR_RETURN(
        dtype, ops::TypeAttrOf(c, "dtype", DType::kUInt8, {DType::kUInt8, DType::kUInt16}));
  }
  if (op == "DecodeImage") {
    FLOE_ASSIGN_OR_RETURN(dtype, ops::TypeAttrOf(c, "dtype", DType::kUInt8,
                                                 {DType::kUInt8, DType::kUInt16, DType::kFloat32}));
  }
  // Files of several frames have a dim more.
  if (op == "DecodeImage" && c.attrs().Bool("expand_animations", true))
    return ops::One(dtype, SymShape::UnknownRank());
  SymShape out = ops::UnknownDims(op == "DecodeGif" ? 4 : 3);
  if (op == "DecodeGif") out.set_dim(3, 3);
  if (op != "DecodeGif" && channels != 0) out.set_dim(2, channels);
  return ops::One(dtype, std::move(out));
}

absl::StatusOr<Types> InferJpegShape(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const DType dtype, ops::IndexTypeAttr(c, "output_type", DType::kInt32));
  return ops::One(dtype, {3});
}

// image[, quality] -> the file.
absl::StatusOr<Types> InferEncodeJpeg(const InferContext& c) {
  const Attrs& a = c.attrs();
  const int64_t quality = a.Int("quality", 95);
  if (quality < 0 || quality > 100)
    return Bad(absl::StrCat("quality must be in [0,100], got ", quality));
  const std::string format = a.String("format"), unit = a.String("density_unit", "in");
  if (!format.empty() && format != "grayscale" && format != "rgb")
    return Bad("format '" + format + "' is none of '', grayscale, rgb");
  if (unit != "in" && unit != "cm") return Bad("density_unit '" + unit + "' is neither in nor cm");
  for (const char* density : {"x_density", "y_density"}) {
    if (a.Int(density, 300) < 0 || a.Int(density, 300) > UINT16_MAX)
      return Bad(absl::StrCat(density, " is ", a.Int(density, 300)));
  }
  constexpr size_t kMaxMarker = 65533 - 29;  // of one segment, less the name of what it holds
  if (a.String("xmp_metadata").size() > kMaxMarker) return Bad("xmp_metadata is too long");
  return ops::One(DType::kString, {});
}

// Images of any leading dims.
absl::StatusOr<Types> InferEncodePng(const InferContext& c) {
  const int64_t compression = c.attrs().Int("compression", -1);
  if (compression < -1 || compression > 9)
    return Bad(absl::StrCat("compression should be in [-1,9], got ", compression));
  const int rank = ops::RankOf(c, 0);
  if (rank < 0) return ops::One(DType::kString, SymShape::UnknownRank());
  if (rank < 3) return Bad(absl::StrCat("image has shape ", c.shape(0).ToString()));
  SymShape out;
  for (int i = 0; i + 3 < rank; ++i) out.push_back(c.shape(0).dim(i));
  return ops::One(DType::kString, std::move(out));
}
const ops::Family kDecode({"DecodeJpeg", "DecodePng", "DecodeGif", "DecodeImage"},
                          {.output_names = {"image"},
                           .infer = InferDecode,
                           .rows = RowsNever,
                           .allocates = true,
                           .input_types = "string[]",
                           .limits = "WebP is refused when it comes"});
const OpRegistrar kFiles[] = {
    OpRegistrar(ops::Allocating("DecodeBmp", {"image"}, InferDecode), "string[]"),
    OpRegistrar(ops::Allocating("DecodeAndCropJpeg", {"image"}, InferDecode), "string[] int32[4]"),
    OpRegistrar(ops::Simple("ExtractJpegShape", InferJpegShape, RowsNever), "string[]"),
    OpRegistrar(ops::Simple("EncodeJpeg", InferEncodeJpeg, RowsNever), "uint8[_,_,_]"),
    OpRegistrar(ops::Simple("EncodeJpegVariableQuality", InferEncodeJpeg, RowsNever),
                "uint8[_,_,_] int32[]"),
    OpRegistrar(ops::Simple("EncodePng", InferEncodePng, ops::RowsFromRank<4>), "T"),
};

}  // namespace
}  // namespace floe
