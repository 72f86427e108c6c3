// Strings: what TensorFlow 2.21 answers to the same inputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <random>

#include "kernels/cpu/kernel_test_util.h"

namespace floe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Strings = std::vector<std::string>;
using AttrList = std::vector<std::pair<std::string, AttrValue>>;

Tensor Text(const Strings& values, const Shape& shape) {
  Tensor t = Tensor::Allocate(DType::kString, shape);
  std::copy(values.begin(), values.end(), static_cast<std::string*>(t.mutable_data()));
  return t;
}
Tensor Text(const Strings& values) {
  return Text(values, Shape({static_cast<int64_t>(values.size())}));
}
Attrs With(const AttrList& list) {
  Attrs attrs;
  for (const auto& [name, value] : list) attrs.Set(name, value);
  return attrs;
}
Strings Answer(const std::string& op, const std::vector<Tensor>& inputs, const AttrList& attrs = {},
               uint64_t const_mask = 0) {
  RunOptions options;
  options.const_mask = const_mask;
  const auto outputs = RunKernel(op, With(attrs), inputs, options);
  if (!outputs.ok()) return {"error: " + std::string(outputs.status().message())};
  const Tensor& out = outputs->at(0);
  return {out.as<std::string>(), out.as<std::string>() + out.elements()};
}
std::string Error(const std::string& op, const std::vector<Tensor>& inputs,
                  const AttrList& attrs = {}) {
  const auto outputs = RunKernel(op, With(attrs), inputs);
  EXPECT_FALSE(outputs.ok()) << op;
  return std::string(outputs.status().message());
}

const std::string kUtf8 = "utf-8";

TEST(StringCase, Utf8FollowsUnicode) {
  const AttrList utf8 = {{"encoding", kUtf8}};
  EXPECT_THAT(Answer("StringUpper", {Text({"straße", "ÀÉîß", "жЖ", "ŉ", "ﬁ", "𐐨", "ά"})}, utf8),
              ElementsAre("STRASSE", "ÀÉÎSS", "ЖЖ", "ʼN", "FI", "𐐀", "Ά"));
  EXPECT_THAT(Answer("StringLower", {Text({"ΑΣ ΟΔΟΣ Σ", "İI", "K", "ÀÉ", "ǅ"})}, utf8),
              ElementsAre("ας οδος σ", "i̇i", "k", "àé", "ǆ"));
  EXPECT_THAT(Answer("StringUpper", {Text({"a\xc3", "\xff", "\xed\xa0\x80z"})}, utf8),
              ElementsAre("A\ufffd", "\ufffd", "\ufffd\ufffd\ufffdZ"));
}

TEST(StringCase, WithoutAnEncodingOnlyAsciiChanges) {
  EXPECT_THAT(Answer("StringUpper", {Text({"aß\xff"})}), ElementsAre("Aß\xff"));
  EXPECT_THAT(Error("StringLower", {Text({"a"})}, {{"encoding", std::string("latin1")}}),
              HasSubstr("neither empty nor 'utf-8'"));
}

template <class T>
absl::StatusOr<T> Number(const std::string& text, DType dtype) {
  const auto out = RunKernel("StringToNumber", With({{"out_type", dtype}}), {Text({text})});
  if (!out.ok()) return out.status();
  return *out->at(0).as<T>();
}

TEST(StringToNumber, ReadsWhatTensorFlowReads) {
  EXPECT_EQ(*Number<float>(" .5\n", DType::kFloat32), .5f);
  EXPECT_EQ(*Number<float>("1e400", DType::kFloat32), INFINITY);
  EXPECT_EQ(*Number<float>("0x1p3", DType::kFloat32), 8.f);
  EXPECT_EQ(*Number<double>("-infinity", DType::kFloat64), -INFINITY);
  EXPECT_TRUE(std::isnan(*Number<double>("NaN", DType::kFloat64)));
  EXPECT_EQ(*Number<int32_t>("-2147483648", DType::kInt32), INT32_MIN);
  EXPECT_EQ(*Number<int64_t>("+007", DType::kInt64), 7);
  EXPECT_EQ(*Number<uint32_t>("4294967295", DType::kUInt32), UINT32_MAX);
  EXPECT_EQ(*Number<uint64_t>("18446744073709551615", DType::kUInt64), UINT64_MAX);
}

TEST(StringToNumber, AndNothingElse) {
  for (const char* text : {"", "abc", "1 2", "1.5f", "1,5", "1_0", "--1"})
    EXPECT_FALSE(Number<float>(text, DType::kFloat32).ok()) << text;
  EXPECT_FALSE(Number<float>(std::string("4\0", 2), DType::kFloat32).ok());
  for (const char* text : {"2147483648", "1.5", "0x10", "1e3"})
    EXPECT_FALSE(Number<int32_t>(text, DType::kInt32).ok()) << text;
  EXPECT_FALSE(Number<int64_t>("9223372036854775808", DType::kInt64).ok());
  for (const char* text : {"-1", "-0", "4294967296"})
    EXPECT_FALSE(Number<uint32_t>(text, DType::kUInt32).ok()) << text;
}

