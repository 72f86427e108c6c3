// A graph with a loop, for tests of passes.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/passes/pass_test_util.h"

namespace floe {

inline ValueRef Control(TestGraph& t, const std::string& op, std::vector<ValueRef> inputs,
                        int outputs, const std::vector<const TestGraph*>& subgraphs) {
  const ValueRef node = t.Op(op, "control", std::move(inputs));
  t.graph.mutable_node(node.node).num_outputs = outputs;
  for (const TestGraph* s : subgraphs)
    t.graph.mutable_node(node.node).subgraphs.push_back(std::make_shared<const Graph>(s->graph));
  return node;
}

// for (i = 0; i < n; ++i) x = tanh(x w) + sqrt(|v|), with variables (i, n, x, w, v).
struct Loop {
  TestGraph t, condition, body;

  // `w_is_constant`: of the caller; otherwise an input. `iterations` is a constant too.
  explicit Loop(bool w_is_constant, int iterations = 3) {
    Inputs(condition);
    condition.Output(condition.Op("Less", "less", {{0, 0}, {1, 0}}));
    Inputs(body);
    const ValueRef next = body.Op("Add", "next", {{0, 0}, body.Int("one", 1)});
    const ValueRef product = body.Op("MatMul", "product", {{2, 0}, {3, 0}});
    const ValueRef invariant = body.Op("Sqrt", "root", {body.Op("Abs", "abs", {{4, 0}})});
    const ValueRef x = body.Op("Add", "x_next", {body.Op("Tanh", "tanh", {product}), invariant});
    for (const ValueRef& out :
         {next, ValueRef{1, 0}, x, body.Op("Identity", "w_same", {{3, 0}}), ValueRef{4, 0}})
      body.Output(out);

    const ValueRef in = t.Input("x", DType::kFloat32, SymShape{Dim::Unknown(), 4});
    const ValueRef v = t.Input("v", DType::kFloat32, {4});
    const ValueRef w = w_is_constant ? t.Const("w", Wavy(Shape({4, 4}), 5))
                                     : t.Input("w", DType::kFloat32, {4, 4});
    const ValueRef loop = Control(t, "While", {t.Int("zero", 0), t.Int("n", iterations), in, w, v},
                                  5, {&condition, &body});
    t.Output({loop.node, 2});
    t.Output(t.Op("Neg", "w_after", {{loop.node, 3}}));
  }

  static void Inputs(TestGraph& g) {
    g.Input("i", DType::kInt32, {});
    g.Input("n", DType::kInt32, {});
    for (const char* name : {"x", "w", "v"})
      g.Input(name, DType::kFloat32, SymShape::UnknownRank());
  }

  const Node& While() const {
    for (const Node& node : t.graph.nodes()) {
      if (node.op->name == "While") return node;
    }
    return t.graph.node(0);
  }
};

}  // namespace floe
