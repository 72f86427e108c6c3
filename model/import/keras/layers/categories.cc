// Discretization, CategoryEncoding, Hashing, HashedCrossing.
#include "model/import/keras/categories.h"

#include "absl/strings/str_cat.h"
#include "base/quoted.h"

namespace floe::keras {
namespace {

KValue Discretization(LayerContext& c) {
  GraphBuilder& b = c.b;
  const std::vector<float> boundaries = c.config.Floats("bin_boundaries");
  c.config.Ignore({"num_bins", "epsilon"});  // of adapting
  if (boundaries.empty()) c.Fail("it has no bin_boundaries; adapt it before saving");
  const ValueRef bins = b.Op("Bucketize", {c.In()}, {{"boundaries", boundaries}});
  const std::string mode = c.config.String("output_mode", "int");
  const DType named = OptionType(c, DType::kInt64);
  const DType wide = IsInteger(named) ? named : DType::kInt64;
  const DType plain = c.keras2() ? wide : DType::kInt32;
  return EncodeCategories(c, bins, mode, static_cast<int64_t>(boundaries.size()) + 1,
                          mode == "int" ? plain : c.compute_dtype);
}

KValue CategoryEncoding(LayerContext& c) {
  const ValueRef weights = c.ArgValue(1, "count_weights");
  // Keras 3 answers in the type of variables, which a mixed policy computes in no more.
  const absl::StatusOr<DType> kept = DTypeFromName(PolicyName(c.config.At("dtype"), false));
  if (!c.keras2() && kept.ok() && IsFloating(*kept)) c.compute_dtype = *kept;
  return EncodeCategories(c, c.In(), c.config.String("output_mode", "multi_hot"),
                          c.config.Int("num_tokens", 0), c.compute_dtype,
                          weights.node >= 0 ? Cast(c.b, weights, c.compute_dtype) : ValueRef());
}

// True where the input is the value that is masked.
ValueRef Masked(LayerContext& c, ValueRef x) {
  GraphBuilder& b = c.b;
  const Json& mask = c.config.At("mask_value");
  if (mask.is_string()) return b.Op("Equal", {x, Text(b, mask.get<std::string>())});
  return b.Op("Equal", {x, Scalar(b, b.dtype(x), c.config.Number("mask_value", 0))});
}

KValue Hashing(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = c.In();
  const std::string mode = c.config.String("output_mode", "int");
  const int rank = Rank(b, x);
  if (mode == "one_hot" && rank > 0 && SizeAt(b, x, -1) == Dim(1)) x = Squeeze(b, x, {rank - 1});
  const int64_t bins = c.config.Int("num_bins", 1);
  const bool masks = c.config.Has("mask_value") && bins > 1;
  const ValueRef masked = masks ? Masked(c, x) : ValueRef();
  if (Floating(b, x)) x = Cast(b, x, DType::kInt64);
  if (b.dtype(x) != DType::kString) x = b.Op("AsString", {x});
  const int64_t buckets = masks ? bins - 1 : bins;
  const std::vector<int64_t> salt = c.config.Ints("salt", 2, {});
  ValueRef hash = salt.empty() ? b.Op("StringToHashBucketFast", {x}, {{"num_buckets", buckets}})
                               : b.Op("StringToHashBucketStrong", {x},
                                      {{"num_buckets", buckets}, {"key", salt}});
  if (masks) hash = b.Op("SelectV2", {masked, Int64(b, 0), Add(b, hash, Int64(b, 1))});
  const DType dtype = OptionType(c, mode == "int" ? DType::kInt64 : DType::kFloat32);
  return EncodeCategories(c, hash, mode, bins, dtype);
}

KValue HashedCrossing(LayerContext& c) {
  GraphBuilder& b = c.b;
  std::vector<ValueRef> inputs;
  std::vector<DType> types;
  int rank = 0;
  for (const KTensor& input : c.Inputs()) {
    ValueRef x = input.value;
    rank = Rank(b, x);
    if (b.dtype(x) != DType::kString) x = Cast(b, x, DType::kInt64);
    for (int k = rank; k < 2; ++k) x = ExpandDims(b, x, -1);
    inputs.push_back(x);
    types.push_back(b.dtype(x));
  }
  if (inputs.size() < 2) c.Fail("it needs two inputs at least");
  const int64_t bins = c.config.Int("num_bins", 1);
  constexpr int64_t kHashKey = 0xDECAFCAFFE;  // TensorFlow's default
  const std::vector<ValueRef> cross = b.Outputs("SparseCross", inputs, 3,
                                                {{"N", int64_t{0}},
                                                 {"hashed_output", true},
                                                 {"num_buckets", bins},
                                                 {"hash_key", kHashKey},
                                                 {"sparse_types", std::vector<DType>{}},
                                                 {"dense_types", types},
                                                 {"out_type", DType::kInt64},
                                                 {"internal_type", DType::kInt64}});
  if (!b.ok()) return {};
  std::vector<WantedDim> dims;
  if (rank > 0) dims.emplace_back(-1);
  if (rank > 1) dims.emplace_back(1);
  const ValueRef hash = Reshape(b, cross[1], dims);
  const std::string mode = c.config.String("output_mode", "int");
  const DType dtype = OptionType(c, mode == "int" ? DType::kInt64 : DType::kFloat32);
  return EncodeCategories(c, hash, mode, bins, dtype);
}

const LayerRegistrar kDiscretization({"Discretization"}, Discretization);
const LayerRegistrar kEncoding({"CategoryEncoding"}, CategoryEncoding);
const LayerRegistrar kHashing({"Hashing"}, Hashing);
const LayerRegistrar kCrossing({"HashedCrossing"}, HashedCrossing);

}  // namespace
}  // namespace floe::keras
