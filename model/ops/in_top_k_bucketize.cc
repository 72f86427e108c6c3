// Numbers and classes put in order: InTopK and Bucketize; and what layout optimisers leave of axes.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

// predictions, targets[, k].
absl::StatusOr<Types> InferInTopK(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(SymShape out, ops::Merge({ops::DimOf(c, 0, 0)}, c.shape(1)));
  return ops::One(DType::kBool, std::move(out));
}
RowMark InTopKRows(const RowContext& c) {
  return ops::Checked(ops::PairedRows(c, 2, 1) ? RowMark::kRows : RowsNever(c), c);
}
const OpRegistrar kInTopK[] = {
    OpRegistrar(ops::Simple("InTopK", InferInTopK, InTopKRows), "float32[_,_] i[_]"),
    OpRegistrar(ops::Simple("InTopKV2", InferInTopK, InTopKRows), "float32[_,_] i[_] i[]")};

absl::StatusOr<Types> InferBucketize(const InferContext& c) {
  const auto boundaries = c.attrs().Get<std::vector<float>>("boundaries", {});
  if (!std::is_sorted(boundaries.begin(), boundaries.end()))
    return Bad("boundaries are not in ascending order");
  return ops::One(DType::kInt32, c.shape(0));
}
const OpRegistrar kBucketize(ops::Simple("Bucketize", InferBucketize, RowsElementwise), "T");

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
const OpRegistrar kLayout[] = {
    OpRegistrar({.name = "DataFormatVecPermute",
                 .infer = InferVecPermute,
                 .rows = ops::NoRows,
                 .values = ValueRule::kLinear,
                 .input_types = "i"}),
    OpRegistrar(ops::Simple("DataFormatDimMap", InferDimMap, RowsElementwise), "i"),
};

}  // namespace
}  // namespace floe
