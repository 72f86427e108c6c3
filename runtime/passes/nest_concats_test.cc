#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/passes/pass_test_util.h"
#include "runtime/passes/passes.h"

namespace floe {
namespace {

struct Joined : TestGraph {
  ValueRef x = Input("x", DType::kFloat32, {Dim::Unknown(), 3});
  ValueRef a = Op("Neg", "a", {x}), b = Op("Tanh", "b", {x}), c = Op("Exp", "c", {x});

  ValueRef Concat(const std::string& name, std::vector<ValueRef> parts, int axis = 1,
                  std::vector<int> controls = {}) {
    parts.push_back(Int(name + "/axis", axis));
    const ValueRef joined = Op("ConcatV2", name, parts, {}, std::move(controls));
    Output(joined);
    return joined;
  }
  std::vector<ValueRef> PartsOf(ValueRef concat) const {
    const std::vector<ValueRef>& inputs = graph.node(concat.node).inputs;
    return {inputs.begin(), inputs.end() - 1};
  }
  void ExpectSameAnswers() const {
    const std::vector<Tensor> in = {Wavy(Shape({4, 3}), 0.3f)};
    const std::vector<Tensor> nested = RunGraph(*this, in), flat = RunGraph(*this, in, {"all"});
    ASSERT_EQ(nested.size(), flat.size());
    for (size_t i = 0; i < flat.size(); ++i) ExpectClose(nested[i], flat[i], 1e-6);
  }
};

using Parts = std::vector<ValueRef>;

TEST(NestConcats, EachLayerJoinsAllBeforeIt) {
  Joined t;
  const ValueRef two = t.Concat("two", {t.x, t.a}), three = t.Concat("three", {t.x, t.a, t.b}),
                 four = t.Concat("four", {t.x, t.a, t.b, t.c});
  t.ExpectSameAnswers();
  NestConcats(&t.graph);
  EXPECT_EQ(t.PartsOf(two), (Parts{t.x, t.a}));
  EXPECT_EQ(t.PartsOf(three), (Parts{two, t.b}));
  EXPECT_EQ(t.PartsOf(four), (Parts{three, t.c}));
}

TEST(NestConcats, TheJoinedPartsMayStandAnywhere) {
  Joined t;
  const ValueRef two = t.Concat("two", {t.a, t.b});
  const ValueRef last = t.Concat("last", {t.c, t.x, t.a, t.b}),
                 middle = t.Concat("middle", {t.c, t.a, t.b, t.x}),
                 all = t.Concat("all", {t.a, t.b});
  t.ExpectSameAnswers();
  NestConcats(&t.graph);
  EXPECT_EQ(t.PartsOf(last), (Parts{t.c, t.x, two}));
  EXPECT_EQ(t.PartsOf(middle), (Parts{t.c, two, t.x}));
  EXPECT_EQ(t.PartsOf(all), (Parts{t.a, t.b}));
}

TEST(NestConcats, OtherOrdersAndAxesStay) {
  Joined t;
  t.Concat("two", {t.a, t.b});
  t.Concat("rows", {t.c, t.b}, 0);
  const ValueRef turned = t.Concat("turned", {t.b, t.a, t.c}),
                 apart = t.Concat("apart", {t.a, t.c, t.b}),
                 other = t.Concat("other axis", {t.x, t.a, t.b}, 0);
  t.ExpectSameAnswers();
  NestConcats(&t.graph);
  EXPECT_EQ(t.PartsOf(turned), (Parts{t.b, t.a, t.c}));
  EXPECT_EQ(t.PartsOf(apart), (Parts{t.a, t.c, t.b}));
  EXPECT_EQ(t.PartsOf(other), (Parts{t.x, t.a, t.b}));
}

}  // namespace
}  // namespace floe
