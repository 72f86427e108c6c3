// Numbers and classes put in order: InTopK and Bucketize; and what layout optimisers leave of axes.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

// predictions [batch, classes], targets [batch][, k].
absl::StatusOr<Types> InferInTopK(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 0, 2));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 1, 1));
  if (c.num_inputs() > 2) FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 2, 0));
  SymShape out = ops::UnknownDims(1);
  if (c.shape(0).rank_known()) out.set_dim(0, c.shape(0).dim(0));
  FLOE_ASSIGN_OR_RETURN(out, ops::Merge(out, c.shape(1)));
  return ops::One(DType::kBool, std::move(out));
}
// Rows of predictions and targets go together.
RowMark InTopKRows(const RowContext& c) {
  const SymShape &scores = c.inputs[0].type.shape, &targets = c.inputs[1].type.shape;
  const bool both = c.OthersConstant(2) && c.marks[0] == RowMark::kRows &&
                    c.marks[1] == RowMark::kRows && scores.rank_known() && targets.rank_known() &&
                    scores.rank() == 2 && targets.rank() == 1 && scores.dim(0) == targets.dim(0);
  return ops::Checked(both ? RowMark::kRows : RowsNever(c), c);
}
OpDef InTopK(const std::string& name, int inputs) {
  return {.name = name,
          .min_inputs = inputs,
          .max_inputs = inputs,
          .infer = InferInTopK,
          .rows = InTopKRows,
          .tensorflow = {name}};
}
const OpRegistrar kInTopK[] = {OpRegistrar(InTopK("InTopK", 2), "float32 i"),
                               OpRegistrar(InTopK("InTopKV2", 3), "float32 i i")};

absl::StatusOr<Types> InferBucketize(const InferContext& c) {
  const auto boundaries = c.attrs().Get<std::vector<float>>("boundaries", {});
  if (!std::is_sorted(boundaries.begin(), boundaries.end()))
    return Bad("boundaries are not in ascending order");
  return ops::One(DType::kInt32, c.shape(0));
}
const OpRegistrar kBucketize({.name = "Bucketize",
                              .min_inputs = 1,
                              .max_inputs = 1,
                              .infer = InferBucketize,
                              .rows = RowsElementwise,
                              .tensorflow = {"Bucketize"}});

absl::Status CheckFormats(const InferContext& c) {
  std::string from = c.attrs().String("src_format", "NHWC"),
              to = c.attrs().String("dst_format", "NCHW");
  const std::string shown = absl::StrCat("src_format '", from, "' and dst_format '", to, "'");
  std::sort(from.begin(), from.end());
  std::sort(to.begin(), to.end());
  if ((from.size() != 4 && from.size() != 5) || from != to ||
      std::adjacent_find(from.begin(), from.end()) != from.end())
    return Bad(shown + " do not name the same 4 or 5 axes");
  return absl::OkStatus();
}
absl::StatusOr<Types> InferVecPermute(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(CheckFormats(c));
  const SymShape& in = c.shape(0);
  if (!in.rank_known()) return InferSame(c);
  const auto axes = static_cast<int64_t>(c.attrs().String("src_format", "NHWC").size());
  const bool wrong_count = in.rank() > 0 && in.dim(0).concrete() && in.dim(0).size() != axes &&
                           in.dim(0).size() != axes - 2;
  if (in.rank() < 1 || in.rank() > 2 || wrong_count ||
      (in.rank() == 2 && in.dim(1).concrete() && in.dim(1).size() != 2))
    return Bad(absl::StrCat("input has shape ", in.ToString(), ", expected [", axes, "] or [",
                            axes - 2, "], or pairs of as many"));
  return InferSame(c);
}
absl::StatusOr<Types> InferDimMap(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(CheckFormats(c));
  return InferSame(c);
}
RowMark VecPermuteRows(const RowContext& c) { return ops::Checked(RowsNever(c), c); }
const OpRegistrar kLayout[] = {
    OpRegistrar({.name = "DataFormatVecPermute",
                 .min_inputs = 1,
                 .max_inputs = 1,
                 .infer = InferVecPermute,
                 .rows = VecPermuteRows,
                 .values = ValueRule::kLinear,
                 .input_types = "i",
                 .tensorflow = {"DataFormatVecPermute"}}),
    OpRegistrar({.name = "DataFormatDimMap",
                 .min_inputs = 1,
                 .max_inputs = 1,
                 .infer = InferDimMap,
                 .rows = RowsElementwise,
                 .input_types = "i",
                 .tensorflow = {"DataFormatDimMap"}}),
};

}  // namespace
}  // namespace floe
