// Shapes that files leave open, and tensors inside the graph, from argument list to output.
#include <fstream>

#include "cli/floectl_for_test.h"
#include "cli/npz.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace floe::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string Attr(const std::string& name, const std::string& value) {
  return " attr { key: '" + name + "' value { " + value + " } }";
}

std::string Node(const std::string& name, const std::string& op,
                 const std::vector<std::string>& inputs, const std::string& attrs = "") {
  std::string text = "node { name: '" + name + "' op: '" + op + "'";
  for (const std::string& input : inputs) text += " input: '" + input + "'";
  return text + attrs + (op == "Const" || op == "Placeholder" ? "" : Attr("T", "type: DT_FLOAT")) +
         " }\n";
}

std::string Placeholder(const std::string& name, const std::string& type = "DT_FLOAT",
                        const std::string& shape = "unknown_rank: true") {
  return Node(name, "Placeholder", {},
              Attr("dtype", "type: " + type) + Attr("shape", "shape { " + shape + " }"));
}

std::string Dims(const std::vector<int>& dims) {
  std::string text;
  for (const int dim : dims) text += " dim { size: " + std::to_string(dim) + " }";
  return text;
}

std::string FloatArray(const std::string& name, const std::vector<int>& dims) {
  return Node(
      name, "Const", {},
      Attr("dtype", "type: DT_FLOAT") + Attr("value", "tensor { dtype: DT_FLOAT tensor_shape { " +
                                                          Dims(dims) + " } float_val: 1 }"));
}

std::string Integers(const std::string& name, const std::vector<int>& values) {
  std::string text;
  for (const int value : values) text += " int_val: " + std::to_string(value);
  return Node(name, "Const", {},
              Attr("dtype", "type: DT_INT32") +
                  Attr("value", "tensor { dtype: DT_INT32 tensor_shape { " +
                                    Dims({static_cast<int>(values.size())}) + " }" + text + " }"));
}

std::string ShapesGraphFile(const std::string& text) {
  std::string path = testing::TempDir() + "shapes.pbtxt";
  std::ofstream(path, std::ios::trunc) << "versions { producer: 1000 }\n" << text;
  return path;
}

// What `inspect` planned an input for.
std::string Planned(const std::string& graph, const std::string& input,
                    const std::vector<std::string>& options = {}) {
  std::vector<std::string> args = {"inspect", ShapesGraphFile(graph), "--json"};
  args.insert(args.end(), options.begin(), options.end());
  const Outcome outcome = Floectl(args);
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  if (outcome.code != kExitOk) return "";
  return nlohmann::json::parse(outcome.out)["planned_inputs"][input];
}

const std::string kDense = FloatArray("w", {4, 2}) + Node("y", "MatMul", {"scaled", "w"});

// 2^40 ways lead from the input to the op that tells its shape.
TEST(Inspect, TakesNoLongerForManyWaysThroughAGraph) {
  std::string graph = Placeholder("x"), last = "x";
  for (int i = 0; i < 40; ++i) {
    const std::string to = "sum" + std::to_string(i);
    graph += Node(to, "Mul", {last, last});
    last = to;
  }
  EXPECT_THAT(Planned(graph, "x"), HasSubstr("float32"));
}

TEST(Inspect, TakesUnknownRanksFromWhatReadsThem) {
  EXPECT_EQ(
      Planned(Placeholder("x") + FloatArray("w", {4, 2}) + Node("y", "MatMul", {"x", "w"}), "x"),
      "float32[1,4]");
  EXPECT_EQ(
      Planned(Placeholder("x") + FloatArray("c", {}) + Node("scaled", "Mul", {"x", "c"}) + kDense,
              "x", {"--rows", "7"}),
      "float32[7,4]");
  const std::string conv =
      FloatArray("k", {3, 3, 5, 2}) +
      Node("y", "Conv2D", {"padded", "k"},
           Attr("strides", "list { i: 1 i: 1 i: 1 i: 1 }") + Attr("padding", "s: 'SAME'"));
  const std::string paddings = Node(
      "p", "Const", {},
      Attr("dtype", "type: DT_INT32") + Attr("value", "tensor { dtype: DT_INT32 tensor_shape { " +
                                                          Dims({4, 2}) + " } int_val: 0 }"));
  EXPECT_EQ(Planned(Placeholder("x") + paddings + Node("padded", "Pad", {"x", "p"}) + conv, "x"),
            "float32[1,1,1,5]");
  EXPECT_EQ(Planned(Placeholder("x") + Integers("s", {-1, 6}) + Node("y", "Reshape", {"x", "s"}),
                    "x", {"--rows", "2"}),
            "float32[2,6]");
}

