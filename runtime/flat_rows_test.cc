// Rows of any number of elements each are batched where every element keeps to its own row.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "runtime/plan.h"
#include "runtime/test_graph.h"

namespace floe {
namespace {

using testing::HasSubstr;

// Texts, one a row, split into words.
struct Words {
  TestGraph& g;
  ValueRef text;
  ValueRef indices, values, shape;  // as a sparse tensor
  ValueRef ids, rows;               // the row of each word, and how many rows there are

  ValueRef Text(const char* name, const std::string& value) const {
    Tensor text = Tensor::Allocate(DType::kString, Shape());
    *static_cast<std::string*>(text.mutable_data()) = value;
    return g.Const(name, text);
  }
  ValueRef Longs(const char* name, const std::vector<int64_t>& values) const {
    return g.Const(name, Tensor::Vector(DType::kInt64, values));
  }
  ValueRef Long(const char* name, int64_t value) const {
    return g.Const(name, Tensor::Scalar(DType::kInt64, value));
  }
  // Numbers of the words, each from its own letters.
  ValueRef Hashed(ValueRef words) const {
    return g.Op("StringToHashBucketFast", "hashed", {words}, {{"num_buckets", int64_t{100}}});
  }
  ValueRef Padded(const char* name, ValueRef numbers, int64_t width) const {
    const std::string parts = std::string(name) + "/";
    return g.Op(
        "RaggedTensorToTensor", name,
        {Longs((parts + "shape").c_str(), {-1, width}), numbers,
         Long((parts + "otherwise").c_str(), 0), rows, ids},
        {{"row_partition_types", std::vector<std::string>{"FIRST_DIM_SIZE", "VALUE_ROWIDS"}}});
  }
  ValueRef PaddedBySplits(ValueRef numbers, ValueRef splits) const {
    return g.Op("RaggedTensorToTensor", "padded",
                {Longs("shape", {-1, 4}), numbers, Long("otherwise", 0), splits},
                {{"row_partition_types", std::vector<std::string>{"ROW_SPLITS"}}});
  }
  ValueRef Lengths(ValueRef size) const {
    return g.Op("DenseBincount", "lengths", {ids, size, Longs("each", {})});
  }
  ValueRef Splits(ValueRef lengths) const {
    return g.Op("ConcatV2", "splits",
                {Longs("first", {0}), g.Op("Cumsum", "ends", {lengths, g.Int("axis", 0)}),
                 g.Int("join", 0)});
  }
};

Words SplitWords(TestGraph& g, const std::string& name) {
  Words w{g, g.Input(name, DType::kString, {Dim::Unknown()}), {}, {}, {}, {}, {}};
  const int split = g.Op("StringSplitV2", name + "/split", {w.text, w.Text("separator", "")}).node;
  w.indices = {split, 0};
  w.values = {split, 1};
  w.shape = {split, 2};
  w.ids = g.Op(
      "StridedSlice", name + "/ids",
      {w.indices, g.Ints("b", {0, 0}), g.Ints("e", {0, 1}), g.Ints("s", {1, 1})},
      {{"begin_mask", int64_t{1}}, {"end_mask", int64_t{1}}, {"shrink_axis_mask", int64_t{2}}});
  w.rows = g.Op("StridedSlice", name + "/rows",
                {w.shape, g.Ints("rb", {0}), g.Ints("re", {1}), g.Ints("rs", {1})},
                {{"shrink_axis_mask", int64_t{1}}});
  return w;
}

struct FlatCase {
  const char* name;
  const char* why;  // part of the reason; empty: batchable
  std::function<ValueRef(const Words&)> build;
};

std::vector<FlatCase> Kept() {
  return {
      {"padded", "", [](const Words& w) { return w.Padded("padded", w.Hashed(w.values), 4); }},
      {"padded by splits", "",
       [](const Words& w) {
         return w.PaddedBySplits(w.Hashed(w.values), w.Splits(w.Lengths(w.rows)));
       }},
      {"counted", "",
       [](const Words& w) {
         return w.g.Op("RaggedBincount", "counts",
                       {w.Splits(w.Lengths(w.rows)), w.Hashed(w.values), w.Long("size", 100),
                        w.Longs("weights", {})});
       }},
      {"how many words", "", [](const Words& w) { return w.Lengths(w.rows); }},
      {"lengths of words, summed over each row", "",
       [](const Words& w) {
         return w.g.Op("UnsortedSegmentSum", "sums",
                       {w.g.Op("StringLength", "n", {w.values}), w.ids, w.rows});
       }},
      {"each word's shape in a matrix of its own", "",
       [](const Words& w) {
         const ValueRef column =
             w.g.Op("ExpandDims", "column", {w.Hashed(w.values), w.g.Int("a", -1)});
         const ValueRef shape = w.g.Op("Shape", "sh", {column}, {{"out_type", DType::kInt64}});
         const ValueRef count =
             w.g.Op("StridedSlice", "n",
                    {shape, w.g.Ints("nb", {0}), w.g.Ints("ne", {1}), w.g.Ints("ns", {1})});
         return w.Padded("padded", w.g.Op("Reshape", "flat", {column, count}), 4);
       }},
  };
}

std::vector<FlatCase> Mixed() {
  return {
      {"padded to the longest row", "'padded' (RaggedTensorToTensor)",
       [](const Words& w) { return w.Padded("padded", w.Hashed(w.values), -1); }},
      {"the words themselves",
       "as long as the contents of all rows say, at node 'text/split' (StringSplitV2)",
       [](const Words& w) { return w.g.Op("Identity", "again", {w.values}); }},
      {"the sum over all words", "'sum' (Sum)",
       [](const Words& w) {
         const ValueRef sum = w.g.Op("Sum", "sum", {w.Hashed(w.values), w.g.Ints("over", {0})});
         return w.g.Op("Add", "y", {w.Padded("padded", w.Hashed(w.values), 4), sum});
       }},
      {"how many words all rows have", "'y'",
       [](const Words& w) {
         const ValueRef n = w.g.Op("Size", "n", {w.values}, {{"out_type", DType::kInt64}});
         return w.g.Op("Add", "y", {w.Padded("padded", w.Hashed(w.values), 4), n});
       }},
      {"words numbered over all rows", "'unique' (Unique)",
       [](const Words& w) {
         const ValueRef unique =
             w.g.Op("Unique", "unique", {w.values}, {{"out_idx", DType::kInt64}});
         return w.Padded("padded", {unique.node, 1}, 4);
       }},
      {"the number of the row", "'padded' (RaggedTensorToTensor)",
       [](const Words& w) { return w.Padded("padded", w.ids, 4); }},
      {"words backwards", "'back' (ReverseV2)",
       [](const Words& w) {
         return w.Padded(
             "padded", w.g.Op("ReverseV2", "back", {w.Hashed(w.values), w.g.Ints("axis", {0})}), 4);
       }},
      {"a running sum over all words", "'run' (Cumsum)",
       [](const Words& w) {
         return w.Padded("padded", w.g.Op("Cumsum", "run", {w.Hashed(w.values), w.g.Int("a", 0)}),
                         4);
       }},
      {"up to the last row that has words", "'sums' (SegmentSum)",
       [](const Words& w) {
         return w.g.Op("SegmentSum", "sums", {w.g.Op("StringLength", "n", {w.values}), w.ids});
       }},
      {"lengths of a number of rows", "'lengths' (DenseBincount)",
       [](const Words& w) { return w.Lengths(w.Long("eight", 8)); }},
      {"ends that are not of these words", "'ends' (Cumsum)",
       [](const Words& w) {
         const ValueRef letters = w.g.Op("Cast", "letters", {w.g.Op("StringLength", "n", {w.text})},
                                         {{"DstT", DType::kInt64}});
         return w.PaddedBySplits(w.Hashed(w.values), w.Splits(letters));
       }},
      {"words of two texts side by side", "'y' (Add)",
       [](const Words& w) {
         const Words other = SplitWords(w.g, "other");
         const ValueRef both = w.g.Op("Add", "y", {w.Hashed(w.values), w.Hashed(other.values)});
         return w.Padded("padded", both, 4);
       }},
      {"words in the places of another text's", "'padded' (RaggedTensorToTensor)",
       [](const Words& w) {
         return SplitWords(w.g, "other").Padded("padded", w.Hashed(w.values), 4);
       }},
      {"a place in the batch for each word", "'y' (Add)",
       [](const Words& w) {
         const ValueRef places =
             w.g.Op("Add", "y", {w.Hashed(w.values), w.Longs("places", {1, 2, 3, 4, 5, 6})});
         return w.Padded("padded", places, 4);
       }},
  };
}

std::shared_ptr<const Plan> Bound(const FlatCase& c) {
  TestGraph g;
  const Words words = SplitWords(g, "text");
  g.Output(c.build(words));
  const auto compiled = g.Compile();
  if (compiled == nullptr) return nullptr;
  const auto plan = compiled->Bind(std::vector<Shape>(g.graph.inputs.size(), Shape({3})));
  EXPECT_TRUE(plan.ok()) << c.name << ": " << plan.status();
  return plan.ok() ? *plan : nullptr;
}

TEST(FlatRows, AreBatchedWhereElementsKeepToTheirRows) {
  for (const FlatCase& c : Kept()) {
    const auto plan = Bound(c);
    ASSERT_NE(plan, nullptr) << c.name;
    EXPECT_EQ(plan->why_not_batchable(), "") << c.name;
  }
}

TEST(FlatRows, AreNotBatchedWhereRowsMeet) {
  for (const FlatCase& c : Mixed()) {
    const auto plan = Bound(c);
    ASSERT_NE(plan, nullptr) << c.name;
    EXPECT_FALSE(plan->batchable()) << c.name;
    EXPECT_THAT(plan->why_not_batchable(), HasSubstr(c.why)) << c.name;
  }
}

}  // namespace
}  // namespace floe
