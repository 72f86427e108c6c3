// StringLookup, IntegerLookup, TextVectorization.
#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "model/import/keras/categories.h"

namespace floe::keras {
namespace {

KValue LookupLayer(LayerContext& c) {
  const DType key = c.class_name == "StringLookup" ? DType::kString : DType::kInt64;
  const Lookup lookup = LookupOf(c, key, c.layer.config(), c.layer.weights.path(), false);
  return EncodeLookup(c, lookup, LookUp(c, lookup, c.In()));
}

ValueRef Standardized(LayerContext& c, ValueRef text) {
  GraphBuilder& b = c.b;
  if (!c.config.Has("standardize")) return text;
  const std::string how = c.config.String("standardize", "");
  const bool lower = how == "lower" || how == "lower_and_strip_punctuation";
  const bool strip = how == "strip_punctuation" || how == "lower_and_strip_punctuation";
  if (!lower && !strip) c.Fail(absl::StrCat("standardize is ", Quoted(how)));
  if (lower) text = b.Op("StringLower", {text}, {{"encoding", std::string()}});
  if (!strip) return text;
  return b.Op("StaticRegexReplace", {text},
              {{"pattern", std::string(R"([!"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~\'])")},
               {"rewrite", std::string()},
               {"replace_global", true}});
}

// Tokens of all rows one after the other, and where each row begins.
struct RowTokens {
  ValueRef values, splits;
};

// Each character is a token.
RowTokens SplitCharacters(LayerContext& c, ValueRef text) {
  GraphBuilder& b = c.b;
  const std::string utf8 = "UTF-8", replace = "replace";
  constexpr int64_t kReplacement = 65533;
  const std::vector<ValueRef> decoded = b.Outputs("UnicodeDecode", {text}, 2,
                                                  {{"input_encoding", utf8},
                                                   {"errors", replace},
                                                   {"replacement_char", kReplacement},
                                                   {"replace_control_characters", false},
                                                   {"Tsplits", DType::kInt64}});
  const ValueRef count = Cast(b, At(b, b.Op("Shape", {decoded[1]}), 0, 0), DType::kInt64);
  const ValueRef one = Int64(b, 1);
  const ValueRef places = b.Op("Range", {Int64(b, 0), Add(b, count, one), one});
  const ValueRef characters = b.Op("UnicodeEncode", {decoded[1], places},
                                   {{"output_encoding", utf8},
                                    {"errors", replace},
                                    {"replacement_char", kReplacement},
                                    {"Tsplits", DType::kInt64}});
  return {characters, decoded[0]};
}

RowTokens SplitWords(LayerContext& c, ValueRef text) {
  GraphBuilder& b = c.b;
  const std::string how = c.config.String("split", "");
  if (how == "character") return SplitCharacters(c, text);
  if (how != "whitespace") {
    c.Refuse(absl::StrCat("split=", Quoted(how)));
    return {};
  }
  const std::vector<ValueRef> parts =
      b.Outputs("StringSplitV2", {text, Text(b, "")}, 3, {{"maxsplit", int64_t{-1}}});
  const ValueRef rows = At(b, parts[0], 1, 0);
  const ValueRef all_ones = b.Const(Tensor::Allocate(DType::kInt64, Shape({0})));
  const ValueRef lengths = b.Op("DenseBincount", {rows, At(b, parts[2], 0, 0), all_ones});
  const ValueRef ends = b.Op("Cumsum", {lengths, Int(b, 0)});
  const ValueRef zero = b.Const(Tensor::Vector(DType::kInt64, std::vector<int64_t>{0}));
  return {parts[1], Concat(b, {zero, ends}, 0)};
}

RowTokens Ngrams(LayerContext& c, RowTokens tokens) {
  GraphBuilder& b = c.b;
  if (!c.config.Has("ngrams")) return tokens;
  std::vector<int64_t> widths = c.config.Ints("ngrams", -1, {});
  int64_t most = 0;
  if (ToInt(c.config.At("ngrams"), &most)) {
    widths.clear();
    constexpr int64_t kMost = 64;
    if (most < 1 || most > kMost) c.Fail(absl::StrCat("ngrams is ", most));
    for (int64_t n = 1; n <= most && n <= kMost; ++n) widths.push_back(n);
  }
  const std::vector<ValueRef> out = b.Outputs("StringNGrams", {tokens.values, tokens.splits}, 2,
                                              {{"separator", std::string(" ")},
                                               {"ngram_widths", widths},
                                               {"left_pad", std::string()},
                                               {"right_pad", std::string()},
                                               {"pad_width", int64_t{0}},
                                               {"preserve_short_sequences", false},
                                               {"Tsplits", DType::kInt64}});
  return {out[0], out[1]};
}

// Rows of unlike lengths, cut or filled with zeros up to `length` (-1: to the longest).
ValueRef Dense(GraphBuilder& b, const RowTokens& tokens, int64_t length) {
  const ValueRef shape = b.Const(Tensor::Vector(DType::kInt64, std::vector<int64_t>{-1, length}));
  const ValueRef dense =
      b.Op("RaggedTensorToTensor", {shape, tokens.values, Int64(b, 0), tokens.splits},
           {{"row_partition_types", std::vector<std::string>{"ROW_SPLITS"}},
            {"num_row_partition_tensors", int64_t{1}}});
  b.Refine(dense, {Dim::Unknown(), length < 0 ? Dim::Unknown() : Dim(length)});
  return dense;
}

KValue TextVectorization(LayerContext& c) {
  GraphBuilder& b = c.b;
  if (c.config.Bool("ragged", false)) c.Fail("ragged=True is not supported");
  const Lookup lookup = LookupOf(c, DType::kString, c.layer.config(), c.layer.weights.path(), true);
  ValueRef text = Standardized(c, c.In());
  const int64_t length = c.config.Int("output_sequence_length", -1);
  const int rank = Rank(b, text);
  if (!b.ok()) return {};
  if (!c.config.Has("split")) {
    if (c.config.Has("ngrams")) c.Fail("ngrams without split is not supported");
    if (rank == 1 && lookup.mode != "int") text = ExpandDims(b, text, 1);
    const ValueRef ids = LookUp(c, lookup, text);
    if (lookup.mode != "int" || length < 0) return EncodeLookup(c, lookup, ids);
    c.Fail("output_sequence_length without split is not supported");
    return {};
  }
  if (rank == 2) text = Squeeze(b, text, {1});
  if (rank > 2) c.Fail(absl::StrCat("an input of rank ", rank));
  RowTokens tokens = Ngrams(c, SplitWords(c, text));
  tokens.values = LookUp(c, lookup, tokens.values);
  if (lookup.mode == "int") return Dense(b, tokens, length);
  return EncodeRaggedLookup(c, lookup, tokens.values, tokens.splits);
}

const LayerRegistrar kLookup({"StringLookup", "IntegerLookup"}, LookupLayer);
const LayerRegistrar kText({"TextVectorization"}, TextVectorization);

}  // namespace
}  // namespace floe::keras
