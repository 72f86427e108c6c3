#include "model/import/keras/categories.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/memory_budget.h"
#include "base/quoted.h"

namespace floe::keras {
namespace {

constexpr int64_t kMaxDepth = 1 << 26;

}  // namespace

DType OptionType(LayerContext& c, DType otherwise) {
  const absl::StatusOr<DType> dtype = DTypeFromName(PolicyName(c.config.At("dtype"), true));
  return dtype.ok() && DTypeSize(*dtype) != 0 ? *dtype : otherwise;
}

ValueRef EncodeCategories(LayerContext& c, ValueRef ids, const std::string& mode, int64_t depth,
                          DType dtype, ValueRef weights) {
  GraphBuilder& b = c.b;
  if (c.config.Bool("sparse", false)) c.Fail("sparse=True is not supported");
  if (mode == "int") return Cast(b, ids, dtype);
  if (depth < 1 || depth > kMaxDepth) c.Fail(absl::StrCat("a depth of ", depth));
  if (Rank(b, ids) == 0) ids = ExpandDims(b, ids, 0);
  const int rank = Rank(b, ids);
  const bool one = mode == "one_hot";
  if (one && rank > 1 && SizeAt(b, ids, -1) == Dim(1)) ids = Squeeze(b, ids, {rank - 1});
  if (b.dtype(ids) != DType::kInt32) ids = Cast(b, ids, DType::kInt64);
  if (weights.node >= 0) dtype = b.dtype(weights);
  ValueRef hot = b.Op("OneHot", {ids, Int(b, depth), Scalar(b, dtype, 1), Scalar(b, dtype, 0)},
                      {{"axis", int64_t{-1}}});
  if (one) return hot;
  const int64_t axis = rank > 1 ? 1 : 0;
  if (mode == "multi_hot" || mode == "binary") return Reduce(b, "Max", hot, {axis}, false);
  if (mode != "count") c.Fail(absl::StrCat("output_mode is ", Quoted(mode)));
  if (weights.node >= 0) hot = Mul(b, hot, ExpandDims(b, weights, -1));
  return Reduce(b, "Sum", hot, {axis}, false);
}

namespace {

std::vector<std::string> Listed(LayerContext& c, const Json& list) {
  std::vector<std::string> tokens;
  const Json* const items = Items(list);
  if (items == nullptr) return tokens;
  for (const Json& item : *items) {
    int64_t number = 0;
    if (item.is_string())
      tokens.push_back(item.get<std::string>());
    else if (ToInt(item, &number))
      tokens.push_back(absl::StrCat(number));
    else
      c.Fail(absl::StrCat("the vocabulary has ", Shown(item)));
  }
  return tokens;
}

// A token of the options: a string, a number, or none.
bool TokenOf(const Json& json, std::string* token) {
  int64_t number = 0;
  if (json.is_string())
    *token = json.get<std::string>();
  else if (ToInt(json, &number))
    *token = absl::StrCat(number);
  else
    return false;
  return true;
}

std::vector<std::string> Tokens(LayerContext& c, const Json& options,
                                const std::string& asset_path) {
  std::vector<std::string> tokens = Listed(c, Member(options, "vocabulary"));
  if (!tokens.empty()) return tokens;
  const absl::StatusOr<std::string> text = c.file.asset(asset_path + "/vocabulary.txt");
  if (!text.ok()) {
    c.b.Fail(absl::InvalidArgumentError(absl::StrCat("no vocabulary is in the file (",
                                                     std::string(text.status().message()),
                                                     "); save the adapted model as .keras")));
    return {};
  }
  tokens = absl::StrSplit(*text, '\n');
  while (!tokens.empty() && tokens.back().empty()) tokens.pop_back();
  return tokens;
}

// Takes the mask and OOV tokens off where they lead, in this order.
void DropSpecial(Vocabulary* v) {
  const auto count = static_cast<size_t>(v->oov_start + v->oov);
  if (count > v->tokens.size()) return;
  for (size_t k = 0; k < count; ++k) {
    const bool mask = k < static_cast<size_t>(v->oov_start);
    if (v->tokens[k] != (mask ? v->mask_token : v->oov_token)) return;
  }
  v->tokens.erase(v->tokens.begin(), v->tokens.begin() + static_cast<int64_t>(count));
}

}  // namespace

Lookup LookupOf(LayerContext& c, DType key, const Json& options, const std::string& asset_path,
                bool text_vectorization) {
  Lookup lookup{.key = key};
  Config o = c.Nested(options, "");
  o.Ignore({"vocabulary", "vocabulary_size", "vocabulary_dtype", "has_input_vocabulary"});
  Vocabulary& v = lookup.vocabulary;
  lookup.mode = o.String("output_mode", "int");
  if (lookup.mode == "binary") lookup.mode = "multi_hot";
  if (lookup.mode == "tf-idf") lookup.mode = "tf_idf";
  v.oov = o.Int("num_oov_indices", 1);
  v.oov_token = key == DType::kString ? "[UNK]" : "-1";
  TokenOf(o.At("oov_token"), &v.oov_token);
  v.mask = TokenOf(o.At("mask_token"), &v.mask_token) || text_vectorization;
  v.oov_start = v.mask && lookup.mode == "int" ? 1 : 0;
  constexpr int64_t kMostOov = 1 << 20;
  if (v.oov < 0 || v.oov > kMostOov) {
    c.Fail(absl::StrCat("num_oov_indices is ", v.oov));
    return lookup;
  }
  v.token_start = v.oov_start + v.oov;
  v.tokens = Tokens(c, options, asset_path);
  DropSpecial(&v);
  lookup.depth = static_cast<int64_t>(v.tokens.size()) + v.token_start;
  if (o.Bool("sparse", false)) c.Refuse("sparse=True");
  if (o.String("encoding", "utf-8") != "utf-8") c.Refuse("an encoding other than utf-8");
  // Read where they are needed: of inputs outside of the vocabulary, and by tf_idf.
  o.Ignore({"oov_method", "salt", "invert", "idf_weights"});
  const int64_t most = o.Int("max_tokens", lookup.depth);
  if (o.Bool("pad_to_max_tokens", false)) lookup.depth = most;
  c.b.Fail(o.status());
  return lookup;
}

namespace {

Tensor TokenTensor(LayerContext& c, const Lookup& lookup) {
  const std::vector<std::string>& tokens = lookup.vocabulary.tokens;
  Tensor tensor = Tensor::Allocate(lookup.key, {static_cast<int64_t>(tokens.size())});
  for (size_t k = 0; k < tokens.size(); ++k) {
    if (lookup.key == DType::kString) {
      static_cast<std::string*>(tensor.mutable_data())[k] = tokens[k];
    } else if (!absl::SimpleAtoi(tokens[k], static_cast<int64_t*>(tensor.mutable_data()) + k)) {
      c.Fail(absl::StrCat("the vocabulary has ", Quoted(tokens[k]), ", no number"));
      break;
    }
  }
  return tensor;
}

ValueRef TokenScalar(LayerContext& c, DType dtype, const std::string& token) {
  if (dtype == DType::kString) return Text(c.b, token);
  int64_t number = 0;
  if (!absl::SimpleAtoi(token, &number))
    c.Fail(absl::StrCat("token ", Quoted(token), " is no number"));
  return c.b.Const(Tensor::Scalar(DType::kInt64, number));
}

// What a table gives for `keys`.
ValueRef Find(LayerContext& c, const Tensor& from, const Tensor& to, ValueRef keys,
              ValueRef otherwise) {
  GraphBuilder& b = c.b;
  const ValueRef table =
      b.Op("HashTableV2", {}, {{"key_dtype", from.dtype()}, {"value_dtype", to.dtype()}});
  b.Outputs("InitializeTableV2", {table, b.Const(from), b.Const(to)}, 0);
  return b.Op("LookupTableFindV2", {table, keys, otherwise});
}

Tensor Indices(const Lookup& lookup) {
  const auto count = static_cast<int64_t>(lookup.vocabulary.tokens.size());
  Tensor tensor = Tensor::Allocate(DType::kInt64, {count});
  auto* const to = static_cast<int64_t*>(tensor.mutable_data());
  for (int64_t k = 0; k < count; ++k) to[k] = lookup.vocabulary.token_start + k;
  return tensor;
}

// What is not in the vocabulary, spread over several indices.
ValueRef OovIndices(LayerContext& c, const Lookup& lookup, ValueRef ids) {
  GraphBuilder& b = c.b;
  const int64_t oov = lookup.vocabulary.oov;
  const bool farm = c.config.String("oov_method", "floormod") == "farmhash";
  ValueRef indices;
  if (lookup.key != DType::kString && !farm) {
    indices = b.Op("FloorMod", {ids, Int64(b, oov)});
  } else {
    const ValueRef text = lookup.key == DType::kString ? ids : b.Op("AsString", {ids});
    const std::vector<int64_t> salt = c.config.Ints("salt", 2, {});
    indices = salt.empty()
                  ? b.Op("StringToHashBucketFast", {text}, {{"num_buckets", oov}})
                  : b.Op("StringToHashBucketStrong", {text}, {{"num_buckets", oov}, {"key", salt}});
  }
  return Add(b, indices, Int64(b, lookup.vocabulary.oov_start));
}

ValueRef Inverted(LayerContext& c, const Lookup& lookup, ValueRef ids) {
  GraphBuilder& b = c.b;
  const Vocabulary& v = lookup.vocabulary;
  ids = Cast(b, ids, DType::kInt64);
  const ValueRef found = Find(c, Indices(lookup), TokenTensor(c, lookup), ids,
                              TokenScalar(c, lookup.key, v.oov_token));
  if (!v.mask) return found;
  const ValueRef masked = b.Op("Equal", {ids, Int64(b, 0)});
  return b.Op("SelectV2", {masked, TokenScalar(c, lookup.key, v.mask_token), found});
}

}  // namespace

ValueRef LookUp(LayerContext& c, const Lookup& lookup, ValueRef ids) {
  GraphBuilder& b = c.b;
  const Vocabulary& v = lookup.vocabulary;
  if (!b.ok()) return {};
  if (c.config.Bool("invert", false)) return Inverted(c, lookup, ids);
  if (lookup.key == DType::kInt64) ids = Cast(b, ids, DType::kInt64);
  const int64_t otherwise = v.oov == 1 ? v.oov_start : -1;
  ValueRef found = Find(c, TokenTensor(c, lookup), Indices(lookup), ids, Int64(b, otherwise));
  if (v.mask) {
    const ValueRef masked = b.Op("Equal", {ids, TokenScalar(c, lookup.key, v.mask_token)});
    const int64_t value = lookup.mode == "int" ? 0 : std::numeric_limits<int64_t>::max();
    found = b.Op("SelectV2", {masked, Int64(b, value), found});
  }
  if (v.oov == 1) return found;
  const ValueRef unknown = b.Op("Equal", {found, Int64(b, -1)});
  if (v.oov > 1) return b.Op("SelectV2", {unknown, OovIndices(c, lookup, ids), found});
  std::vector<int64_t> axes;
  const int rank = Rank(b, found);
  axes.reserve(rank);
  for (int k = 0; k < rank; ++k) axes.push_back(k);
  const ValueRef none = b.Op("LogicalNot", {Reduce(b, "Any", unknown, axes, false)});
  b.Outputs("Assert",
            {none, Text(b, "When `num_oov_indices=0` all inputs should be in vocabulary")}, 0);
  return found;
}

namespace {

// Counts as the layer answers them: of tf_idf weighted, otherwise of the layer's type.
ValueRef FromCounts(LayerContext& c, const Lookup& lookup, ValueRef counts) {
  GraphBuilder& b = c.b;
  if (!b.ok()) return {};
  if (lookup.mode != "tf_idf") return Cast(b, counts, c.keras2() ? c.compute_dtype : DType::kInt64);
  std::vector<float> weights = c.config.Floats("idf_weights");
  if (weights.empty()) {  // of an adapted layer
    const absl::StatusOr<Tensor> saved = c.layer.weights.Named("idf_weights");
    const bool fits =
        saved.ok() && saved->dtype() == DType::kFloat32 && saved->shape() == Shape({lookup.depth});
    if (!fits) {
      c.Refuse("tf_idf without weights for its words");
      return {};
    }
    return Mul(b, counts, b.Const(*saved));
  }
  const auto front = static_cast<int64_t>(lookup.vocabulary.tokens.size()) +
                     lookup.vocabulary.token_start - static_cast<int64_t>(weights.size());
  if (front > 0) {
    float sum = 0;
    for (const float weight : weights) sum += weight;
    weights.insert(weights.begin(), static_cast<size_t>(front),
                   sum / static_cast<float>(weights.size()));
  }
  weights.resize(static_cast<size_t>(std::max<int64_t>(lookup.depth, 0)), 0.0F);
  return Mul(b, counts, b.Const(Tensor::Vector(DType::kFloat32, weights)));
}

DType CountType(const Lookup& lookup) {
  return lookup.mode == "tf_idf" ? DType::kFloat32 : DType::kInt64;
}

}  // namespace

ValueRef EncodeLookup(LayerContext& c, const Lookup& lookup, ValueRef ids) {
  if (lookup.mode == "int") return ids;
  const std::string mode = lookup.mode == "tf_idf" ? "count" : lookup.mode;
  return FromCounts(c, lookup, EncodeCategories(c, ids, mode, lookup.depth, CountType(lookup)));
}

ValueRef EncodeRaggedLookup(LayerContext& c, const Lookup& lookup, ValueRef ids, ValueRef splits) {
  GraphBuilder& b = c.b;
  if (lookup.depth < 1 || lookup.depth > kMaxDepth)
    c.Fail(absl::StrCat("a depth of ", lookup.depth));
  const bool once = lookup.mode == "multi_hot";
  if (!once && lookup.mode != "count" && lookup.mode != "tf_idf")
    c.Fail(absl::StrCat("output_mode is ", Quoted(lookup.mode)));
  const ValueRef all_ones = b.Const(Tensor::Allocate(CountType(lookup), Shape({0})));
  const ValueRef counts = b.Op("RaggedBincount", {splits, ids, Int64(b, lookup.depth), all_ones},
                               {{"binary_output", once}});
  return FromCounts(c, lookup, counts);
}

}  // namespace floe::keras
