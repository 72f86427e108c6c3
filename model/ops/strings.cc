// Strings: case, numbers, regular expressions and joining. Taking them apart is in
// data_dependent.cc.
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

absl::StatusOr<Types> InferToNumber(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const DType dtype,
                        ops::TypeAttrOf(c, "out_type", DType::kFloat32,
                                        {DType::kFloat32, DType::kFloat64, DType::kInt32,
                                         DType::kInt64, DType::kUInt32, DType::kUInt64}));
  return ops::One(dtype, c.shape(0));
}
// Inputs of one shape, but for scalars, which are for every element.
absl::StatusOr<Types> InferJoin(const InferContext& c) {
  SymShape out;
  bool found = false;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (!c.shape(i).rank_known()) return ops::One(DType::kString, SymShape::UnknownRank());
    if (c.shape(i).rank() == 0) continue;
    if (!found) {
      out = c.shape(i);
      found = true;
    } else {
      FLOE_ASSIGN_OR_RETURN(out, ops::Merge(out, c.shape(i)));
    }
  }
  return ops::One(DType::kString, std::move(out));
}

constexpr ops::InferFunction kString = ops::InferEach<DType::kString>,
                             kBool = ops::InferEach<DType::kBool>,
                             kBucket = ops::InferEach<DType::kInt64>;
// Only the strings have rows, not pattern and rewrite.
constexpr RowRule kRegexRows = ops::RowsFromRankAlone<0>;

const OpRegistrar kStrings[] = {
    OpRegistrar(ops::Simple("StringLower", kString, RowsElementwise), "string"),
    OpRegistrar(ops::Simple("StringUpper", kString, RowsElementwise), "string"),
    OpRegistrar(ops::Simple("AsString", kString, RowsElementwise), "T"),
    OpRegistrar(ops::Simple("StringToNumber", InferToNumber, RowsElementwise), "string"),
    OpRegistrar(ops::Simple("StringJoin", InferJoin, RowsElementwise), "string*"),
    OpRegistrar(ops::Simple("StringStrip", kString, RowsElementwise), "T"),
    OpRegistrar(ops::Simple("StringToHashBucketFast", kBucket, RowsElementwise), "T"),
    OpRegistrar(ops::Simple("StaticRegexReplace", kString, kRegexRows), "string"),
    OpRegistrar(ops::Simple("StaticRegexFullMatch", kBool, kRegexRows), "T"),
    OpRegistrar(ops::Simple("RegexReplace", kString, kRegexRows), "T U V"),
    OpRegistrar(ops::Simple("RegexFullMatch", kBool, kRegexRows), "T U"),
};

}  // namespace
}  // namespace floe
