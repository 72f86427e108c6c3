// Strings as bytes and letters: parts and lengths, hashes, base64, code points, n-grams, crossed
// features.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

absl::Status CheckUnit(const InferContext& c) {
  const std::string unit = c.attrs().String("unit", "BYTE");
  if (unit == "BYTE" || unit == "UTF8_CHAR") return absl::OkStatus();
  return Bad("unit '" + unit + "' is neither BYTE nor UTF8_CHAR");
}
absl::StatusOr<Types> InferTextLength(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(CheckUnit(c));
  return ops::One(DType::kInt32, c.shape(0));
}
// input, pos, len.
absl::StatusOr<Types> InferSubstr(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(CheckUnit(c));
  FLOE_ASSIGN_OR_RETURN(const SymShape places, ops::Merge(c.shape(1), c.shape(2)));
  FLOE_ASSIGN_OR_RETURN(SymShape shape, BroadcastShapes(c.shape(0), places));
  return ops::One(DType::kString, std::move(shape));
}
absl::StatusOr<Types> InferTextBucket(const InferContext& c) {
  const int64_t buckets = c.attrs().Int("num_buckets");
  if (buckets < 1) return Bad(absl::StrCat("num_buckets is ", buckets, ", expected 1 or more"));
  if (c.node.op->name == "StringToHashBucketStrong" && c.attrs().Ints("key").size() != 2)
    return Bad("key must be two numbers");
  return ops::One(DType::kInt64, c.shape(0));
}
OpDef EachString(const char* name, ops::InferFunction infer) {
  return ops::Simple(name, infer, RowsElementwise);
}

// data, method -> 8 bytes for each row.
absl::StatusOr<Types> InferFingerprint(const InferContext& c) {
  if (IsHandle(c.dtype(0))) return Bad(absl::StrCat("data is ", DTypeName(c.dtype(0))));
  const SymShape& in = c.shape(0);
  if (in.rank_known() && in.rank() == 0) return Bad("data is a scalar");
  return ops::One(DType::kUInt8, {in.rank_known() ? in.dim(0) : Dim::Unknown(), Dim(8)});
}

// Numbers that the bytes of each string hold, along a last dim.
absl::StatusOr<Types> InferDecodeRaw(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(
      const DType dtype,
      ops::TypeAttrOf(c, "out_type", DType::kUInt8,
                      {DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kInt32,
                       DType::kUInt16, DType::kUInt8, DType::kInt16, DType::kInt8, DType::kInt64,
                       DType::kComplex64, DType::kComplex128, DType::kBool, DType::kBFloat16}));
  SymShape out = c.shape(0);
  if (out.rank_known()) out.push_back(Dim::Unknown());
  return ops::One(dtype, std::move(out));
}

// data, splits -> n-grams, splits.
absl::StatusOr<Types> InferNGrams(const InferContext& c) {
  for (const int64_t width : c.attrs().Ints("ngram_widths")) {
    if (width < 1 || width > INT32_MAX)
      return Bad(absl::StrCat("ngram_widths holds ", width, ", expected 1 or more"));
  }
  return Types{ops::UnknownVector(DType::kString), {c.dtype(1), c.shape(1)}};
}

absl::Status CheckErrors(const InferContext& c) {
  const std::string errors = c.attrs().String("errors", "replace");
  if (errors != "replace" && errors != "strict" && errors != "ignore")
    return Bad("errors '" + errors + "' is none of replace, strict, ignore");
  const int64_t replacement = c.attrs().Int("replacement_char", 0xFFFD);
  if (replacement < 0 || replacement > 0x10FFFF)
    return Bad(absl::StrCat("replacement_char ", replacement, " is no code point"));
  return absl::OkStatus();
}
absl::Status CheckOutputEncoding(const InferContext& c) {
  const std::string encoding = c.attrs().String("output_encoding");
  if (encoding == "UTF-8" || encoding == "UTF-16-BE" || encoding == "UTF-32-BE")
    return absl::OkStatus();
  return Bad("output_encoding '" + encoding + "' is none of UTF-8, UTF-16-BE, UTF-32-BE");
}
// input -> row splits, code points[, where each begins]; the strings in row-major order.
absl::StatusOr<Types> InferUnicodeDecode(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(CheckErrors(c));
  FLOE_ASSIGN_OR_RETURN(const DType splits, ops::IndexTypeAttr(c, "Tsplits", DType::kInt64));
  const Dim count = c.shape(0).elements();
  Types types = {{splits, {count.known() ? count + Dim(1) : Dim::Unknown()}},
                 ops::UnknownVector(DType::kInt32)};
  if (c.node.op->outputs == 3) types.push_back(ops::UnknownVector(DType::kInt64));
  return types;
}
absl::StatusOr<Types> InferTranscode(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(CheckErrors(c));
  FLOE_RETURN_IF_ERROR(CheckOutputEncoding(c));
  return ops::One(DType::kString, c.shape(0));
}
// code points, row splits -> strings.
absl::StatusOr<Types> InferUnicodeEncode(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(CheckErrors(c));
  FLOE_RETURN_IF_ERROR(CheckOutputEncoding(c));
  return Types{ops::UnknownVector(DType::kString)};
}

