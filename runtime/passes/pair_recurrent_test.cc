#include <gtest/gtest.h>

#include "model/ops/recurrent.h"
#include "runtime/passes/pass_test_util.h"
#include "runtime/passes/passes.h"

namespace floe {
namespace {

constexpr int64_t kRows = 2, kTime = 5, kIn = 3, kUnits = 4;

// Recurrent layers over x, each with a state that the caller names.
struct Layers {
  TestGraph t;
  ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), kTime, kIn});

  ValueRef Zeros(const std::string& name) {
    return t.Const(name, Wavy(Shape({1, kUnits}), static_cast<float>(name.size())));
  }
  ValueRef Add(const std::string& name, ValueRef h, bool backwards) {
    ops::RecurrentSpec spec;
    spec.gates = {{ops::RecurrentFunction::kTanh}};
    spec.units = kUnits;
    spec.backwards = backwards;
    spec.sequence = true;
    Attrs attrs;
    spec.ToAttrs(&attrs);
    const auto seed = static_cast<float>(backwards);
    const ValueRef layer = t.Op("FusedRecurrent", name,
                                {x, h, t.Const(name + "/w", Wavy(Shape({kIn, kUnits}), 1 + seed)),
                                 t.Const(name + "/r", Wavy(Shape({kUnits, kUnits}), 2 + seed)),
                                 t.Const(name + "/b", Wavy(Shape({kUnits}), 3 + seed))},
                                {attrs.values().begin(), attrs.values().end()});
    return layer;
  }

  void ExpectPairs(int pairs) {
    Graph graph = t.graph;
    PairRecurrent(&graph);
    Prune(&graph);
    EXPECT_EQ(CountOps(graph, "RecurrentPair"), pairs) << DebugString(graph);
    EXPECT_EQ(CountOps(graph, "FusedRecurrent"), CountOps(t.graph, "FusedRecurrent") - 2 * pairs);
    const Tensor data = Wavy(Shape({kRows, kTime, kIn}), 7);
    const auto got = RunGraph(t, {data}), want = RunGraph(t, {data}, {"pair_recurrent"});
    ASSERT_EQ(got.size(), want.size());
    ASSERT_FALSE(want.empty());
    for (size_t k = 0; k < want.size(); ++k) ExpectClose(got[k], want[k], 0);
  }
};

TEST(PairRecurrent, PairsTheDirectionsOfOneSequence) {
  Layers l;
  const ValueRef forward = l.Add("forward", l.Zeros("f"), false);
  // Read before the other direction is there.
  const ValueRef early = l.t.Op("Neg", "early", {forward});
  const ValueRef backward = l.Add("backward", l.Zeros("bb"), true);
  l.t.Output(l.t.Op("ConcatV2", "both", {early, backward, l.t.Int("axis", 2)}));
  l.t.Output({forward.node, 1});
  l.t.Output({backward.node, 1});
  l.ExpectPairs(1);
}

TEST(PairRecurrent, LeavesALayerThatWaitsForTheOther) {
  Layers l;
  const ValueRef first = l.Add("first", l.Zeros("f"), false);
  const ValueRef second = l.Add("second", l.t.Op("Neg", "state", {{first.node, 1}}), true);
  l.x = l.t.Op("Neg", "y", {l.x});
  const ValueRef third = l.Add("third", l.Zeros("t"), false);
  const ValueRef fourth = l.Add("fourth", l.Zeros("tt"), true);
  for (const ValueRef& layer : {first, second, third, fourth}) l.t.Output(layer);
  l.ExpectPairs(1);
}

// Each of the two pairs would wait for the other.
TEST(PairRecurrent, LeavesPairsThatWaitForEachOther) {
  Layers l;
  const ValueRef a = l.Add("a", l.Zeros("f"), false);
  const ValueRef x = l.x;
  l.x = l.t.Op("Neg", "y", {x});
  const ValueRef b = l.Add("b", l.Zeros("bb"), false);
  const ValueRef b2 = l.Add("b2", {a.node, 1}, true);
  l.x = x;
  const ValueRef a2 = l.Add("a2", {b.node, 1}, true);
  for (const ValueRef& layer : {a, b, a2, b2}) l.t.Output(layer);
  l.ExpectPairs(0);
}

// No kernel for GPUs computes a pair.
TEST(PairRecurrent, LeavesLayersForADeviceThatComputesNoPairs) {
  Layers l;
  l.t.Output(l.Add("forward", l.Zeros("f"), false));
  l.t.Output(l.Add("backward", l.Zeros("bb"), true));
  const std::vector<TensorType> types = l.t.InputTypes();
  for (const DeviceKind device : {kHostDevice, DeviceKind::kCuda}) {
    Graph graph = l.t.graph;
    KernelOptions options;
    options.device = device;
    ASSERT_TRUE(RunPasses(&graph, {types, options}, {}).ok());
    EXPECT_EQ(CountOps(graph, "RecurrentPair"), device == kHostDevice ? 1 : 0)
        << DebugString(graph);
  }
}

}  // namespace
}  // namespace floe