TEST(AsString, FloatsByPrintf) {
  const Tensor x = FloatTensor({4}, {0.1f, -2.25f, 1e10f, INFINITY});
  EXPECT_THAT(Answer("AsString", {x}),
              ElementsAre("0.100000", "-2.250000", "10000000000.000000", "inf"));
  EXPECT_THAT(Answer("AsString", {x}, {{"shortest", true}}),
              ElementsAre("0.1", "-2.25", "1e+10", "inf"));
  EXPECT_THAT(Answer("AsString", {x}, {{"scientific", true}, {"precision", int64_t{2}}}),
              ElementsAre("1.00e-01", "-2.25e+00", "1.00e+10", "inf"));
  EXPECT_THAT(
      Answer("AsString", {x},
             {{"width", int64_t{8}}, {"fill", std::string("0")}, {"precision", int64_t{1}}}),
      ElementsAre("000000.1", "-00002.2", "10000000000.0", "     inf"));
  EXPECT_EQ(Answer("AsString", {x}, {{"precision", int64_t{80}}})[0].size(), 82u);
  EXPECT_THAT(Error("AsString", {x}, {{"scientific", true}, {"shortest", true}}),
              HasSubstr("both scientific and shortest"));
  EXPECT_THAT(Error("AsString", {x}, {{"fill", std::string("x")}}), HasSubstr("fill 'x'"));
  EXPECT_FALSE(RunKernel("AsString", With({{"width", int64_t{1} << 40}}), {x}).ok());
}

TEST(AsString, OtherTypes) {
  const Tensor longs = Tensor::Vector<int64_t>(DType::kInt64, {INT64_MIN, 7});
  EXPECT_THAT(Answer("AsString", {longs}, {{"width", int64_t{3}}, {"fill", std::string("-")}}),
              ElementsAre("-9223372036854775808", "7  "));
  EXPECT_THAT(Error("AsString", {longs}, {{"precision", int64_t{2}}}), HasSubstr("are for floats"));
  EXPECT_THAT(
      Answer("AsString", {Tensor::Vector<uint8_t>(DType::kBool, {1, 0})}, {{"width", int64_t{8}}}),
      ElementsAre("true", "false"));
  EXPECT_THAT(Answer("AsString", {Tensor::Vector<float>(DType::kComplex64, {}).Reshaped({0})}),
              ElementsAre());
  const Tensor complex =
      Tensor::Vector<std::complex<float>>(DType::kComplex64, {{1, 2}, {-.5f, -1e10f}});
  EXPECT_THAT(Answer("AsString", {complex}, {{"width", int64_t{10}}, {"fill", std::string("0")}}),
              ElementsAre("(001.000000,002.000000)", "(-00.500000,-10000000000.000000)"));
  EXPECT_THAT(Answer("AsString", {Text({"a", "bcdefgh"})}, {{"width", int64_t{5}}}),
              ElementsAre("    a", "bcdefgh"));
  EXPECT_THAT(
      Answer("AsString", {Text({"a"})}, {{"width", int64_t{5}}, {"fill", std::string("-")}}),
      ElementsAre("a    "));
}

Tensor Axes(const std::vector<int32_t>& axes) { return Tensor::Vector(DType::kInt32, axes); }

TEST(ReduceJoin, JoinsInTheOrderOfTheAxes) {
  const Tensor x = Text({"a", "b", "c", "d", "e", "f"}, {2, 3});
  const AttrList comma = {{"separator", std::string(",")}};
  const auto join = [&](const std::vector<int32_t>& axes) {
    return Answer("ReduceJoin", {x, Axes(axes)}, comma, 2);
  };
  EXPECT_THAT(join({0}), ElementsAre("a,d", "b,e", "c,f"));
  EXPECT_THAT(join({-1}), ElementsAre("a,b,c", "d,e,f"));
  EXPECT_THAT(join({0, 1}), ElementsAre("a,d,b,e,c,f"));
  EXPECT_THAT(join({1, 0}), ElementsAre("a,b,c,d,e,f"));
  EXPECT_THAT(join({}), ElementsAre("a", "b", "c", "d", "e", "f"));
  EXPECT_THAT(join({0, -2})[0], HasSubstr("axis 0 is named twice"));
  EXPECT_THAT(join({2})[0], HasSubstr("axis 2"));
  RunOptions constant_axes;
  constant_axes.const_mask = 2;
  const auto kept =
      RunKernel("ReduceJoin", With({{"keep_dims", true}}), {x, Axes({1})}, constant_axes);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->at(0).shape(), Shape({2, 1}));
  EXPECT_THAT(Answer("ReduceJoin", {Text({}, {0, 2}), Axes({0})}, comma, 2), ElementsAre("", ""));
}

