// What a model is expected to need against counts by hand. Blocks of an arena begin at multiples of
// 64 bytes, which is 16 float32 values.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/str_replace.h"
#include "server/executor/test_models_for_test.h"
#include "server/loading/loader.h"

namespace floe::server {
namespace {

// x float32 [?,32] and its relu: 128 bytes a row each.
std::string WideGraph() {
  return absl::StrReplaceAll(kTwiceGraph, {{"dim { size: 2 }", "dim { size: 32 }"}});
}

TEST(ArenaBytes, GrowsWithRows) {
  const ModelHandle model = CompileText(WideGraph());
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(ArenaBytes(*model, 1), 2 * 128);
  EXPECT_EQ(ArenaBytes(*model, 100), 100 * 2 * 128);
}

// scale, [?] and x, taken as [1], are a block each; so is the answer.
TEST(ArenaBytes, UnknownNonBatchDimsAreTakenAsOne) {
  const ModelHandle model = CompileText(kScaleGraph);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(ArenaBytes(*model, 1), 3 * 64);
  EXPECT_EQ(ArenaBytes(*model, 10), 64 + 10 * 2 * 64);
}

// x and x - mean have a block a row; the mean over all rows is one, however many rows there are.
TEST(ArenaBytes, WhatHasNoRowsDoesNotGrow) {
  const ModelHandle model = CompileText(kCentredGraph);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(ArenaBytes(*model, 1), 64 + 2 * 64);
  EXPECT_EQ(ArenaBytes(*model, 100), 64 + 100 * 2 * 64);
}

TEST(ArenaBytes, OfTheLargestSignature) {
  auto imported = ImportBytes(WideGraph() + R"(
node { name: "last" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }
node { name: "pair" op: "ConcatV2" input: "x" input: "y" input: "last"
  attr { key: "T" value { type: DT_FLOAT } } attr { key: "N" value { i: 2 } } })",
                              {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  ASSERT_EQ(imported->signatures.size(), 1u);
  SignatureDef small = imported->signatures[0];
  small.name = "small";
  ASSERT_EQ(small.outputs.size(), 1u);
  small.outputs[0].key = small.outputs[0].tensor_name = "y";
  small.outputs[0].type.shape = SymShape({Dim::Unknown(), 32});
  imported->signatures.push_back(std::move(small));
  const auto model = Model::Create(
      {{"m", 1, ""}, std::move(imported->graph), std::move(imported->signatures)}, {});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(ArenaBytes(**model, 10), 10 * (128 + 128 + 256)) << "x, y and both side by side";
}

// x [?,?] must have three columns, which its own type does not say.
TEST(ArenaBytes, NothingWhereTheGuessIsWrong) {
  const ModelHandle model = CompileText(R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: -1 } } } } }
node { name: "w" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT
    tensor_shape { dim { size: 3 } dim { size: 1 } } float_val: 2 } } } }
node { name: "y" op: "MatMul" input: "x" input: "w" attr { key: "T" value { type: DT_FLOAT } } }
)");
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(ArenaBytes(*model, 10), 0);
}

}  // namespace
}  // namespace floe::server
