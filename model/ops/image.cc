// Ops on images: resizing, cropping and colours.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

// [batch, rows, cols, channels] to the size that input 1 gives.
absl::StatusOr<Types> Resized(const InferContext& c, DType dtype) {
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 0, 4));
  SymShape out = c.shape(0).rank_known() ? c.shape(0) : ops::UnknownDims(4);
  if (c.attrs().Bool("align_corners") && c.attrs().Bool("half_pixel_centers"))
    return Bad("align_corners and half_pixel_centers exclude each other");
  std::vector<Dim> size;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.DimsOf(1, &size));
  if (known && size.size() != 2)
    return Bad(absl::StrCat("size has ", size.size(), " elements, expected 2"));
  for (int i = 0; i < 2; ++i) {
    if (known && size[i].concrete() && size[i].size() <= 0)
      return Bad(absl::StrCat("size ", size[i].size(), " is not positive"));
    out.set_dim(i + 1, known ? size[i] : Dim::Unknown());
  }
  return ops::One(dtype, std::move(out));
}
absl::StatusOr<Types> InferResize(const InferContext& c) { return Resized(c, DType::kFloat32); }
absl::StatusOr<Types> InferNearest(const InferContext& c) { return Resized(c, c.dtype(0)); }

RowMark ResizeRows(const RowContext& c) { return ops::MarkOfData(c, 0, true); }

OpDef Resize(const std::string& name, absl::StatusOr<Types> (*infer)(const InferContext&)) {
  return {.name = name,
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer,
          .rows = ResizeRows,
          .shape_inputs = 2,
          .tensorflow = {name}};
}
const OpRegistrar kResize[] = {
    OpRegistrar(Resize("ResizeBilinear", InferResize), "T int32"),
    OpRegistrar(Resize("ResizeBicubic", InferResize), "T int32"),
    OpRegistrar(Resize("ResizeArea", InferResize), "T int32"),
    OpRegistrar(Resize("ResizeNearestNeighbor", InferNearest), "T int32"),
};

// Inputs: images, size, scale [2], translation [2].
absl::StatusOr<Types> InferScaleAndTranslate(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 2, 1));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 3, 1));
  const std::string kernel = c.attrs().String("kernel_type", "lanczos3");
  for (const char* known : {"lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle",
                            "keyscubic", "mitchellcubic"}) {
    if (kernel == known) return InferResize(c);
  }
  return Bad("kernel_type '" + kernel + "' is unknown");
}
const OpRegistrar kScaleAndTranslate({.name = "ScaleAndTranslate",
                                      .min_inputs = 4,
                                      .max_inputs = 4,
                                      .infer = InferScaleAndTranslate,
                                      .rows = RowsOfInput0,
                                      .shape_inputs = 2,
                                      .input_types = "T int32 float32 float32",
                                      .tensorflow = {"ScaleAndTranslate"}});

// Colours along the last dim.
absl::StatusOr<Types> InferColours(const InferContext& c) {
  const SymShape& in = c.shape(0);
  if (in.rank_known() && in.rank() < 1) return Bad("input is a scalar");
  const Dim channels = in.rank_known() ? in.dim(in.rank() - 1) : Dim::Unknown();
  if (channels.concrete() && channels.size() != 3)
    return Bad(absl::StrCat("input has shape ", in.ToString(), ", expected 3 channels"));
  return InferSame(c);
}
RowMark ColourRows(const RowContext& c) {
  const SymShape& in = c.inputs[0].type.shape;
  return ops::MarkOfData(c, 0, in.rank_known() && in.rank() > 1);
}
OpDef Colours(const std::string& name) {
  return {.name = name,
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = InferColours,
          .rows = ColourRows,
          .tensorflow = {name}};
}
const OpRegistrar kColours[] = {OpRegistrar(Colours("RGBToHSV")), OpRegistrar(Colours("HSVToRGB"))};

// images, boxes [batch, n, 4][, colours [n, 4]]
absl::StatusOr<Types> InferDraw(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 0, 4));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 1, 3));
  FLOE_RETURN_IF_ERROR(ops::ExpectType(c, 1, DType::kFloat32));
  if (c.num_inputs() > 2) {
    FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 2, 2));
    FLOE_RETURN_IF_ERROR(ops::ExpectType(c, 2, DType::kFloat32));
  }
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (ops::RankOf(c, i) > 0 && ops::Differ(c.shape(i).dim(c.shape(i).rank() - 1), Dim(4)))
      return Bad(absl::StrCat("input ", i, " has shape ", c.shape(i).ToString(),
                              ", expected a last dim of 4"));
  }
  if (ops::RankOf(c, 0) == 4 && ops::RankOf(c, 1) == 3 &&
      ops::Differ(c.shape(0).dim(0), c.shape(1).dim(0)))
    return Bad(absl::StrCat("boxes of shape ", c.shape(1).ToString(), " for images of shape ",
                            c.shape(0).ToString()));
  return InferSame(c);
}
RowMark DrawRows(const RowContext& c) {
  const bool apart = c.marks[0] == RowMark::kRows && c.marks[1] == RowMark::kRows &&
                     ops::LeadingRows(c.inputs[1].type) && c.OthersConstant(2);
  return apart ? ops::Checked(RowMark::kRows, c) : RowsNever(c);
}
const OpRegistrar kDraw({.name = "DrawBoundingBoxes",
                         .min_inputs = 2,
                         .max_inputs = 3,
                         .infer = InferDraw,
                         .rows = DrawRows,
                         .tensorflow = {"DrawBoundingBoxes", "DrawBoundingBoxesV2"}});

