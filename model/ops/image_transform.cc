// Images turned, moved and bent by projective transforms.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

// images, transforms [1 or batch, 8], output shape [2][, fill value].
absl::StatusOr<Types> InferTransform(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 0, 4));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 1, 2));
  FLOE_RETURN_IF_ERROR(ops::ExpectType(c, 1, DType::kFloat32));
  FLOE_RETURN_IF_ERROR(ops::ExpectType(c, 2, DType::kInt32));
  if (c.num_inputs() > 3) {
    FLOE_RETURN_IF_ERROR(ops::ExpectType(c, 3, DType::kFloat32));
    FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 3, 0));
  }
  const std::string way = c.attrs().String("interpolation"),
                    fill = c.attrs().String("fill_mode", "CONSTANT");
  if (way != "NEAREST" && way != "BILINEAR")
    return Bad("interpolation '" + way + "' is neither NEAREST nor BILINEAR");
  if (fill != "CONSTANT" && fill != "REFLECT" && fill != "WRAP" && fill != "NEAREST")
    return Bad("fill_mode '" + fill + "' is none of CONSTANT, REFLECT, WRAP, NEAREST");
  const Dim width = ops::RankOf(c, 1) == 2 ? c.shape(1).dim(1) : Dim::Unknown();
  if (width.concrete() && width.size() != 8)
    return Bad(absl::StrCat("transforms have ", width.size(), " numbers, expected 8"));
  SymShape out = ops::UnknownDims(4);
  if (c.shape(0).rank_known()) {
    out.set_dim(0, c.shape(0).dim(0));
    out.set_dim(3, c.shape(0).dim(3));
  }
  std::vector<Dim> size;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.DimsOf(2, &size));
  if (known && size.size() != 2)
    return Bad(absl::StrCat("output_shape has ", size.size(), " elements, expected 2"));
  for (int i = 0; known && i < 2; ++i) {
    if (size[i].concrete() && size[i].size() <= 0)
      return Bad(absl::StrCat("output_shape ", size[i].size(), " is not positive"));
    out.set_dim(i + 1, size[i]);
  }
  return ops::One(c.dtype(0), std::move(out));
}

// One transform for all images, or one for each.
RowMark TransformRows(const RowContext& c) {
  const SymShape &images = c.inputs[0].type.shape, &transforms = c.inputs[1].type.shape;
  for (size_t i = 2; i < c.marks.size(); ++i) {
    if (c.marks[i] != RowMark::kConstant) return RowsNever(c);
  }
  if (!images.rank_known() || !transforms.rank_known() || images.rank() != 4 ||
      transforms.rank() != 2 || c.marks[0] != RowMark::kRows)
    return ops::Checked(RowsNever(c), c);
  const bool one = c.marks[1] == RowMark::kConstant && transforms.dim(0) == Dim(1),
             each = c.marks[1] == RowMark::kRows && transforms.dim(0) == images.dim(0);
  return ops::Checked(one || each ? RowMark::kRows : RowMark::kMixed, c);
}

OpDef Transform(const std::string& name, int inputs) {
  return {.name = name,
          .min_inputs = inputs,
          .max_inputs = inputs,
          .infer = InferTransform,
          .rows = TransformRows,
          .shape_inputs = 4,
          .tensorflow = {name}};
}
const OpRegistrar kTransforms[] = {OpRegistrar(Transform("ImageProjectiveTransformV2", 3)),
                                   OpRegistrar(Transform("ImageProjectiveTransformV3", 4))};

}  // namespace
}  // namespace floe
