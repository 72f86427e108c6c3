// Strings: case, numbers, regular expressions and joining. Taking them apart is in
// data_dependent.cc.
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

absl::StatusOr<Types> InferString(const InferContext& c) {
  return ops::One(DType::kString, c.shape(0));
}
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

absl::StatusOr<Types> InferBucket(const InferContext& c) {
  return ops::One(DType::kInt64, c.shape(0));
}
absl::StatusOr<Types> InferMatch(const InferContext& c) {
  return ops::One(DType::kBool, c.shape(0));
}

// Only the strings have rows, not pattern and rewrite.
RowMark RegexRows(const RowContext& c) {
  return c.OthersConstant(1) ? ops::MarkOfData(c, 0, true) : RowsNever(c);
}

OpDef Regex(const std::string& name, absl::StatusOr<Types> (*infer)(const InferContext&),
            int inputs) {
  return {.name = name,
          .min_inputs = inputs,
          .max_inputs = inputs,
          .infer = infer,
          .rows = RegexRows,
          .tensorflow = {name}};
}

OpDef Elementwise(const std::string& name, absl::StatusOr<Types> (*infer)(const InferContext&),
                  int most = 1) {
  return {.name = name,
          .min_inputs = 1,
          .max_inputs = most,
          .infer = infer,
          .rows = RowsElementwise,
          .tensorflow = {name}};
}
const OpRegistrar kStrings[] = {
    OpRegistrar(Elementwise("StringLower", InferString), "string"),
    OpRegistrar(Elementwise("StringUpper", InferString), "string"),
    OpRegistrar(Elementwise("AsString", InferString)),
    OpRegistrar(Elementwise("StringToNumber", InferToNumber), "string"),
    OpRegistrar(Elementwise("StringJoin", InferJoin, -1), "string*"),
    OpRegistrar(Elementwise("StringStrip", InferString)),
    OpRegistrar(Elementwise("StringToHashBucketFast", InferBucket)),
    OpRegistrar(Regex("StaticRegexReplace", InferString, 1), "string"),
    OpRegistrar(Regex("StaticRegexFullMatch", InferMatch, 1)),
    OpRegistrar(Regex("RegexReplace", InferString, 3)),
    OpRegistrar(Regex("RegexFullMatch", InferMatch, 2)),
};

}  // namespace
}  // namespace floe
