// Ops on images: resizing, cropping, colours and projective transforms.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

// Dims 1 and 2 of images, from input i: two positive numbers.
absl::Status SetSize(const InferContext& c, int i, const std::string& what, SymShape* images) {
  std::vector<Dim> size;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.DimsOf(i, &size));
  if (known && size.size() != 2)
    return Bad(absl::StrCat(what, " has ", size.size(), " elements, expected 2"));
  for (int k = 0; k < 2; ++k) {
    if (known && size[k].concrete() && size[k].size() <= 0)
      return Bad(absl::StrCat(what, " ", size[k].size(), " is not positive"));
    images->set_dim(k + 1, known ? size[k] : Dim::Unknown());
  }
  return absl::OkStatus();
}

// [batch, rows, cols, channels] to the size that input 1 gives.
absl::StatusOr<Types> Resized(const InferContext& c, DType dtype) {
  SymShape out = c.shape(0).rank_known() ? c.shape(0) : ops::UnknownDims(4);
  if (c.attrs().Bool("align_corners") && c.attrs().Bool("half_pixel_centers"))
    return Bad("align_corners and half_pixel_centers exclude each other");
  FLOE_RETURN_IF_ERROR(SetSize(c, 1, "size", &out));
  return ops::One(dtype, std::move(out));
}
absl::StatusOr<Types> InferResize(const InferContext& c) { return Resized(c, DType::kFloat32); }
absl::StatusOr<Types> InferNearest(const InferContext& c) { return Resized(c, c.dtype(0)); }

RowMark ResizeRows(const RowContext& c) { return ops::MarkOfData(c, 0, true); }

OpDef Resize(ops::InferFunction infer) {
  return {.infer = infer, .rows = ResizeRows, .shape_inputs = 2, .input_types = "T[_,_,_,_] int32"};
}
const ops::Family kResize({"ResizeBilinear", "ResizeBicubic", "ResizeArea"}, Resize(InferResize));
const ops::Family kResizeNearest({"ResizeNearestNeighbor"}, Resize(InferNearest));

// Inputs: images, size, scale [2], translation [2].
absl::StatusOr<Types> InferScaleAndTranslate(const InferContext& c) {
  const std::string kernel = c.attrs().String("kernel_type", "lanczos3");
  for (const char* known : {"lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle",
                            "keyscubic", "mitchellcubic"}) {
    if (kernel == known) return InferResize(c);
  }
  return Bad("kernel_type '" + kernel + "' is unknown");
}
const OpRegistrar kScaleAndTranslate({.name = "ScaleAndTranslate",
                                      .infer = InferScaleAndTranslate,
                                      .rows = RowsOfInput0,
                                      .shape_inputs = 2,
                                      .input_types = "T[_,_,_,_] int32 float32[_] float32[_]"});

// Colours along the last dim.
absl::StatusOr<Types> InferColours(const InferContext& c) {
  const SymShape& in = c.shape(0);
  if (in.rank_known() && in.rank() < 1) return Bad("input is a scalar");
  const Dim channels = in.rank_known() ? in.dim(in.rank() - 1) : Dim::Unknown();
  if (channels.concrete() && channels.size() != 3)
    return Bad(absl::StrCat("input has shape ", in.ToString(), ", expected 3 channels"));
  return InferSame(c);
}
const ops::Family kColours({"RGBToHSV", "HSVToRGB"}, {.infer = InferColours,
                                                      .rows = ops::RowsFromRank<2>,
                                                      .input_types = "T"});

// images, boxes[, colours]
RowMark DrawRows(const RowContext& c) {
  const bool apart = c.marks[0] == RowMark::kRows && c.marks[1] == RowMark::kRows &&
                     ops::LeadingRows(c.inputs[1].type) && c.OthersConstant(2);
  return apart ? ops::Checked(RowMark::kRows, c) : RowsNever(c);
}
const OpRegistrar kDraw({.name = "DrawBoundingBoxes",
                         .min_inputs = 2,
                         .max_inputs = 3,
                         .infer = InferSame,
                         .rows = DrawRows,
                         .input_types = "T[b,_,_,_] float32[b,_,4] float32[_,4]",
                         .tensorflow = {"DrawBoundingBoxes", "DrawBoundingBoxesV2"}});