TEST(Regex, ReplacesAsRe2Does) {
  const auto replace = [](const std::string& pattern, const std::string& rewrite,
                          const std::string& text, bool global = true) {
    const Strings fixed =
        Answer("StaticRegexReplace", {Text({text})},
               {{"pattern", pattern}, {"rewrite", rewrite}, {"replace_global", global}});
    const std::vector<Tensor> inputs = {Text({text}), Text({pattern}, {}), Text({rewrite}, {})};
    EXPECT_EQ(Answer("RegexReplace", inputs, {{"replace_global", global}}), fixed);
    EXPECT_EQ(Answer("RegexReplace", inputs, {{"replace_global", global}}, 6), fixed);
    return fixed[0];
  };
  EXPECT_EQ(replace("(\\w)(\\w)", "\\2\\1", "abcde"), "badce");
  EXPECT_EQ(replace("[0-9]+", "#", "foo123bar45"), "foo#bar#");
  EXPECT_EQ(replace("[0-9]+", "#", "foo123bar45", false), "foo#bar45");
  EXPECT_EQ(replace("", "-", "ab"), "-a-b-");
  EXPECT_EQ(replace(".", "<\\0>", "日本"), "<日><本>");
  EXPECT_EQ(replace("a", "\\1", "aaa"), "aaa");  // no group 1
  EXPECT_EQ(replace("^", ">", "x\ny"), ">x\ny");
  EXPECT_THAT(Error("StaticRegexReplace", {Text({"a"})}, {{"pattern", std::string("(")}}),
              HasSubstr("pattern '(': missing )"));
  EXPECT_THAT(Error("RegexReplace", {Text({"a"}), Text({"a"}), Text({""}, {})}),
              HasSubstr("pattern is string[1], expected a single string"));
}

// A group around it has RE2 look for the match.
TEST(Regex, ReplacesCharactersOfABracketAsRe2Does) {
  std::mt19937 random(7);
  Strings texts(40);
  for (std::string& text : texts) {
    text.resize(random() % 50);
    for (char& c : text) c = static_cast<char>(random() % 4 == 0 ? random() : 32 + random() % 95);
  }
  texts.emplace_back("[naïve] a-b^c\\d, 日本");
  for (const std::string bracket :
       {"[!\"#$%&()\\*\\+,-\\./:;<=>?@\\[\\\\\\]^_`{|}~\\']", "[a-c]", "[]a]", "[a-]", "[^a]",
        "[é]", "[\\d_]", "[[:punct:]]", "[[a]", "[a][b]", "[a]+", "[a\\-z]", "[.]"}) {
    for (const std::string rewrite : {"", "-", "<>", "\\0\\0"}) {
      const auto replace = [&](const std::string& pattern) {
        return Answer("StaticRegexReplace", {Text(texts)},
                      {{"pattern", pattern}, {"rewrite", rewrite}, {"replace_global", true}});
      };
      EXPECT_EQ(replace(bracket), replace("(?:" + bracket + ")")) << bracket;
    }
  }
}

TEST(Regex, MatchesTheWholeString) {
  const auto out = RunKernel("StaticRegexFullMatch", With({{"pattern", std::string("a+")}}),
                             {Text({"aaa", "ab", "", "\xff"})});
  ASSERT_TRUE(out.ok()) << out.status();
  const bool* matches = out->at(0).as<bool>();
  EXPECT_TRUE(matches[0]);
  EXPECT_FALSE(matches[1] || matches[2] || matches[3]);
}

TEST(StringToHashBucketFast, GivesTensorFlowsBuckets) {
  std::string digits;
  for (int i = 0; i < 20; ++i) digits += "0123456789";
  // Every length that the hash treats in a way of its own.
  const std::vector<std::pair<std::string, int64_t>> expected = {
      {"", 1936946117179621455},
      {"a", 3694432073954588131},
      {"abc", 2640714258260161385},
      {"abcd", 1897425971756105985},
      {"abcdefg", 4341691227789030229},
      {"abcdefgh", 4533385575889643785},
      {"0123456789abcdef", 1493332391325024359},
      {"0123456789abcdefg", 2800675501336285770},
      {std::string(32, 'x'), 3678204687145032709},
      {std::string(33, 'x'), 3046993373088323127},
      {digits.substr(0, 60) + "abcd", 1643205393884061375},
      {std::string(65, 'y'), 4023130470993650268},
      {std::string(128, 'z'), 569286240017589699},
      {std::string(129, 'z'), 2429128038119043892},
      {digits, 439712990348739477}};
  for (const auto& [text, bucket] : expected) {
    const auto out = RunKernel("StringToHashBucketFast", With({{"num_buckets", int64_t{1} << 62}}),
                               {Text({text})});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(*out->at(0).as<int64_t>(), bucket) << text;
  }
  EXPECT_THAT(Error("StringToHashBucketFast", {Text({"a"})}, {{"num_buckets", int64_t{0}}}),
              HasSubstr("num_buckets 0"));
}

}  // namespace
}  // namespace floe
