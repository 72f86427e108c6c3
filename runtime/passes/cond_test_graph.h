// A graph with a v1 conditional, for tests of passes.
#pragma once

#include "runtime/test_graph.h"

namespace floe {

struct Cond {
  TestGraph t;
  explicit Cond(bool constant_predicate, bool value = false) {
    const ValueRef x = t.Input("x", DType::kFloat32, SymShape{Dim::Unknown(), 4});
    const ValueRef p = constant_predicate ? t.Const("p", Tensor::Scalar(DType::kBool, value))
                                          : t.Input("p", DType::kBool, SymShape());
    const ValueRef pivot = t.Op("Switch", "pivot", {p, p});
    const ValueRef on = t.Op("Identity", "switch_t", {{pivot.node, 1}}),
                   off = t.Op("Identity", "switch_f", {{pivot.node, 0}});
    const ValueRef data = t.Op("Switch", "data", {x, p});
    const ValueRef one = t.Floats("one", {1}, {1}), two = t.Floats("two", {1}, {2});
    t.graph.mutable_node(one.node).control_inputs = {on.node};
    t.graph.mutable_node(two.node).control_inputs = {off.node};
    const ValueRef a = t.Op("Add", "a", {{data.node, 1}, one}),
                   b = t.Op("Mul", "b", {{data.node, 0}, two});
    t.Output(t.Op("Merge", "merge", {b, a}));
  }
};

}  // namespace floe