// input, delimiters -> indices, values, dense shape.
absl::StatusOr<Types> InferTextSplit(const InferContext&) {
  return Types{{DType::kInt64, {Dim::Unknown(), 2}},
               ops::UnknownVector(DType::kString),
               {DType::kInt64, {2}}};
}

// Indices, values and shapes of sparse features, then dense features[; a separator, or what hashing
// needs].
absl::StatusOr<Types> InferTextCross(const InferContext& c) {
  const bool first = c.node.op->name == "SparseCross",
             hashed = c.node.op->name == "SparseCrossHashed";
  const auto features = [&](const char* types) {
    return static_cast<int64_t>(c.attrs().Get<std::vector<DType>>(types, {}).size());
  };
  const int64_t sparse = features("sparse_types"), dense = features("dense_types"),
                inputs = c.num_inputs() - (first    ? 0
                                           : hashed ? 3
                                                    : 1);
  if (c.attrs().Int("N") != sparse || sparse * 3 + dense != inputs)
    return Bad(absl::StrCat("has ", c.num_inputs(), " inputs for ", sparse, " sparse and ", dense,
                            " dense features"));
  for (int i = 0; i < inputs; ++i) {
    const bool values = i >= sparse && (i < 2 * sparse || i >= 3 * sparse);
    if (c.dtype(i) != DType::kInt64 && !(values && c.dtype(i) == DType::kString))
      return Bad(absl::StrCat("input ", i, " is ", DTypeName(c.dtype(i)), ", expected int64",
                              values ? " or string" : ""));
  }
  const int last = c.num_inputs() - 1;
  if (hashed) {
    FLOE_RETURN_IF_ERROR(ops::ExpectType(c, last - 2, DType::kInt64));
    FLOE_RETURN_IF_ERROR(ops::ExpectType(c, last - 1, DType::kBool));
    FLOE_RETURN_IF_ERROR(ops::ExpectType(c, last, DType::kInt64));
  } else if (!first) {
    FLOE_RETURN_IF_ERROR(ops::ExpectType(c, last, DType::kString));
  }
  const bool numbers = hashed || (first && c.attrs().Bool("hashed_output"));
  return Types{{DType::kInt64, {Dim::Unknown(), 2}},
               ops::UnknownVector(numbers ? DType::kInt64 : DType::kString),
               {DType::kInt64, {2}}};
}
OpDef Cross(const std::string& name) {
  OpDef def =
      ops::Allocating(name, {"output_indices", "output_values", "output_shape"}, InferTextCross);
  def.max_inputs = -1;
  return def;
}

const OpRegistrar kText[] = {
    OpRegistrar(EachString("StringLength", InferTextLength), "string"),
    OpRegistrar(EachString("Substr", InferSubstr), "string i i"),
    OpRegistrar(EachString("StringToHashBucket", InferTextBucket), "string"),
    OpRegistrar(EachString("StringToHashBucketStrong", InferTextBucket), "string"),
    OpRegistrar(EachString("EncodeBase64", ops::InferEach<DType::kString>), "string"),
    OpRegistrar(EachString("DecodeBase64", ops::InferEach<DType::kString>), "string"),
    OpRegistrar(EachString("UnicodeTranscode", InferTranscode), "string"),
    OpRegistrar(EachString("UnicodeScript", ops::InferEach<DType::kInt32>), "int32"),
    OpRegistrar(ops::Allocating("DecodeRaw", {"output"}, InferDecodeRaw), "string"),
    OpRegistrar(ops::Allocating("StringNGrams", {"ngrams", "ngrams_splits"}, InferNGrams),
                "string[_] i[_]"),
    OpRegistrar(ops::Allocating("UnicodeDecode", {"row_splits", "char_values"}, InferUnicodeDecode),
                "string"),
    OpRegistrar(
        ops::Allocating("UnicodeDecodeWithOffsets",
                        {"row_splits", "char_values", "char_to_byte_starts"}, InferUnicodeDecode),
        "string"),
    OpRegistrar(ops::Allocating("UnicodeEncode", {"output"}, InferUnicodeEncode), "int32[_] i[_]"),
    OpRegistrar(ops::Allocating("StringSplit", {"indices", "values", "shape"}, InferTextSplit),
                "string[_] string[]"),
    OpRegistrar(ops::Simple("Fingerprint", InferFingerprint, ops::RowsFromRankAlone<1>),
                "T string[]"),
    OpRegistrar(Cross("SparseCross")),
    OpRegistrar(Cross("SparseCrossV2")),
    OpRegistrar(Cross("SparseCrossHashed")),
};

}  // namespace
}  // namespace floe
