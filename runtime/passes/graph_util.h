// What passes ask of a graph.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "model/graph.h"
#include "runtime/analyze.h"

namespace floe {

// The value of a Const node; null for other nodes and for constants that were released.
const Tensor* ConstantOf(const Graph& graph, ValueRef ref);

// The elements of a constant integer tensor; nothing for other nodes and dtypes.
std::optional<std::vector<int64_t>> IntsOf(const Graph& graph, ValueRef ref);
// The same of exactly one element, of whatever shape.
std::optional<int64_t> IntOf(const Graph& graph, ValueRef ref);

// A Const node. `name` must be new to the graph.
Node ConstNode(const std::string& name, const Tensor& value);

// How often each node's outputs are read, by inputs and by the graph's outputs, and by whom.
struct Uses {
  explicit Uses(const Graph& graph);
  // The only reader of output 0 of `node`, when nothing else reads any output; -1 otherwise.
  int OnlyUser(int node) const {
    return users[node].size() == 1 && !is_output[node] && first_output_only[node] ? users[node][0]
                                                                                  : -1;
  }
  std::vector<std::vector<int>> users;  // by node; a reader stands there once for each input
  std::vector<bool> is_output;          // the graph gives out one of the node's values
  std::vector<bool> first_output_only;  // nobody reads an output but 0
};

// Whether nothing outside `members`, nodes with one output, sees a value of theirs but `root`'s.
bool OnlyReadInside(const Graph& graph, const Uses& uses, const std::set<int>& members, int root);

// Values of a constant that lies along dim `axis` of a value of rank `rank`: `channels` numbers, a
// single one repeated. False for anything that broadcasts otherwise, or is not float32.
bool AlongAxis(const Tensor& constant, int rank, int axis, int64_t channels,
               std::vector<float>* values);

// The products that take an epilogue.
bool TakesEpilogue(const Node& node);

// Where the channels of a node's output lie, and its constant weights (input 1), for the products
// that take an epilogue: MatMul, BatchMatMul by a matrix, convolutions.
struct Channels {
  const Tensor* weights =
      nullptr;  // null: none of these, or weights that are not float32 constants
  int64_t count = 0;
  int rank = 0;       // of the output; 2 for BatchMatMul, which has at least so many dims
  int axis = 0;       // of the channels in it
  int64_t inner = 1;  // weight i belongs to channel i / inner % count
  bool deep = false;  // BatchMatMul: there may be more dims in front
};
Channels ChannelsOf(const Graph& graph, const Node& node);

}  // namespace floe