// Inputs: image, boxes [n, 4], the image of each box, size.
absl::StatusOr<Types> InferCrop(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 0, 4));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 1, 2));
  SymShape out = ops::UnknownDims(4);
  if (c.shape(1).rank_known()) out.set_dim(0, c.shape(1).dim(0));
  if (c.shape(0).rank_known()) out.set_dim(3, c.shape(0).dim(3));
  std::vector<Dim> size;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.DimsOf(3, &size));
  if (known && size.size() != 2)
    return Bad(absl::StrCat("crop_size has ", size.size(), " elements, expected 2"));
  for (int i = 0; known && i < 2; ++i) {
    if (size[i].concrete() && size[i].size() <= 0)
      return Bad(absl::StrCat("crop_size ", size[i].size(), " is not positive"));
    out.set_dim(i + 1, size[i]);
  }
  FLOE_RETURN_IF_ERROR(ops::ExpectType(c, 1, DType::kFloat32));
  const Dim corners = c.shape(1).rank_known() ? c.shape(1).dim(1) : Dim::Unknown();
  if (corners.concrete() && corners.size() != 4)
    return Bad(absl::StrCat("boxes have ", corners.size(), " coordinates, expected 4"));
  return ops::One(DType::kFloat32, std::move(out));
}
RowMark MixedRows(const RowContext& c) { return ops::Checked(RowsNever(c), c); }
const OpRegistrar kCrop({.name = "CropAndResize",
                         .min_inputs = 4,
                         .max_inputs = 4,
                         .infer = InferCrop,
                         .rows = MixedRows,
                         .shape_inputs = 8,
                         .input_types = "T float32 int32 int32",
                         .tensorflow = {"CropAndResize"}});

// Images [..., rows, cols, channels], changed alike by a scalar.
absl::StatusOr<Types> InferAdjust(const InferContext& c) {
  if (c.shape(0).rank_known() && c.shape(0).rank() < 3)
    return Bad(absl::StrCat("input has shape ", c.shape(0).ToString(), ", expected images"));
  FLOE_RETURN_IF_ERROR(ops::ExpectType(c, 1, DType::kFloat32));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 1, 0));
  return InferSame(c);
}
RowMark AdjustRows(const RowContext& c) {
  const SymShape& in = c.inputs[0].type.shape;
  if (!c.OthersConstant(1)) return RowMark::kMixed;
  return ops::MarkOfData(c, 0, in.rank_known() && in.rank() >= 4);
}
OpDef Adjust(const std::string& name) {
  return {.name = name,
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = InferAdjust,
          .rows = AdjustRows,
          .tensorflow = {name}};
}
const OpRegistrar kAdjust[] = {OpRegistrar(Adjust("AdjustContrastv2"), "T float32"),
                               OpRegistrar(Adjust("AdjustHue"), "T float32"),
                               OpRegistrar(Adjust("AdjustSaturation"), "T float32")};

// image_size [3], bounding_boxes [batch, n, 4][, min_object_covered, else an attribute] -> where a
// part begins [3], its size [3], the part as a box [1, 1, 4].
absl::StatusOr<Types> InferRandomBox(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 0, 1));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 1, 3));
  FLOE_RETURN_IF_ERROR(ops::ExpectType(c, 1, DType::kFloat32));
  if (c.num_inputs() > 2) {
    FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 2, 0));
    FLOE_RETURN_IF_ERROR(ops::ExpectType(c, 2, DType::kFloat32));
  }
  const Dim corners = c.shape(1).rank_known() ? c.shape(1).dim(2) : Dim::Unknown();
  if (corners.concrete() && corners.size() != 4)
    return Bad(absl::StrCat("bounding boxes have ", corners.size(), " coordinates, expected 4"));
  return Types{{c.dtype(0), {3}}, {c.dtype(0), {3}}, {DType::kFloat32, {1, 1, 4}}};
}
RowMark RandomBoxRows(const RowContext&) { return RowMark::kMixed; }
OpDef RandomBox(const std::string& name, int inputs) {
  return {.name = name,
          .min_inputs = inputs,
          .max_inputs = inputs,
          .output_names = {"begin", "size", "bboxes"},
          .infer = InferRandomBox,
          .rows = RandomBoxRows,
          .stateful = true,
          .tensorflow = {name}};
}
const OpRegistrar kRandomBox[] = {
    OpRegistrar(RandomBox("SampleDistortedBoundingBox", 2)),
    OpRegistrar(RandomBox("SampleDistortedBoundingBoxV2", 3), "T float32 float32")};

absl::StatusOr<Types> InferLrn(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 0, 4));
  return InferSame(c);
}
const OpRegistrar kLrn({.name = "LRN",
                        .min_inputs = 1,
                        .max_inputs = 1,
                        .infer = InferLrn,
                        .rows = RowsOfInput0,
                        .tensorflow = {"LRN"}});

}  // namespace
}  // namespace floe
