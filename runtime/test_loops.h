// Builds loops over lists and arrays for tests and benchmarks.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/test_graph.h"

namespace floe {

// While over (i, variables...) with i counted up to `steps`. `body` gets the variables and returns
// the next ones. The While's node; its outputs are those variables.
template <typename Body>
int AddLoop(TestGraph* g, int steps, const std::vector<ValueRef>& variables,
            const std::vector<DType>& dtypes, Body body) {
  const auto inputs = [&](TestGraph* sub) {
    std::vector<ValueRef> values{sub->Input("i", DType::kInt32, SymShape())};
    for (size_t k = 0; k < dtypes.size(); ++k)
      values.push_back(sub->Input("v" + std::to_string(k), dtypes[k], SymShape::UnknownRank()));
    return values;
  };
  TestGraph test, step;
  test.Output(test.Op("Less", "again", {inputs(&test)[0], test.Int("steps", steps)}));
  const std::vector<ValueRef> values = inputs(&step);
  step.Output(step.Op("Add", "next", {values[0], step.Int("one", 1)}));
  for (const ValueRef& value : body(&step, values)) step.Output(value);

  std::vector<ValueRef> all{g->Int("zero", 0)};
  all.insert(all.end(), variables.begin(), variables.end());
  const int loop = g->Op("While", "loop", all).node;
  g->graph.mutable_node(loop).num_outputs = static_cast<int>(all.size());
  g->graph.mutable_node(loop).subgraphs = {std::make_shared<const Graph>(test.graph),
                                           std::make_shared<const Graph>(step.graph)};
  return loop;
}

enum class Container {
  kList,          // TensorListReserve, SetItem
  kPushedList,    // EmptyTensorList, PushBack
  kArray,         // TensorArrayV3, Write
  kGrowingArray,  // the same with dynamic_size, from size 0
};
inline const char* ContainerName(Container c) {
  constexpr const char* kNames[] = {"TensorList", "PushedTensorList", "TensorArray",
                                    "GrowingTensorArray"};
  return kNames[static_cast<int>(c)];
}

// For an input x[width]: each of `steps` steps stores x + t in the container and adds what it reads
// back to a sum. Outputs: all stored as [steps, width], and the sum.
inline TestGraph CollectingLoop(Container container, int steps, int width) {
  using Attributes = std::vector<std::pair<std::string, AttrValue>>;
  constexpr DType kFloat = DType::kFloat32;
  const bool array = container == Container::kArray || container == Container::kGrowingArray;
  const bool growing = container == Container::kGrowingArray;
  const Attributes element{{"element_dtype", kFloat}}, dtype{{"dtype", kFloat}};
  TestGraph g;
  const ValueRef x = g.Input("x", kFloat, {width});
  const ValueRef shape = g.Ints("element", {width});
  const ValueRef start = g.Op("Mul", "start", {x, g.Floats("nought", {}, {0})});
  std::vector<ValueRef> variables;
  if (array) {
    const Attributes attrs{
        {"dtype", kFloat}, {"dynamic_size", growing}, {"clear_after_read", false}};
    const int node =
        g.Op("TensorArrayV3", "make", {g.Int("size", growing ? 0 : steps)}, attrs).node;
    variables = {{node, 1}, x, start, {node, 0}};
  } else if (container == Container::kList) {
    const ValueRef size = g.Int("size", steps);
    variables = {g.Op("TensorListReserve", "make", {shape, size}, element), x, start};
  } else {
    const ValueRef most = g.Int("most", -1);
    variables = {g.Op("EmptyTensorList", "make", {shape, most}, element), x, start};
  }
  // Variables of the body: step, list or flow, x, sum, array.
  const auto body = [&](TestGraph* b, const std::vector<ValueRef>& v) {
    const ValueRef t = b->Op("Cast", "t", {v[0]}, {{"DstT", kFloat}});
    const ValueRef item = b->Op("Add", "item", {v[2], t});
    ValueRef stored, read;
    if (array) {
      stored = b->Op("TensorArrayWriteV3", "write", {v[4], v[0], item, v[1]}, {{"T", kFloat}});
      read = b->Op("TensorArrayReadV3", "read", {v[4], v[0], stored}, dtype);
    } else {
      stored = container == Container::kList
                   ? b->Op("TensorListSetItem", "set", {v[1], v[0], item}, element)
                   : b->Op("TensorListPushBack", "push", {v[1], item}, element);
      read =
          b->Op("TensorListGetItem", "get", {stored, v[0], b->Ints("element", {width})}, element);
    }
    std::vector<ValueRef> next{stored, v[2], b->Op("Add", "sum", {v[3], read})};
    if (array) next.push_back(v[4]);
    return next;
  };
  std::vector<DType> dtypes{array ? kFloat : DType::kVariant, kFloat, kFloat};
  if (array) dtypes.push_back(DType::kResource);
  const int loop = AddLoop(&g, steps, variables, dtypes, body);
  if (array) {
    std::vector<int32_t> all(steps);
    for (int t = 0; t < steps; ++t) all[t] = t;
    g.Output(
        g.Op("TensorArrayGatherV3", "stack", {variables[3], g.Ints("all", all), {loop, 1}}, dtype));
  } else {
    g.Output(g.Op("TensorListStack", "stack", {ValueRef{loop, 1}, shape}, element));
  }
  g.Output(g.Op("Identity", "sum", {ValueRef{loop, 3}}));
  return g;
}

}  // namespace floe
