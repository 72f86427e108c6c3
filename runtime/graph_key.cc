#include "runtime/graph_key.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/attrs_key.h"
#include "model/op_def.h"

namespace floe {
namespace {

// Constants of functions are read anew for each call, and then have other addresses.
constexpr int64_t kSmall = 1024;

// Bodies that are written already, by number: branches that share theirs multiply.
using Written = std::unordered_map<const Graph*, size_t>;

class KeyWriter {
 public:
  KeyWriter(const Graph& graph, Written* written)
      : graph_(graph), written_(written), number_(graph.size(), kUnseen) {}

  std::string Run() {
    for (const ValueRef& out : graph_.outputs) {
      Visit(out.node);
      AddValue("=", out);
    }
    for (const int input : graph_.inputs) absl::StrAppend(&key_, "<", number_[input]);
    return std::move(key_);
  }

 private:
  static constexpr int kUnseen = -1, kOpen = -2;

  void AddValue(const char* before, ValueRef ref) {
    absl::StrAppend(&key_, before, number_[ref.node], ":", ref.output);
  }

  // Numbers the nodes in the order in which the outputs lead to them. Graphs are deep.
  void Visit(int root) {
    std::vector<int> open = {root};
    while (!open.empty()) {
      const int i = open.back();
      if (number_[i] == kUnseen) {
        number_[i] = kOpen;
        const Node& node = graph_.node(i);
        for (auto in = node.inputs.rbegin(); in != node.inputs.rend(); ++in) Push(in->node, &open);
        for (auto in = node.control_inputs.rbegin(); in != node.control_inputs.rend(); ++in)
          Push(*in, &open);
      } else {
        open.pop_back();
        if (number_[i] != kOpen) continue;
        number_[i] = count_++;
        Write(graph_.node(i));
      }
    }
  }

  void Push(int node, std::vector<int>* open) const {
    if (number_[node] == kUnseen) open->push_back(node);
  }

  void Write(const Node& node) {
    absl::StrAppend(&key_, ";", node.op->name, "|", node.num_outputs);
    for (const ValueRef& in : node.inputs) AddValue("|", in);
    for (const int control : node.control_inputs) absl::StrAppend(&key_, "^", number_[control]);
    Attrs attrs;
    for (const auto& [name, value] : node.attrs.values()) {
      const Tensor* const tensor = std::get_if<Tensor>(&value);
      const bool large =
          tensor != nullptr && std::max<int64_t>(tensor->elements(), tensor->bytes()) > kSmall;
      if (large)
        absl::StrAppend(&key_, "@", reinterpret_cast<uintptr_t>(tensor->data()),
                        DTypeName(tensor->dtype()), tensor->shape().ToString());
      else if (!name.starts_with('_'))
        attrs.Set(name, value);
    }
    absl::StrAppend(&key_, "|", AttrsKey(attrs));
    for (const auto& body : node.subgraphs) {
      const auto [place, first] = written_->try_emplace(body.get(), written_->size());
      if (!first) {
        absl::StrAppend(&key_, "{#", place->second, "}");
        continue;
      }
      const std::string inner = KeyWriter(*body, written_).Run();
      absl::StrAppend(&key_, "{", inner.size(), ":", inner, "}");
    }
    // Two that draw random numbers are two; inputs are told apart by who feeds them.
    if (node.op->stateful && node.op->name != "Input") absl::StrAppend(&key_, "|", node.name);
  }

  const Graph& graph_;
  Written* const written_;
  std::vector<int> number_;
  int count_ = 0;
  std::string key_;
};

}  // namespace

std::string GraphKey(const Graph& graph) {
  Written written;
  return KeyWriter(graph, &written).Run();
}

}  // namespace floe