// Inputs: image, boxes [n, 4], the image of each box, size.
absl::StatusOr<Types> InferCrop(const InferContext& c) {
  SymShape out = {ops::DimOf(c, 1, 0), Dim::Unknown(), Dim::Unknown(), ops::DimOf(c, 0, 3)};
  FLOE_RETURN_IF_ERROR(SetSize(c, 3, "crop_size", &out));
  return ops::One(DType::kFloat32, std::move(out));
}
const OpRegistrar kCrop({.name = "CropAndResize",
                         .infer = InferCrop,
                         .rows = ops::NoRows,
                         .shape_inputs = 8,
                         .input_types = "T[_,_,_,_] float32[_,4] int32 int32"});

// Images [..., rows, cols, channels], changed alike by a scalar.
absl::StatusOr<Types> InferAdjust(const InferContext& c) {
  if (c.shape(0).rank_known() && c.shape(0).rank() < 3)
    return Bad(absl::StrCat("input has shape ", c.shape(0).ToString(), ", expected images"));
  return InferSame(c);
}
const ops::Family kAdjust({"AdjustContrastv2", "AdjustHue", "AdjustSaturation"},
                          {.infer = InferAdjust,
                           .rows = ops::RowsFromRankAlone<4>,
                           .input_types = "T float32[]"});

// image_size [3], bounding_boxes [batch, n, 4][, min_object_covered, else an attribute] -> where a
// part begins [3], its size [3], the part as a box [1, 1, 4].
absl::StatusOr<Types> InferRandomBox(const InferContext& c) {
  return Types{{c.dtype(0), {3}}, {c.dtype(0), {3}}, {DType::kFloat32, {1, 1, 4}}};
}
OpDef RandomBox(const char* name, const char* types) {
  return {.name = name,
          .output_names = {"begin", "size", "bboxes"},
          .infer = InferRandomBox,
          .rows = ops::AlwaysMixed,
          .stateful = true,
          .input_types = types};
}
const OpRegistrar kRandomBox[] = {
    OpRegistrar(RandomBox("SampleDistortedBoundingBox", "T[_] float32[_,_,4]")),
    OpRegistrar(RandomBox("SampleDistortedBoundingBoxV2", "T[_] float32[_,_,4] float32[]"))};

const OpRegistrar kLrn(ops::Simple("LRN", InferSame, RowsOfInput0), "T[_,_,_,_]");

// images, transforms (one, or one each), output shape[, fill value].
absl::StatusOr<Types> InferTransform(const InferContext& c) {
  const std::string way = c.attrs().String("interpolation"),
                    fill = c.attrs().String("fill_mode", "CONSTANT");
  if (way != "NEAREST" && way != "BILINEAR")
    return Bad("interpolation '" + way + "' is neither NEAREST nor BILINEAR");
  if (fill != "CONSTANT" && fill != "REFLECT" && fill != "WRAP" && fill != "NEAREST")
    return Bad("fill_mode '" + fill + "' is none of CONSTANT, REFLECT, WRAP, NEAREST");
  SymShape out = c.shape(0).rank_known() ? c.shape(0) : ops::UnknownDims(4);
  FLOE_RETURN_IF_ERROR(SetSize(c, 2, "output_shape", &out));
  return ops::One(c.dtype(0), std::move(out));
}

RowMark TransformRows(const RowContext& c) {
  const SymShape &images = c.inputs[0].type.shape, &transforms = c.inputs[1].type.shape;
  if (!c.OthersConstant(2)) return RowsNever(c);
  if (!images.rank_known() || !transforms.rank_known() || images.rank() != 4 ||
      transforms.rank() != 2 || c.marks[0] != RowMark::kRows)
    return ops::NoRows(c);
  const bool one = c.marks[1] == RowMark::kConstant && transforms.dim(0) == Dim(1),
             each = c.marks[1] == RowMark::kRows && transforms.dim(0) == images.dim(0);
  return ops::Checked(one || each ? RowMark::kRows : RowMark::kMixed, c);
}

OpDef Transform(const char* name, const char* types) {
  return {.name = name,
          .infer = InferTransform,
          .rows = TransformRows,
          .shape_inputs = 4,
          .input_types = types};
}
const OpRegistrar kTransforms[] = {
    OpRegistrar(Transform("ImageProjectiveTransformV2", "T[_,_,_,_] float32[_,8] int32")),
    OpRegistrar(
        Transform("ImageProjectiveTransformV3", "T[_,_,_,_] float32[_,8] int32 float32[]"))};

}  // namespace
}  // namespace floe
