#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "model/tables.h"
#include "runtime/passes/pass_test_util.h"
#include "runtime/passes/passes.h"

namespace floe {
namespace {

Tensor String(const std::string& text) {
  Tensor scalar = Tensor::Allocate(DType::kString, Shape());
  *static_cast<std::string*>(scalar.mutable_data()) = text;
  return scalar;
}

Tensor Number(int64_t number) { return Tensor::Scalar(DType::kInt64, number); }

// A table of "", "a" and a word that no string holds in itself.
Tensor Table() {
  auto table = TableObject::Create(TableKind::kFilledOnce, DType::kString, DType::kInt64, Shape());
  std::string words[] = {"", "a", std::string(40, 'b')};
  int64_t numbers[] = {5, 10, 20};
  EXPECT_TRUE(table.ok() && (*table)
                                ->Insert({DType::kString, Shape({3}), words},
                                         {DType::kInt64, Shape({3}), numbers})
                                .ok());
  Tensor handle = Tensor::Allocate(DType::kResource, Shape());
  *static_cast<Handle*>(handle.mutable_data()) = *table;
  return handle;
}

// Words of [rows] texts, looked up and padded to 4.
struct TextLayer {
  explicit TextLayer(const std::string& separator = "", int64_t most = -1)
      : split(t.Op("StringSplitV2", "split",
                   {t.Input("texts", DType::kString, {Dim::Unknown()}),
                    t.Const("separator", String(separator))},
                   {{"maxsplit", most}})),
        words({split.node, 1}) {}

  ValueRef LookUp() {
    return t.Op("LookupTableFind", "ids",
                {t.Const("table", Table()), words, t.Const("unknown", Number(1))});
  }
  // As a mask token is: `ids` but for words that are `text`.
  ValueRef But(const std::string& text, ValueRef ids) {
    const ValueRef equal = t.Op("Equal", "is_text", {words, t.Const("text", String(text))});
    return t.Op("SelectV2", "choice", {equal, t.Const("masked", Number(0)), ids});
  }
  void Pad(ValueRef ids) {
    const ValueRef rows = t.Op(
        "StridedSlice", "rows",
        {{split.node, 0}, t.Ints("from", {0, 0}), t.Ints("to", {0, 1}), t.Ints("step", {1, 1})},
        {{"begin_mask", int64_t{1}}, {"end_mask", int64_t{1}}, {"shrink_axis_mask", int64_t{2}}});
    const ValueRef count =
        t.Op("StridedSlice", "count",
             {{split.node, 2}, t.Ints("first", {0}), t.Ints("second", {1}), t.Ints("one", {1})},
             {{"shrink_axis_mask", int64_t{1}}});
    t.Output(t.Op(
        "RaggedTensorToTensor", "padded",
        {t.Ints("shape", {-1, 4}), ids, t.Const("pad", Number(0)), count, rows},
        {{"row_partition_types", std::vector<std::string>{"FIRST_DIM_SIZE", "VALUE_ROWIDS"}}}));
  }

  TestGraph t;
  ValueRef split, words;
};

void ExpectFused(bool fused, const TextLayer& layer) {
  Graph graph = layer.t.graph;
  FuseWordLookups(&graph);
  EXPECT_EQ(CountOps(graph, "StringSplitLookup"), fused ? 1 : 0) << DebugString(graph);
  EXPECT_EQ(CountOps(graph, "LookupTableFind"), fused ? 0 : 1) << DebugString(graph);
  EXPECT_EQ(CountOps(graph, "SelectV2") != 0 && fused, false) << DebugString(graph);
  Tensor texts = Tensor::Allocate(DType::kString, Shape({4}));
  auto* const text = static_cast<std::string*>(texts.mutable_data());
  text[0] = "a  unknown,a " + std::string(40, 'b');
  text[2] = ",a,,a";
  text[3] = "one two three four five";
  const auto got = RunGraph(layer.t, {texts}), want = RunGraph(layer.t, {texts}, {"all"});
  ASSERT_EQ(got.size(), want.size());
  for (size_t k = 0; k < got.size(); ++k) ExpectSameBits(got[k], want[k]);
}

TEST(FuseWordLookups, WordsAndPartsBetweenCommas) {
  for (const char* separator : {"", ","}) {
    TextLayer layer(separator);
    layer.Pad(layer.LookUp());
    ExpectFused(true, layer);
    if (*separator == 0) {
      const auto got = RunGraph(layer.t, {String("a c a").Reshaped({1})});
      ASSERT_EQ(got.size(), 1u);
      EXPECT_THAT(absl::MakeConstSpan(got[0].as<int64_t>(), 4), testing::ElementsAre(10, 1, 10, 0));
    }
  }
}

TEST(FuseWordLookups, NoWordBetweenBlanksIsEmpty) {
  TextLayer words;
  words.Pad(words.But("", words.LookUp()));
  ExpectFused(true, words);
  TextLayer parts(",");  // they may be
  parts.Pad(parts.But("", parts.LookUp()));
  ExpectFused(false, parts);
  TextLayer some("", 2);  // so may be the rest of a text
  some.Pad(some.But("", some.LookUp()));
  ExpectFused(false, some);
  TextLayer other;
  other.Pad(other.But("a", other.LookUp()));
  ExpectFused(false, other);
}

TEST(FuseWordLookups, WordsThatOthersReadStay) {
  TextLayer read;
  read.Pad(read.LookUp());
  read.t.Output(read.t.Op("StringLower", "lower", {read.words}));
  ExpectFused(false, read);
  TextLayer answer;
  answer.Pad(answer.LookUp());
  answer.t.Output(answer.split);
  ExpectFused(false, answer);
}

}  // namespace
}  // namespace floe
