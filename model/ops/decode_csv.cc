// Records in strings taken apart: lines of CSV, numbers in bytes of a fixed length; and unpacked.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

// records, a default for each field -> a tensor for each field.
absl::StatusOr<Types> InferCsv(const InferContext& c) {
  const auto fields = c.attrs().Get<std::vector<DType>>("OUT_TYPE", {});
  if (c.num_inputs() != 1 + static_cast<int>(fields.size()))
    return Bad(absl::StrCat(c.num_inputs() - 1, " record_defaults for ", fields.size(), " fields"));
  if (c.attrs().String("field_delim", ",").size() != 1)
    return Bad("field_delim should be only 1 char");
  const std::vector<int64_t> columns = c.attrs().Ints("select_cols");
  if (!columns.empty() && columns.size() != fields.size())
    return Bad(absl::StrCat("select_cols has ", columns.size(), " columns for ", fields.size(),
                            " fields"));
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] < 0 || (i > 0 && columns[i] <= columns[i - 1]))
      return Bad("select_cols should be strictly increasing indices");
  }
  Types types;
  for (size_t i = 0; i < fields.size(); ++i) {
    const DType dtype = fields[i];
    if (dtype != DType::kFloat32 && dtype != DType::kFloat64 && dtype != DType::kInt32 &&
        dtype != DType::kInt64 && dtype != DType::kString)
      return Bad(absl::StrCat("OUT_TYPE holds ", DTypeName(dtype)));
    FLOE_RETURN_IF_ERROR(ops::ExpectType(c, static_cast<int>(i) + 1, dtype));
    types.push_back({dtype, c.shape(0)});
  }
  return types;
}

// input_bytes, fixed_length -> numbers along a last dim.
absl::StatusOr<Types> InferPaddedRaw(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(
      const DType dtype,
      ops::TypeAttrOf(c, "out_type", DType::kUInt8,
                      {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kUInt16,
                       DType::kUInt8, DType::kInt16, DType::kInt8, DType::kInt64}));
  std::vector<int64_t> length;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.IntsOf(1, &length));
  const auto size = static_cast<int64_t>(DTypeSize(dtype));
  if (known && (length.size() != 1 || length[0] <= 0 || length[0] % size != 0))
    return Bad(absl::StrCat("fixed_length (", length.empty() ? 0 : length[0],
                            ") must be a multiple of the size of out_type (", size, ")"));
  SymShape out = c.shape(0);
  if (out.rank_known()) out.push_back(known ? Dim(length[0] / size) : Dim::Unknown());
  return ops::One(dtype, std::move(out));
}

absl::StatusOr<Types> InferCompressed(const InferContext& c) {
  const std::string type = c.attrs().String("compression_type");
  if (!type.empty() && type != "NONE" && type != "ZLIB" && type != "GZIP")
    return Bad("compression_type '" + type + "' is none of ZLIB, GZIP and NONE");
  return ops::One(DType::kString, c.shape(0));
}

const OpRegistrar kRecords[] = {
    OpRegistrar({.name = "DecodeCompressed",
                 .infer = InferCompressed,
                 .rows = RowsElementwise,
                 .input_types = "string",
                 .limits = "ZSTD is refused"}),
    OpRegistrar({.name = "DecodeCSV",
                 .output_names = {"output:OUT_TYPE"},
                 .infer = InferCsv,
                 .rows = ops::RowsFromRankAlone<1>,
                 .input_types = "string ?"}),
    OpRegistrar({.name = "DecodePaddedRaw",
                 .infer = InferPaddedRaw,
                 .rows = ops::RowsFromRankAlone<1>,
                 .shape_inputs = 2,
                 .input_types = "string int32[]"}),
};

}  // namespace
}  // namespace floe