TEST(Inspect, LooksForSizesThatFit) {
  const std::string image = Placeholder("x", "DT_FLOAT", Dims({-1, -1, 3}));
  const std::string graph = image + Integers("s", {1, 84}) + Node("flat", "Reshape", {"x", "s"}) +
                            FloatArray("w", {84, 2}) + Node("y", "MatMul", {"flat", "w"});
  EXPECT_EQ(Planned(graph, "x"), "float32[1,28,3]");
  EXPECT_EQ(Planned(graph, "x", {"--dim", "14"}), "float32[2,14,3]");
  const Outcome refused = Floectl({"inspect", ShapesGraphFile(graph), "--dim", "5"});
  EXPECT_EQ(refused.code, kExitFailed);
}

TEST(Inspect, PlansForTheRowsThatItIsTold) {
  // Only three rows make this shape.
  const std::string graph = Placeholder("x", "DT_FLOAT", Dims({-1, 2})) + Integers("s", {6}) +
                            Node("y", "Reshape", {"x", "s"});
  EXPECT_EQ(Planned(graph, "x", {"--rows", "3"}), "float32[3,2]");
  const Outcome outcome = Floectl({"inspect", ShapesGraphFile(graph), "--rows", "3"});
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("no plan at 1 row"), HasSubstr("x float32[3,2]")));
}

const std::string kPipeline = Node("iterator", "IteratorV2", {}) +
                              Node("next", "IteratorGetNext", {"iterator"},
                                   Attr("output_types", "list { type: DT_INT64 type: DT_FLOAT }")) +
                              Node("y", "Neg", {"next:1"}) + Node("z", "Neg", {"y"});

TEST(Feeds, ToolsFeedTensorsInsideTheGraph) {
  const std::string graph = ShapesGraphFile(kPipeline);
  const std::string in = testing::TempDir() + "inner.npz", out = testing::TempDir() + "out.npz";
  for (const std::string name : {"next__1", "y"}) {
    const Tensor rows = Tensor::Vector<float>(DType::kFloat32, {1, -2});
    ASSERT_TRUE(WriteNpz(in, {{name, rows}}).ok());
    const Outcome run = Floectl({"run", graph, "-i", in, "-o", out});
    ASSERT_EQ(run.code, kExitOk) << run.err;
    const auto arrays = ReadNpz(out);
    ASSERT_TRUE(arrays.ok()) << arrays.status();
    const auto* const z = FindTensor(*arrays, "z")->as<float>();
    const float sign = name == "y" ? -1 : 1;
    EXPECT_THAT(std::vector<float>(z, z + 2), ElementsAre(sign * 1, sign * -2));
  }
  const Outcome inspected = Floectl({"inspect", graph, "--feed", "y", "--json"});
  ASSERT_EQ(inspected.code, kExitOk) << inspected.err;
  EXPECT_EQ(nlohmann::json::parse(inspected.out)["signatures"][0]["inputs"][0]["key"], "y");
}

TEST(Feeds, FetchesRefuseNothingThatTheyDoNotNeed) {
  const std::string graph =
      ShapesGraphFile(Placeholder("x") + Node("y", "Neg", {"x"}) +
                      Node("other", "NoSuchOp", {"x"}) + Node("broken", "Neg", {"missing"}));
  const std::string in = testing::TempDir() + "x.npz", out = testing::TempDir() + "out.npz";
  ASSERT_TRUE(WriteNpz(in, {{"x", Tensor::Vector<float>(DType::kFloat32, {1})}}).ok());
  EXPECT_EQ(Floectl({"run", graph, "-i", in, "-o", out}).code, kExitFailed);
  const Outcome run = Floectl({"run", graph, "-i", in, "-o", out, "--fetch", "y"});
  EXPECT_EQ(run.code, kExitOk) << run.err;
}

}  // namespace
}  // namespace floe::cli
