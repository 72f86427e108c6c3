#include "runtime/graph_key.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>

#include "runtime/model.h"
#include "runtime/test_graph.h"

namespace floe {
namespace {

std::string KeyOf(const std::function<ValueRef(TestGraph*)>& build) {
  TestGraph g;
  g.graph.outputs.push_back(build(&g));
  return GraphKey(g.graph);
}

ValueRef X(TestGraph* g, const std::string& name = "x") {
  return g->Input(name, DType::kFloat32, SymShape({2}));
}

TEST(GraphKey, NamesAndOrderDoNotCount) {
  const std::string key = KeyOf([](TestGraph* g) {
    const ValueRef x = X(g);
    return g->Op("Sub", "y", {x, g->Floats("one", Shape({1}), {1})});
  });
  EXPECT_EQ(KeyOf([](TestGraph* g) {
              const ValueRef one = g->Floats("1", Shape({1}), {1});
              g->Op("Relu", "idle", {one});
              return g->Op("Sub", "difference", {X(g, "z"), one});
            }),
            key);
}

TEST(GraphKey, WhatIsComputedCounts) {
  std::set<std::string> keys;
  const auto binary = [](const char* op, float value, bool swapped, int output) {
    return KeyOf([&](TestGraph* g) {
      const ValueRef x = X(g), c = g->Floats("c", Shape({1}), {value});
      const ValueRef y = g->Op(op, "y", swapped ? std::vector{c, x} : std::vector{x, c});
      return ValueRef{y.node, output};
    });
  };
  keys.insert(binary("Sub", 1, false, 0));
  keys.insert(binary("Sub", 1, true, 0));
  keys.insert(binary("Sub", 2, false, 0));
  keys.insert(binary("Add", 1, false, 0));
  keys.insert(binary("Sub", 1, false, 1));
  EXPECT_EQ(keys.size(), 5u);
}

TEST(GraphKey, WhichInputIsWhichCounts) {
  const auto difference = [](bool swapped) {
    return KeyOf([swapped](TestGraph* g) {
      const ValueRef a = X(g, "a"), b = X(g, "b");
      return g->Op("Sub", "y", swapped ? std::vector{b, a} : std::vector{a, b});
    });
  };
  EXPECT_NE(difference(false), difference(true));
}

TEST(GraphKey, LargeConstantsCountByAddress) {
  const Tensor large = Tensor::Vector(DType::kFloat32, std::vector<float>(1000, 1));
  const auto sum = [](const Tensor& value) {
    return KeyOf([&](TestGraph* g) { return g->Op("Add", "y", {X(g), g->Const("c", value)}); });
  };
  EXPECT_EQ(sum(large), sum(large));
  EXPECT_NE(sum(large), sum(Tensor::Copy(large.view())));
}

TEST(GraphKey, ADeepGraphIsNoTrouble) {
  EXPECT_FALSE(KeyOf([](TestGraph* g) {
                 ValueRef x = X(g);
                 for (int i = 0; i < 100'000; ++i) x = g->Op("Relu", "r", {x});
                 return x;
               }).empty());
}

// As Keras writes every function: once more, under another name.
TEST(Model, EqualSignaturesShareTheirProgram) {
  TestGraph g;
  const ValueRef weights = g.Floats("w", Shape({2, 2}), {1, 2, 3, 4});
  Model::Source source;
  for (const char* name : {"serve", "serving_default", "other"}) {
    const std::string prefix = std::string(name) + "/";
    const ValueRef x = g.Input(prefix + "x", DType::kFloat32, SymShape({Dim(), Dim(2)}));
    const bool other = prefix == "other/";
    const ValueRef y = g.Op("MatMul", prefix + "y", {x, weights}, {{"transpose_b", other}});
    SignatureDef def;
    def.name = name;
    def.inputs = {{.key = prefix,
                   .tensor_name = prefix + "x",
                   .type = {DType::kFloat32, SymShape({Dim(), Dim(2)})}}};
    def.outputs = {{.key = "y", .tensor_name = prefix + "y"}};
    (void)y;
    source.signatures.push_back(def);
  }
  g.graph.inputs.clear();
  source.graph = g.graph;
  const auto model = Model::Create(std::move(source), {});
  ASSERT_TRUE(model.ok()) << model.status();
  const CompiledSignature& serve = (*model)->Find("serve")->default_variant();
  const CompiledSignature& usual = (*model)->Find("serving_default")->default_variant();
  EXPECT_TRUE(usual.SharesProgram(serve));
  EXPECT_FALSE((*model)->Find("other")->default_variant().SharesProgram(serve));
  EXPECT_EQ(usual.signature().inputs[0].key, "serving_default/");
  EXPECT_EQ(usual.signature().outputs[0].type, serve.signature().outputs[0].type);
  EXPECT_NE(usual.signature().outputs[0].type.dtype, DType::kInvalid);
  EXPECT_EQ((*model)->weight_bytes(),
            2 * (*model)->Find("other")->default_variant().weight_bytes());
}

}  // namespace
}  // namespace floe
